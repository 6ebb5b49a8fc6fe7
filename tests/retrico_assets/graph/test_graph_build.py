"""What the graph should hold, document by document, and how the graph store gets there."""

import pytest

from resources.graph.memory import MemoryGraphStore
from resources.records import Chunk, Document, Mention, RelationMention
from retrico_assets.graph import build
from retrico_assets.graph.build import document_graphs, update_graph

TEXT = "Ada met Bob."


def document(name, text_hash="1", **metadata):
    return Document(name, f"{name}.txt", name, TEXT, text_hash, metadata)


def records_of(name, label="met", score=0.5):
    chunk = Chunk(f"{name}-0", name, 0, TEXT, 0, len(TEXT))
    mentions = [
        Mention(chunk.id, name, 0, 3, "Ada", "person", 0.9),
        Mention(chunk.id, name, 8, 11, "Bob", "person", 0.8),
        Mention(chunk.id, name, 11, 12, ".", "person", 0.1),
    ]
    relation = RelationMention(chunk.id, name, 0, 3, "Ada", "person", 8, 11, "Bob", "person", label, score)
    return [chunk], mentions, [relation]


def graphs_of(*names, **changes):
    chunks, mentions, relations = [], [], []
    for name in names:
        for known, new in zip((chunks, mentions, relations), records_of(name, **changes), strict=True):
            known += new
    return document_graphs([document(name) for name in names], chunks, mentions, relations, "name")[0]


def test_each_document_gets_its_own_records_and_what_was_left_out_is_counted():
    chunks, mentions, relations = ([*a, *b] for a, b in zip(records_of("x"), records_of("y"), strict=True))
    graphs, dropped = document_graphs([document("x"), document("y"), document("z")], chunks, mentions, relations, "name")
    assert [graph.document.id for graph in graphs] == ["x", "y", "z"]
    assert [[chunk.id for chunk in graph.chunks] for graph in graphs] == [["x-0"], ["y-0"], []]
    assert [[m.key for m in graph.mentions] for graph in graphs] == [["ada", "bob"], ["ada", "bob"], []]
    assert [len(graph.relations) for graph in graphs] == [1, 1, 0]
    assert dropped == {"mention without a name": 2}


def test_equal_records_have_one_fingerprint():
    assert [graph.fingerprint for graph in graphs_of("x", "y")] == [graph.fingerprint for graph in graphs_of("x", "y")]


@pytest.mark.parametrize("changed", [{"label": "knows"}, {"score": 0.6}])
def test_a_changed_record_changes_the_fingerprint(changed):
    assert graphs_of("x", **changed)[0].fingerprint != graphs_of("x")[0].fingerprint


@pytest.mark.parametrize("changed", [document("x", "2"), document("x", page=3)])
def test_a_changed_document_changes_the_fingerprint(changed):
    before, after = (document_graphs([d], *records_of("x"), "name")[0][0].fingerprint for d in (document("x"), changed))
    assert before != after


@pytest.fixture
def store():
    return MemoryGraphStore()


def test_an_unchanged_graph_is_not_written_again(store):
    assert update_graph(store, graphs_of("x", "y"))[0] == 2
    assert update_graph(store, graphs_of("x", "y")) == (0, 0, 0)


def test_only_changed_documents_are_written_and_missing_ones_deleted(store):
    update_graph(store, graphs_of("x", "y", "z"))
    replaced, deleted, rows = update_graph(store, [*graphs_of("x"), *graphs_of("y", label="knows")])
    assert (replaced, deleted) == (1, 1)
    assert rows > 0
    stats = store.stats()
    assert (stats.documents, stats.chunks, stats.entities) == (2, 2, 2)
    assert store.relation_labels().keys() == {"met", "knows"}


def test_documents_are_written_in_batches_and_progress_is_reported(store, monkeypatch):
    monkeypatch.setattr(build, "_DOCUMENTS_A_BATCH", 2)
    progress = []
    update_graph(store, graphs_of("v", "w", "x", "y", "z"), lambda done, total: progress.append((done, total)))
    assert progress == [(2, 5), (4, 5), (5, 5)]


def test_an_update_that_was_killed_is_finished_by_the_next(store, monkeypatch):
    class Killed(BaseException):
        pass

    def stop(done, total):
        raise Killed

    monkeypatch.setattr(build, "_DOCUMENTS_A_BATCH", 1)
    with pytest.raises(Killed):
        update_graph(store, graphs_of("x", "y", "z"), stop)
    assert store.stats().documents == 1
    assert update_graph(store, graphs_of("x", "y", "z"))[0] == 2
    assert store.stats().documents == 3
