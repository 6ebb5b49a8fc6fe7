"""Ids are the same everywhere, and different for different things."""

import subprocess
import sys
import unicodedata

from resources.records import Document
from retrico_assets.corpus.chunking import chunk_document
from retrico_assets.corpus.ids import chunk_id, document_id
from retrico_assets.corpus.options import ChunkingOptions
from retrico_assets.corpus.reading import read_files
from retrico_assets.corpus.scanning import scan

ONE_SENTENCE_A_CHUNK = ChunkingOptions(method="sentence", size=20)


def read(root, files):
    for source, text in files.items():
        (root / source).parent.mkdir(parents=True, exist_ok=True)
        (root / source).write_text(text, encoding="utf-8")
    return {document.source: document for document in read_files(root, scan(root, ["**/*.txt", "**/*.md"])).documents}


def test_ids_never_change_from_one_version_of_the_project_to_the_next():
    assert document_id("hr/readme.md") == "855a9b6f-4d7a-5609-8713-2d5cd40dd7d1"
    assert chunk_id("855a9b6f-4d7a-5609-8713-2d5cd40dd7d1", 0, 14, "Ann leads Red.") == "a092a424-b3a1-597f-aed7-778d5f9b6e65"


def test_another_process_gives_the_same_ids():
    code = "from retrico_assets.corpus.ids import *; print(document_id('ü/a.txt'), chunk_id('d', 1, 2, 'é'))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.split() == [document_id("ü/a.txt"), chunk_id("d", 1, 2, "é")]


def test_equal_texts_in_two_sources_are_two_documents_and_two_chunks(tmp_path):
    documents = read(tmp_path, {"a.txt": "Alpha Corp sells kites.", "b.txt": "Alpha Corp sells kites."})
    chunks = [chunk for document in documents.values() for chunk in chunk_document(document, ChunkingOptions())]
    assert len({document.id for document in documents.values()}) == 2
    assert len({chunk.id for chunk in chunks}) == len(chunks) == 2
    assert [chunk.document_id for chunk in chunks] == [documents["a.txt"].id, documents["b.txt"].id]


def test_files_of_the_same_name_in_two_folders_are_kept_apart_and_alike_on_another_machine(tmp_path):
    files = {"hr/readme.md": "Ann leads Red. Red owns kit.", "it/readme.md": "Bob leads Blue. Blue owns rack."}
    here, there = read(tmp_path / "here", files), read(tmp_path / "elsewhere" / "there", files)
    assert set(here) == set(files)
    assert here == there
    chunks = [chunk for document in here.values() for chunk in chunk_document(document, ONE_SENTENCE_A_CHUNK)]
    assert len({chunk.id for chunk in chunks}) == len(chunks) == 4
    assert chunks == [chunk for document in there.values() for chunk in chunk_document(document, ONE_SENTENCE_A_CHUNK)]


def test_names_that_the_disk_keeps_apart_stay_apart(tmp_path):
    composed, decomposed = "é.txt", unicodedata.normalize("NFD", "é.txt")
    assert len({document_id(source) for source in (composed, decomposed, "É.txt", "é.TXT")}) == 4


def test_a_chunk_of_the_same_text_elsewhere_in_the_document_has_another_id():
    document = Document("d", "d.txt", "d", "red fox. red fox.", "")
    first, second = chunk_document(document, ChunkingOptions(method="sentence", size=8))
    assert first.text == second.text
    assert first.id != second.id
