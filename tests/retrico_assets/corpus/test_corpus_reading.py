"""Files of a folder and inline texts become documents."""

import hashlib
import multiprocessing
import os
import tempfile
import time
from pathlib import Path

import pytest

from resources.errors import DocumentError, SettingsError
from retrico_assets.corpus.reading import InlineText, inline_documents, read_file, read_files
from retrico_assets.corpus.scanning import CorpusFolderError, scan
from retrico_assets.corpus.titles import document_title

EVERYTHING = ["**/*"]


def put(root, **files):
    for name, content in files.items():
        write(root / name.replace("__", "/").replace("_dot_", "."), content)


def write(path, content="text"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def sources(root, include, exclude=()):
    return [file.source for file in scan(root, include, exclude).files]


def read(root):
    return read_files(root, scan(root, EVERYTHING))


@pytest.fixture
def tree(tmp_path):
    for source in ("b.txt", "a.md", "A.txt", "sub/a.txt", "sub/deep/c.txt", "sub/deep/c.csv", "other/d.txt"):
        write(tmp_path / source)
    return tmp_path


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        (["**/*.txt"], [], ["A.txt", "b.txt", "other/d.txt", "sub/a.txt", "sub/deep/c.txt"]),
        (["*.txt"], [], ["A.txt", "b.txt"]),
        (["*.txt", "*.md"], [], ["A.txt", "a.md", "b.txt"]),
        (["sub/*.txt"], [], ["sub/a.txt"]),
        (["sub/**"], [], ["sub/a.txt", "sub/deep/c.csv", "sub/deep/c.txt"]),
        (["sub/**/c.*"], [], ["sub/deep/c.csv", "sub/deep/c.txt"]),
        (["**/deep/?.csv"], [], ["sub/deep/c.csv"]),
        (["[a-b].*"], [], ["a.md", "b.txt"]),
        (["[!a-b].*"], [], ["A.txt"]),
        (["**/*.txt"], ["sub"], ["A.txt", "b.txt", "other/d.txt"]),
        (["**/*.txt"], ["sub/**", "other/"], ["A.txt", "b.txt"]),
        (["**/*.txt"], ["**/deep"], ["A.txt", "b.txt", "other/d.txt", "sub/a.txt"]),
        (["**/*.txt"], ["**/a.*"], ["A.txt", "b.txt", "other/d.txt", "sub/deep/c.txt"]),
    ],
)
def test_patterns_choose_files_by_their_path(tree, include, exclude, expected):
    assert sources(tree, include, exclude) == expected


@pytest.mark.parametrize("pattern", ["/etc/*.txt", "../*.txt", "", "a//b.txt", "[z-a].txt"])
def test_a_pattern_that_cannot_match_is_refused(tree, pattern):
    with pytest.raises(SettingsError) as refused:
        scan(tree, [pattern])
    assert repr(pattern) in str(refused.value)


def test_no_pattern_at_all_is_refused_because_it_would_remove_every_document(tree):
    with pytest.raises(SettingsError, match=r"corpus\.include"):
        scan(tree, [])


def test_the_state_of_a_file_is_its_size_and_time(tmp_path):
    write(tmp_path / "a.txt", "four")
    os.utime(tmp_path / "a.txt", ns=(5, 1_700_000_000_000_000_001))
    (file,) = scan(tmp_path, EVERYTHING).files
    assert (file.source, file.size, file.mtime_ns) == ("a.txt", 4, 1_700_000_000_000_000_001)


def test_temporary_names_folders_and_broken_links_are_skipped_with_a_reason(tmp_path):
    temporary = [".big.json.swp", "big.json.part", "~$doc.docx", "a.txt~", "x.tmp", "film.crdownload", ".hidden/a.txt"]
    for name in [*temporary, "big.json", "x.txt/inside.txt"]:
        write(tmp_path / name)
    (tmp_path / "broken.txt").symlink_to(tmp_path / "nowhere")
    (tmp_path / "circle.txt").symlink_to(tmp_path / "circle.txt")
    os.mkfifo(tmp_path / "pipe.txt")
    result = scan(tmp_path, EVERYTHING)
    assert [file.source for file in result.files] == ["big.json", "x.txt/inside.txt"]
    assert set(result.skipped) == {
        *(name.removesuffix("/a.txt") for name in temporary), "x.txt", "broken.txt", "circle.txt", "pipe.txt"
    }  # fmt: skip
    assert result.skipped["x.txt"] == "a folder, not a file"
    assert result.skipped["broken.txt"] == result.skipped["circle.txt"] == "a broken link"


def test_links_lead_to_files_of_the_corpus_but_not_out_of_it_nor_in_circles(tmp_path):
    root = tmp_path / "corpus"
    write(root / "sub/a.txt")
    write(tmp_path / "secret.txt")
    (root / "linked.txt").symlink_to(root / "sub/a.txt")
    (root / "out.txt").symlink_to(tmp_path / "secret.txt")
    (root / "up").symlink_to(tmp_path)
    (root / "sub/loop").symlink_to(root)
    result = scan(root, ["**/*.txt"])
    assert [file.source for file in result.files] == ["linked.txt", "sub/a.txt"]
    assert set(result.skipped) == {"out.txt", "up", "sub/loop"}
    assert "out of the corpus" in result.skipped["out.txt"]


def test_the_corpus_folder_itself_may_be_a_link(tmp_path):
    write(tmp_path / "real/a.txt")
    (tmp_path / "corpus").symlink_to(tmp_path / "real")
    assert sources(tmp_path / "corpus", EVERYTHING) == ["a.txt"]


def test_a_name_that_is_not_unicode_is_skipped_and_said(tmp_path):
    write(Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.txt")))
    result = scan(tmp_path, EVERYTHING)
    assert result.files == ()
    assert result.skipped == {"caf\\udce9.txt": "its name isn't UTF-8; rename it"}


def test_names_that_differ_only_in_case_are_two_files(tmp_path):
    write(tmp_path / "a.txt")
    write(tmp_path / "A.txt")
    assert len({document.id for document in read(tmp_path).documents}) == 2


def test_an_empty_folder_has_no_files(tmp_path):
    assert scan(tmp_path, EVERYTHING).files == ()


def test_a_missing_folder_is_an_error_and_not_an_empty_one(tmp_path):
    with pytest.raises(CorpusFolderError) as error:
        scan(tmp_path / "gone", EVERYTHING)
    assert str(tmp_path / "gone") in str(error.value)
    assert "corpus.path" in str(error.value)
    assert isinstance(error.value, DocumentError)


def test_a_file_in_place_of_the_folder_is_an_error(tmp_path):
    write(tmp_path / "a.txt")
    with pytest.raises(CorpusFolderError, match="not a folder"):
        scan(tmp_path / "a.txt", EVERYTHING)


def as_nobody(function, *arguments):
    """Call as a user without rights, also when the tests run as root."""
    give_up_rights = (os.setuid, (65534,)) if os.geteuid() == 0 else (None, ())
    with multiprocessing.get_context("fork").Pool(1, *give_up_rights) as pool:
        return pool.apply(function, arguments)


@pytest.fixture
def locked():
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        root.chmod(0o755)
        write(root / "open.txt")
        write(root / "closed.txt")
        write(root / "sub/a.txt")
        (root / "closed.txt").chmod(0)
        (root / "sub").chmod(0)
        yield root
        (root / "sub").chmod(0o755)


def test_a_subfolder_that_cannot_be_listed_is_an_error_that_names_it(locked):
    with pytest.raises(CorpusFolderError) as error:
        as_nobody(scan, locked, ["**/*.txt"])
    assert f"{locked / 'sub'} can't be listed: Permission denied" in str(error.value)


def test_an_unreadable_file_is_that_files_problem(locked):
    reading = as_nobody(read_files, locked, scan(locked, ["**/*.txt"], ["sub"]))
    assert [document.source for document in reading.documents] == ["open.txt"]
    (problem,) = reading.problems
    assert (problem.source, problem.state, problem.failed) == ("closed.txt", "unreadable", True)
    assert problem.reason.startswith("Permission denied")


def test_each_file_that_gives_no_document_is_reported_with_its_state_and_the_rest_is_read(tmp_path):
    put(tmp_path, zero_dot_txt="", blank_dot_txt="   \n\t", zwsp_dot_txt="\u200b", bom_dot_txt="\ufeff")
    put(
        tmp_path,
        image_dot_txt=b"\x89PNG\r\n\x1a\n\x00\x00",
        odd_dot_txt=bytes(range(128, 256)),
        mia_dot_txt="Mia Chen visited Quito.",
    )
    reading = read(tmp_path)
    assert [document.text for document in reading.documents] == ["Mia Chen visited Quito."]
    assert {problem.source: (problem.state, problem.failed) for problem in reading.problems} == {
        "zero.txt": ("empty", False),
        "blank.txt": ("empty", False),
        "zwsp.txt": ("empty", False),
        "bom.txt": ("empty", False),
        "image.txt": ("binary", True),
        "odd.txt": ("undecodable", True),
    }
    assert all(problem.reason for problem in reading.problems)


def test_a_file_that_goes_away_after_the_listing_is_that_files_problem(tmp_path):
    write(tmp_path / "a.txt")
    write(tmp_path / "b.txt")
    listed = scan(tmp_path, EVERYTHING)
    (tmp_path / "a.txt").unlink()
    reading = read_files(tmp_path, listed)
    assert [(problem.source, problem.state) for problem in reading.problems] == [("a.txt", "unreadable")]
    assert [document.source for document in reading.documents] == ["b.txt"]


def test_a_document_holds_the_cleaned_text_its_hash_and_where_it_is_from(tmp_path):
    write(tmp_path / "sub/marie_curie.txt", b"\xef\xbb\xbfMarie\r\nCurie")
    document = read_file(tmp_path, "sub/marie_curie.txt")
    assert (document.source, document.title, document.text) == ("sub/marie_curie.txt", "marie curie", "Marie\nCurie")
    assert document.text_hash == hashlib.sha256(b"Marie\nCurie").hexdigest()
    assert document.metadata == {"path": "sub/marie_curie.txt", "encoding": "utf-8"}


def test_touching_a_file_does_not_change_its_document(tmp_path):
    write(tmp_path / "a.txt")
    before = read(tmp_path)
    os.utime(tmp_path / "a.txt", (1, 1))
    assert read(tmp_path) == before


@pytest.mark.parametrize(
    ("name", "text", "title"),
    [
        ("a.md", "intro\n\n## Marie Curie ##\n\n# Later", "Marie Curie"),
        ("my_notes.md", "no heading, #hashtag", "my notes"),
        ("a.txt", "# not Markdown", "a"),
        ("v1.2 draft.txt", "x", "v1.2 draft"),
        ("README", "x", "README"),
        ("___.txt", "x", "___"),
        ("a.md", "```bash\n# install dependencies\n```\n\n# Real Title", "Real Title"),
        ("a.md", "~~~\n# never closed", "a"),
        ("a.md", "<!-- # not\n# this -->\n# Real Title", "Real Title"),
        ("a.md", "---\ntags: [x]\n# comment\n---\n# Real Title", "Real Title"),
        ("a.md", '---\ntitle: "Real Title"\n---\n# Another', "Real Title"),
        ("a.md", "Real Title\n==========\n\n# Another", "Real Title"),
        ("a.md", "Real Title\n---\n", "Real Title"),
        ("a.md", "# [Orbis](https://x.example) **Handbook** `v2`", "Orbis Handbook v2"),
        ("a.md", "# snake_case_name and 2 * 3 * 4", "snake_case_name and 2 * 3 * 4"),
        ("a.md", "# About C#", "About C#"),
        ("a.md", "- an item\n---\n\n# Real Title", "Real Title"),
    ],
)
def test_the_title_is_the_first_heading_or_the_name_of_the_file(tmp_path, name, text, title):
    write(tmp_path / name, text)
    assert read_file(tmp_path, name).title == title


@pytest.mark.parametrize("piece", ["```\n", "<!-- ", "# ", "a    ", "[", "**a", "a\n", "`"])
def test_finding_the_title_takes_linear_time(piece):
    begin = time.process_time()
    document_title("a.md", piece * 50_000)
    document_title("a.md", f"# {piece * 50_000}")
    assert time.process_time() - begin < 2


def test_progress_is_told_file_by_file(tmp_path):
    put(tmp_path, a_dot_txt="a", b_dot_txt="", c_dot_txt="c")
    told = []
    read_files(tmp_path, scan(tmp_path, EVERYTHING), lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_inline_texts_keep_their_ids_in_another_order():
    texts = [InlineText("One."), InlineText("Two.", "two", "Zwei"), InlineText("Three.\r\n")]
    forward, backward = inline_documents(texts), inline_documents(texts[::-1])
    assert forward.problems == ()
    assert {d.id: d for d in forward.documents} == {d.id: d for d in backward.documents}
    assert [d.source.partition("/")[0] for d in forward.documents] == ["inline", "two", "inline"]
    assert forward.documents[1].title == "Zwei"
    assert forward.documents[2].text == "Three.\n"


def test_a_second_inline_text_of_the_same_source_is_refused_alone():
    reading = inline_documents([InlineText("One.", "a"), InlineText("Two.", "a"), InlineText("Three.", "b")])
    assert [document.text for document in reading.documents] == ["One.", "Three."]
    (problem,) = reading.problems
    assert (problem.source, problem.failed) == ("a", True)
    assert "inline text 2" in problem.reason


def test_the_same_inline_text_twice_without_a_name_is_one_document():
    reading = inline_documents([InlineText("One."), InlineText("One.")])
    assert len(reading.documents) == 1
    assert reading.problems == ()


def test_blank_inline_texts_are_empty_and_half_surrogates_are_mended():
    reading = inline_documents([InlineText("\u200b", "blank"), InlineText("a\ud83d", "half")])
    assert [(problem.source, problem.state, problem.failed) for problem in reading.problems] == [("blank", "empty", False)]
    assert reading.documents[0].text == "a\ufffd"
    assert reading.documents[0].metadata == {"replaced_characters": 1}
