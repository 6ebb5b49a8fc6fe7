"""FalkorDB: walks, beyond what every graph store promises."""

from dataclasses import replace

import pytest

from resources.errors import StoreError
from resources.graph.falkordb.embedded import open_embedded, stop_embedded
from resources.graph.memory import MemoryGraphStore
from resources.records import Community
from resources.testing.graphs import Says, document, entity_id, pair


def _dated(id_, head, label, tail, start=None, end=None, score=0.5):
    graph = pair(id_, head, label, tail, score)
    return replace(graph, relations=tuple(replace(r, start_date=start, end_date=end) for r in graph.relations))


def _names(path):
    return [entity.label for entity in path.entities]


def _ways(store, head, tail, **limits):
    (paths,) = store.shortest_paths([(entity_id(head), entity_id(tail))], **limits)
    return [_names(path) for path in paths]


def test_every_stream_is_whole_behind_a_server_that_cuts_results(tmp_path):
    facts = [pair(f"d{n:03}", f"a{n:03}", f"label {n}", f"b{n % 7}") for n in range(40)]
    facts.append(document("types", Says("x", [(f"thing {n}", f"type {n}", 0.5) for n in range(40)])))
    memory = MemoryGraphStore()
    try:
        with open_embedded(tmp_path) as store:
            for each in (memory, store):
                each.replace_documents(facts)
                each.replace_communities([Community(f"c{n:02}", 0, (f"e-a{n:03}",), None, f"title {n}") for n in range(40)])
            store._transport.connected().execute_command("GRAPH.CONFIG", "SET", "RESULTSET_SIZE", 5)
            assert store.relation_labels() == memory.relation_labels()
            assert store.entity_types() == memory.entity_types()
            assert store.communities() == memory.communities()
            with pytest.raises(StoreError, match="RESULTSET_SIZE"):
                list(store.mention_counts())
            assert list(store.mention_counts(page_size=4)) == list(memory.mention_counts())
    finally:
        stop_embedded(tmp_path)


def test_a_revision_is_the_same_everywhere_and_never_comes_again(tmp_path):
    seen = []
    try:
        with open_embedded(tmp_path) as store, open_embedded(tmp_path) as other:
            seen.append(store.revision())
            store.query("CREATE (:Note)", read_only=False)
            seen.append(other.revision())
            store.replace_documents([pair("d1", "Ana", "met", "Bo")])
            seen.append(other.revision())
            with pytest.raises(StoreError):
                store.query("CREATE (:Note {a: {no: 'map'}})", read_only=False)
            store.query("MATCH (n) RETURN n")
            with pytest.raises(StoreError):
                store.query("MATCH (n) DELETE n")
            before = other.revision()
            assert before == store.revision()
            stop_embedded(tmp_path)
            assert other.revision() == before
            store.delete_documents(["d1"])
            seen.append(other.revision())
            assert len({*seen, before}) >= len(seen)
            assert len(set(seen)) == len(seen)
    finally:
        stop_embedded(tmp_path)
