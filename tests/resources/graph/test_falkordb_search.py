"""FalkorDB: search, beyond what every graph store promises."""

import pytest

from resources.graph.encoding import literal
from resources.graph.falkordb.embedded import open_embedded, stop_embedded
from resources.testing.graphs import Says, document, pair


def _texts(store, *texts):
    store.replace_documents([document(f"d{n}", Says(text)) for n, text in enumerate(texts)])


def _named(store, *names):
    store.replace_documents([document("names", Says("some text", [(name, "thing", 0.5) for name in names]))])


def _chunks(store, question, k=10):
    return [scored.record.text for scored in store.search_chunks(question, k)]


def _entities(store, text, k=10):
    return [scored.record.label for scored in store.search_entities(text, k)]


PROSE = [
    "Marie Curie discovered polonium and radium in Paris.",
    "The Parisian Bakery sells croissants.",
    "Zürich is the largest city of Switzerland.",
    "由清华大学组成的联盟在北京开会。",
    "東京タワーは333メートルです。",
    "İstanbul'da bir köprü var.",
    "C++ is a language; C is another one.",
    "The .NET runtime by Microsoft runs C#.",
    "AT&T was a telephone company 🚀 launched long ago.",
    "삼성전자는 수원에 있다.",
    "ประเทศไทยมีกรุงเทพมหานคร",
    "e-mail user_name@example.com costs 20.04 dollars (or more)",
]


def test_both_backends_rank_chunks_alike(falkordb):
    from resources.graph.memory import MemoryGraphStore

    memory = MemoryGraphStore()
    for store in (memory, falkordb):
        _texts(store, *PROSE)
    for question in (
        "Which city is in Paris or Switzerland?",
        "C is a language",
        "北京大学在北京",
        "a telephone company of Microsoft",
    ):
        assert memory.search_chunks(question, 5) == falkordb.search_chunks(question, 5)
        assert memory.search_entities(question, 5) == falkordb.search_entities(question, 5)


def test_a_frequent_word_does_not_hide_the_name(falkordb):
    names = [f"Entity number {n}" for n in range(6_000)]
    store = falkordb
    _named(store, *names, "Entity number", "Number entity of the far away place")
    assert _entities(store, "entity NUMBER 4711")[0] == "Entity number 4711"
    assert _entities(store, "Entity number")[0] == "Entity number"
    assert len(_entities(store, "Entity number 4711", k=5)) == 5
    assert _entities(store, "far entity")[0] == "Number entity of the far away place"


def test_a_graph_from_before_there_was_search_is_completed_when_it_is_opened(tmp_path):
    graphs = [pair("d1", "Zoë Holm", "founded", "清华大学"), pair("d2", "The Who", "met", "Zoë Holm")]
    try:
        with open_embedded(tmp_path, graph="other") as store:
            for label in ("Entity", "Chunk"):
                store._transport.connected().execute_command("GRAPH.QUERY", "retrico", f"CREATE INDEX FOR (n:{label}) ON (n.id)")
            for graph in graphs:
                for label, rows in (
                    ("Entity", [{"id": m.entity_id, "label": m.mention.text} for m in graph.mentions]),
                    ("Chunk", [{"id": c.id, "text": c.text, "document_id": c.document_id} for c in graph.chunks]),
                ):
                    header = f"CYPHER rows={literal(rows)} UNWIND $rows AS r MERGE (n:{label} {{id: r.id}}) SET n += r"
                    store._transport.connected().execute_command("GRAPH.QUERY", "retrico", header)
        with open_embedded(tmp_path) as store, open_embedded(tmp_path) as other:
            for either in (store, other):
                assert _entities(either, "zoe holm") == ["Zoë Holm"]
                assert _entities(either, "清华大学") == ["清华大学"]
                assert _entities(either, "the who") == ["The Who"]
                assert len(_chunks(either, "holm")) == 2
    finally:
        stop_embedded(tmp_path)


@pytest.mark.slow
def test_search_is_there_again_after_a_restart(tmp_path):
    try:
        with open_embedded(tmp_path) as store:
            _texts(store, *PROSE)
            _named(store, *[f"thing {n}" for n in range(20_000)])
            assert _chunks(store, "What is the largest city")[0] == PROSE[2]
            stop_embedded(tmp_path)
            assert _entities(store, "thing 19999", k=1) == ["thing 19999"]
            assert _chunks(store, "What is the largest city")[0] == PROSE[2]
            assert len(_chunks(store, "the and of largest")) == 1
    finally:
        stop_embedded(tmp_path)
