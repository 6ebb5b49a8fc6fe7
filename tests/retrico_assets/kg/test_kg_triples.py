"""Triples from graphs and files, and their division (reference C36; OPEN-39, OPEN-49)."""

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.errors import SettingsError
from retrico_assets.kg.triples import TRIPLE_COLUMNS, divide, fingerprint, read_files, read_graph, uncovered
from tests.support.query_world import empty_graph, facts

SPLIT = [0.8, 0.1, 0.1]


def rows(frame, *columns):
    return list(frame[list(columns or ("head", "relation", "tail"))].itertuples(index=False, name=None))


def splits(frame):
    return frame["split"].value_counts().to_dict()


@pytest.fixture
def write(tmp_path):
    def put(text, name="facts.tsv"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return put


def many(heads=30, tails=6):
    """Triples that leave some to spare: everyone knows several, by one of three relations."""
    return "\n".join(f"p{h}\tr{(h + t) % 3}\tq{t}" for h in range(heads) for t in range(tails) if (h * 7 + t) % 4)


@pytest.mark.parametrize("backend", ["memory", pytest.param("falkordb", marks=pytest.mark.slow)])
def test_every_relation_of_the_graph_is_read_by_entity_id_with_names_beside(backend, tmp_path):
    with empty_graph(backend, tmp_path) as graph:
        graph.replace_documents(
            facts(("Ana", "member of", "Kestrel"), ("Bo", "part of", "Kestrel"), ("Bo", "mentioned in", "Ana"))
        )
        read = read_graph(graph)
        ids = {entity.label: entity.id for entity in graph.entities()}
        assert read.revision == graph.revision()
    assert list(read.frame.columns) == list(TRIPLE_COLUMNS)
    expected = {("Ana", "member of", "Kestrel"), ("Bo", "part of", "Kestrel"), ("Bo", "mentioned in", "Ana")}
    assert set(rows(read.frame)) == expected
    assert set(rows(read.frame, "head_id", "tail_id")) == {(ids[h], ids[t]) for h, _, t in expected}
    assert set(read.frame["score"]) == {0.8}


def test_relations_that_differ_in_their_dates_only_are_one_triple(tmp_path):
    with empty_graph("memory", tmp_path) as graph:
        graph.replace_documents(facts(("Ana", "works at", "Kestrel", "2001", "2002"), ("Ana", "works at", "Kestrel", "2005", "")))
        read = read_graph(graph)
    assert rows(read.frame) == [("Ana", "works at", "Kestrel")]
    assert read.repeated == 1


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["memory", "falkordb"])
def test_more_relations_than_a_server_gives_at_once_are_all_read(backend, tmp_path):
    # FalkorDB returns 10,000 rows at most unless told otherwise, without an error.
    with empty_graph(backend, tmp_path) as graph:
        said = facts(*((f"Person {n}", "works at", f"Firm {n % 97}") for n in range(10_050)))
        graph.replace_documents(said)
        assert graph.stats().relations == 10_050
        assert len(read_graph(graph).frame) == 10_050


def test_an_empty_graph_gives_an_empty_frame_with_its_columns(tmp_path):
    with empty_graph("memory", tmp_path) as graph:
        divided = divide(read_graph(graph).frame)
    assert list(divided.frame.columns) == list(TRIPLE_COLUMNS)
    assert divided.frame.empty
    assert divided.no_evaluation


def test_bad_rows_of_a_file_are_reported_by_line_and_the_others_kept(write):
    path = write(
        b"\xef\xbb\xbfAna\tworks at\tKestrel\r\n\nBo\tworks at\n\tlikes\tCy\nCy\tknows\tAna\t0.5\nCy\tknows\tBo\tmuch\n"
        b"\xff\tis\tbad\nDee\tknows\tAna\tnan\n"
    )
    read = read_files(path)
    assert rows(read.frame, "head", "relation", "tail", "score") == [
        ("Ana", "works at", "Kestrel", 1.0),
        ("Cy", "knows", "Ana", 0.5),
    ]
    assert read.bad_rows == {
        "facts.tsv, line 3": "has 2 columns instead of three or four: head, relation, tail and an optional score",
        "facts.tsv, line 4": "the head is blank",
        "facts.tsv, line 6": "the score 'much' is not a number",
        "facts.tsv, line 7": "is not UTF-8 (invalid start byte at byte 0)",
        "facts.tsv, line 8": "the score 'nan' is not a number",
    }
    assert read.revision is None


def test_a_csv_may_quote_its_commas(write):
    read = read_files(write('"Ruiz, Ana",works at,Kestrel\n', "facts.csv"))
    assert rows(read.frame) == [("Ruiz, Ana", "works at", "Kestrel")]


def test_a_quoted_field_of_a_csv_may_hold_a_line_break(write):
    content = 'Ana,works at,"Kestrel\nLabs"\nBo,works at\n\nCy,knows,Ana\r\n"Dee\u2028Fox",knows,Ana\n'
    read = read_files(write(content, "facts.csv"))
    assert rows(read.frame) == [("Ana", "works at", "Kestrel Labs"), ("Cy", "knows", "Ana"), ("Dee Fox", "knows", "Ana")]
    assert list(read.bad_rows) == ["facts.csv, line 3"]


def test_a_row_of_a_csv_that_is_not_utf_8_is_reported_and_the_others_kept(write):
    read = read_files(write(b"Ana,knows,Bo\n\xff,knows,Bo\nCy,knows,Bo\n", "facts.csv"))
    assert rows(read.frame) == [("Ana", "knows", "Bo"), ("Cy", "knows", "Bo")]
    assert list(read.bad_rows) == ["facts.csv, line 2"]


def test_an_empty_file_gives_an_empty_frame(write):
    assert read_files(write("")).frame.empty


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(SettingsError, match=r"nowhere\.tsv, which does not exist"):
        read_files(tmp_path / "nowhere.tsv")
    with pytest.raises(SettingsError, match=r"has no train\.txt"):
        read_files(tmp_path)


def test_a_given_split_is_kept_but_for_what_train_does_not_cover(write, tmp_path):
    write("a\tr\tb\nb\tr\tc\nc\ts\ta\n", "train.txt")
    write("a\tr\tc\na\tr\tb\n", "valid.txt")  # the second is in train already
    write("b\ts\ta\nnew\tr\ta\na\tt\tb\n", "test.txt")
    read = read_files(tmp_path)
    divided = divide(read.frame)
    assert read.repeated == 1
    assert rows(divided.frame, "head", "relation", "tail", "split") == [
        ("a", "r", "b", "train"),
        ("a", "r", "c", "validation"),
        ("b", "r", "c", "train"),
        ("b", "s", "a", "test"),
        ("c", "s", "a", "train"),
    ]
    assert set(divided.left_out) == {"new r a", "a t b"}
    assert divided.no_evaluation is None


def test_a_split_leaves_every_entity_and_relation_in_train(write):
    frame = read_files(write(many())).frame
    divided = divide(frame, SPLIT)
    wanted = round(0.1 * len(frame))
    assert splits(divided.frame) == {"train": len(frame) - 2 * wanted, "validation": wanted, "test": wanted}
    assert uncovered(divided.frame) == []
    assert divided.no_evaluation is None


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abcdefg"), st.sampled_from("rst"), st.sampled_from("abcdefg")), max_size=60), st.randoms()
)
def test_a_split_is_sound_and_does_not_depend_on_the_order_of_rows(said, shuffler):
    frame = _read(said)
    shuffled = said[:]
    shuffler.shuffle(shuffled)
    divided, again = divide(frame, SPLIT), divide(_read(shuffled), SPLIT)
    pd.testing.assert_frame_equal(divided.frame, again.frame)
    assert fingerprint(divided.frame) == fingerprint(again.frame)
    assert len(divided.frame) == len(set(said))
    assert uncovered(divided.frame) == []
    assert set(divided.frame["split"]) <= {"train", "validation", "test"}
    evaluated = {"validation", "test"} <= set(divided.frame["split"])
    assert evaluated == (divided.no_evaluation is None)


def test_another_seed_draws_another_split(write):
    frame = read_files(write(many())).frame
    assert fingerprint(divide(frame, SPLIT, 1).frame) != fingerprint(divide(frame, SPLIT, 2).frame)
    assert fingerprint(divide(frame, SPLIT, 1).frame) == fingerprint(divide(frame, SPLIT, 1).frame)


TOO_FEW = {
    "triples": [("ana", "WORKS_AT", "kestrel"), ("bo", "WORKS_AT", "kestrel"), ("cy", "KNOWS", "ana")],
    "no_triples": [],
    "one_triple": [("a", "R", "b")],
    "repeated": [("a", "R", "b")] * 3,
}


@pytest.mark.parametrize("case", TOO_FEW)
def test_too_few_triples_are_all_in_train_and_there_is_a_reason(case):
    # PyKEEN's own split raises for these (pykeen/pykeen#1410).
    divided = divide(_read(TOO_FEW[case]), SPLIT)
    assert len(divided.frame) == len(set(TOO_FEW[case]))
    assert set(divided.frame["split"]) <= {"train"}
    assert "too few" in divided.no_evaluation


def test_triples_that_share_no_entity_are_all_in_train():
    divided = divide(_read([(f"a{n}", "r", f"b{n}") for n in range(50)]), SPLIT)
    assert splits(divided.frame) == {"train": 50}
    assert "share" in divided.no_evaluation


def test_a_split_without_evaluation_may_be_asked_for():
    divided = divide(_read([(f"a{n % 5}", "r", f"b{n % 7}") for n in range(35)]), [1, 0, 0])
    assert splits(divided.frame) == {"train": 35}
    assert divided.no_evaluation == "kg.split has no share for validation and test"


def _read(said):
    frame = pd.DataFrame([(h, r, t, h, t, 1.0, "") for h, r, t in said], columns=list(TRIPLE_COLUMNS))
    frame = frame.astype({name: "float64" if name == "score" else "str" for name in TRIPLE_COLUMNS})
    # as read_files gives them: sorted, each once
    return frame.sort_values(["head_id", "relation", "tail_id"]).drop_duplicates(
        ["head_id", "relation", "tail_id"], ignore_index=True
    )
