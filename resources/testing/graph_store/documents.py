"""What every graph store promises. Each test runs on each backend, unchanged."""

import json
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resources.errors import StoreError
from resources.graph.base import GraphStore
from resources.graph.memory import MemoryGraphStore
from resources.testing.graph_store.inspection import Inspection
from resources.testing.graphs import Says, document, entity_id, everything, labels, pair, relation_id

NAMES = ["Ana", "ana", "Bo", "Cy", "Di", "DI"]


def _random_document(chance: Any, id_: Any) -> Any:
    chunks = []
    for _ in range(chance.randint(0, 3)):
        mentions: list[tuple[Any, ...]] = [
            (chance.choice(NAMES), chance.choice("pqr"), chance.randint(1, 9) / 10) for _ in range(chance.randint(0, 5))
        ]
        mentions = [(*m, {chance.choice("xy"): chance.randint(0, 9)}) if chance.random() < 0.3 else m for m in mentions]
        ends = [m[0] for m in mentions]
        said = [
            (chance.choice(ends), chance.choice(["likes", "works at"]), chance.choice(ends), chance.randint(1, 9) / 10)
            for _ in range(chance.randint(0, 3) if ends else 0)
        ]
        chunks.append(Says(chance.choice(["one", "two"]), mentions, said))
    return document(id_, *chunks)


HOSTILE = [
    "由...组成",
    "works at",
    "co-founder/CEO",
    'says "hi"',
    "back`tick",
    "x]->(y) DETACH DELETE y //",
    "123 GO",
    "émigré à",
    "A" * 300,
    "works-at",
    "member of",
    "part of",
    "mentioned in",
    "next",
    "???",
    "\\",
    "$rows",
    "ſ",
    "ŉ",
    "ß",
]


AWKWARD = [
    "a\0b",
    "line1\nline2\r\nline3",
    "tab\there",
    'quote " and back\\slash',
    "ends with backslash \\",
    "a\ud83db",
    "\x01\x1f\x7f",
    "\\u0041 \\n",
    "👩‍🔬 由 \u2028",
    "`$x` {y: 'z'}",
    "",
    "CYPHER x=1",
]


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"))
    | st.floats(allow_nan=False).map(lambda x: float(f"{x:.14g}")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('ab`é \n"', max_size=3), inner, max_size=3),
    max_leaves=6,
)


class DocumentsConformance(Inspection):
    """What every graph store promises. Each test runs on each backend, unchanged."""

    def test_a_new_store_is_empty(self, store: GraphStore) -> None:
        assert everything(store)["entities"] == []
        assert store.document_fingerprints() == {}
        assert store.find_entities(ids=["x"], keys=["y"]) == []
        assert store.neighbourhood(["x"], 2).entities == ()
        assert store.chunks_of(["x"]) == {}
        assert store.entities_of(["x"]) == {}

    def test_a_document_is_found_by_entity_key_chunk_and_relation(self, store: GraphStore) -> None:
        graph = document(
            "d",
            Says("Ana hired Bo.", [("Ana", "person", 0.9), ("Bo", "person", 0.75)], [("Ana", "hired", "Bo", 0.625)]),
            Says("Bo left.", [("Bo", "person", 0.5)], metadata={"page": 2}),
        )
        assert store.replace_documents([graph]) == 1 + 2 + 3 + 1
        ana, bo = store.find_entities(keys=["ana", "bo", "nobody"])
        assert (ana.id, ana.label, ana.key, ana.type) == (entity_id("Ana"), "Ana", "ana", "person")
        assert store.find_entities(ids=[bo.id], keys=["bo"]) == [bo]
        (relation,) = store.relations()
        assert (relation.head_id, relation.label, relation.tail_id, relation.score) == (ana.id, "hired", bo.id, 0.625)
        assert relation.chunk_ids == ("d/0",)
        scored = store.chunks_of([bo.id, ana.id])
        assert [(s.record.id, s.score) for s in scored[bo.id]] == [("d/0", 0.75), ("d/1", 0.5)]
        assert scored[bo.id][1].record == graph.chunks[1]
        assert store.chunks_of([bo.id], limit=1)[bo.id] == scored[bo.id][:1]
        assert store.entities_of(["d/1", "d/0", "none"]) == {"d/1": [bo], "d/0": [ana, bo]}
        assert store.document_fingerprints() == {"d": graph.fingerprint}
        stats = store.stats()
        assert (stats.documents, stats.chunks, stats.mentions, stats.entities, stats.relations) == (1, 2, 3, 2, 1)

    def test_building_again_changes_nothing(self, store: GraphStore) -> None:
        graphs = [pair("d1", "Ida Holm", "founded", "Kestrel Labs", role="founder"), pair("d2", "Ida Holm", "likes", "Oslo")]
        store.replace_documents(graphs)
        first = everything(store)
        for _ in range(2):
            store.replace_documents(graphs)
        assert everything(store) == first

    def test_forgetting_a_document_takes_its_facts_and_orphans(self, store: GraphStore) -> None:
        store.replace_documents([pair("d1", "Ana", "hired", "Bo"), pair("d2", "Bo", "trained", "Cy")])
        assert store.delete_documents(["d1", "unknown", "d1"]) == 1
        assert labels(store.entities()) == {"Bo", "Cy"}
        assert [relation.label for relation in store.relations()] == ["trained"]
        assert [s.record.id for s in store.chunks_of([entity_id("Bo")])[entity_id("Bo")]] == ["d2/0"]
        store.replace_documents([document("d3", Says("Ana left.", [("Ana", "person", 0.9)]))])
        assert [s.record.document_id for s in store.chunks_of([entity_id("Ana")])[entity_id("Ana")]] == ["d3"]
        assert list(store.document_fingerprints()) == ["d2", "d3"]

    def test_an_id_with_blanks_around_it_is_another_id(self, store: GraphStore) -> None:
        store.replace_documents([pair("d1", "Ana", "hired", "Bo")])
        assert store.delete_documents([" d1", "d1\n"]) == 0
        assert store.neighbourhood([" e-ana"], 1).entities == ()
        assert store.chunks_of(["e-ana "]) == {}
        assert store.stats().documents == 1

    def test_chunks_of_two_documents_are_never_joined(self, store: GraphStore) -> None:
        hr = document("hr/readme", Says("Ann leads Red.", [("Ann", "p", 0.9)]), Says("Red owns kit.", [("Red", "t", 0.9)]))
        it = document("it/readme", Says("Bob leads Blue.", [("Bob", "p", 0.9)]), Says("Blue owns rack.", [("Blue", "t", 0.9)]))
        store.replace_documents([hr, it])
        assert store.stats().chunks == 4
        assert self.count_edges(store, "(:Chunk)-[:NEXT]->(:Chunk)") in (None, 2)
        assert self.count_edges(store, "(:Chunk {document_id: 'hr/readme'})-[:NEXT]-(:Chunk {document_id: 'it/readme'})") in (
            None,
            0,
        )
        assert labels(store.entities_of(["it/readme/0"])["it/readme/0"]) == {"Bob"}

    def test_a_chunk_id_of_another_document_is_refused(self, store: GraphStore) -> None:
        store.replace_documents([pair("d1", "Ana", "hired", "Bo")])
        before = everything(store)
        thief = pair("d2", "Ana", "hired", "Cy")
        chunks = tuple(replace(chunk, id="d1/0") for chunk in thief.chunks)
        thief = replace(thief, chunks=chunks, mentions=(), relations=())
        with pytest.raises(StoreError, match="already belongs to"):
            store.replace_documents([thief])
        assert everything(store) == before

    def test_ids_alone_keep_namesakes_apart(self, store: GraphStore) -> None:
        graph = document(
            "d", Says("x", [("Mercury", "planet", 0.9), ("Sun", "star", 0.9)], [("Mercury", "ORBITS", "Sun", 0.5)]), Says()
        )
        element = [
            replace(
                graph.mentions[0],
                entity_id="element",
                mention=replace(graph.mentions[0].mention, label="element", text=t, chunk_id=c),
            )
            for t, c in (("Mercury", "d/0"), ("mercury", "d/1"))
        ]
        store.replace_documents([replace(graph, mentions=(*graph.mentions, *element))])
        found = store.find_entities(keys=["mercury"])
        assert [(e.id, e.type) for e in found] == [("e-mercury", "planet"), ("element", "element")]
        assert {s.record.id for s in store.chunks_of(["element"])["element"]} == {"d/0", "d/1"}
        assert [r.head_id for r in store.relations()] == ["e-mercury"]

    def test_an_entity_is_called_by_its_most_frequent_surface_and_best_supported_type(self, store: GraphStore) -> None:
        store.replace_documents(
            [
                document("a", Says("x", [("IBM", "company", 0.3), ("ibm", "company", 0.3), ("IBM", "product", 0.9)])),
                document("b", Says("x", [("Ibm", "company", 0.2), ("ibm", "company", 0.2)])),
            ]
        )
        (entity,) = store.entities()
        assert (entity.label, entity.type) == ("IBM", "company")  # IBM and ibm twice each: alphabetically; 1.0 against 0.9
        store.delete_documents(["a"])
        (entity,) = store.entities()
        assert (entity.label, entity.type) == ("Ibm", "company")
        store.replace_documents([document("c", Says("x", [("ibm", "product", 0.1 + 0.2), ("ibm", "brand", 0.3 + 0.4)]))])
        (entity,) = store.entities()
        assert (entity.label, entity.type) == ("ibm", "brand")

    def test_equal_support_for_two_types_is_settled_alphabetically(self, store: GraphStore) -> None:
        sums = [("x", "b", 0.1), ("x", "b", 0.2), ("x", "a", 0.3)]  # 0.1 + 0.2 is not 0.3 in floats
        store.replace_documents([document("d", Says("x", sums))])
        assert next(store.entities()).type == "a"
        store.replace_documents([document("d2", Says("x", [("x", "b", 0.25)])), document("d3", Says("x", [("x", "a", 0.25)]))])
        assert next(store.entities()).type == "a"

    def test_a_relation_keeps_every_chunk_that_states_it(self, store: GraphStore) -> None:
        said = [("Ana", "hired", "Bo", 0.25), ("Ana", "hired", "Bo", 0.5)]
        both = [("Ana", "p", 0.9), ("Bo", "p", 0.9)]
        store.replace_documents(
            [document("d1", Says("x", both, said), Says("y", both, said[:1])), pair("d2", "Ana", "hired", "Bo", 0.75)]
        )
        (relation,) = store.relations()
        assert (relation.chunk_ids, relation.score) == (("d1/0", "d1/1", "d2/0"), 0.75)
        store.delete_documents(["d2"])
        (relation,) = store.relations()
        assert (relation.chunk_ids, relation.score) == (("d1/0", "d1/1"), 0.5)
        store.replace_documents([document("d1", Says("x", both), Says("y", both, said[:1]))])
        (relation,) = store.relations()
        assert (relation.chunk_ids, relation.score) == (("d1/1",), 0.25)
        store.replace_documents([document("d1", Says("x", both))])
        assert list(store.relations()) == []
        assert store.stats().relations == 0

    def test_properties_come_and_go_with_the_mentions_that_say_them(self, store: GraphStore) -> None:
        def says(id_: Any, **properties: Any) -> Any:
            return document(
                id_, Says("x", [("Ana", "p", 0.9, properties), ("Bo", "p", 0.9)], [("Ana", "knows", "Bo", 0.5, properties)])
            )

        store.replace_documents([says("a", born=1980, role="boss"), says("b", born=1981), says("c")])
        (ana,) = store.find_entities(keys=["ana"])
        assert ana.properties == {"born": 1981, "role": "boss"}
        assert next(store.relations()).properties == {"born": 1981, "role": "boss"}
        store.delete_documents(["b"])
        assert store.find_entities(keys=["ana"])[0].properties == {"born": 1980, "role": "boss"}
        assert next(store.relations()).properties == {"born": 1980, "role": "boss"}
        store.delete_documents(["a"])
        assert store.find_entities(keys=["ana"])[0].properties == {}
        assert next(store.relations()).properties == {}
        store.replace_documents([says("a", id="stolen", label="stolen", key="stolen", chunk_ids=["stolen"])])
        (ana,) = store.find_entities(keys=["ana"])
        assert (ana.id, ana.label) == ("e-ana", "Ana")
        assert ana.properties == {"id": "stolen", "label": "stolen", "key": "stolen", "chunk_ids": ["stolen"]}
        assert next(store.relations()).chunk_ids == ("a/0", "c/0")

    @pytest.mark.parametrize("seed", range(6))
    def test_any_history_leaves_the_same_graph_as_building_its_end_at_once(self, store: GraphStore, seed: Any) -> None:
        chance = random.Random(seed)
        state: dict[str, Any] = {}
        for _ in range(12):
            ids = chance.sample("abcdef", chance.randint(1, 4))
            if chance.random() < 0.3:
                store.delete_documents(ids)
                state = {id_: graph for id_, graph in state.items() if id_ not in ids}
            else:
                graphs = [_random_document(chance, id_) for id_ in ids]
                store.replace_documents(graphs)
                state.update((graph.document.id, graph) for graph in graphs)
        at_once = MemoryGraphStore()
        at_once.replace_documents([state[id_] for id_ in sorted(state)])
        assert everything(store) == everything(at_once)

    def test_any_relation_label_is_kept_to_the_letter(self, store: GraphStore) -> None:
        graph = document(
            "d", Says("x", [("Ana", "p", 0.9), ("Kestrel", "o", 0.9)], [("Ana", label, "Kestrel", 0.5) for label in HOSTILE])
        )
        for _ in range(2):
            store.replace_documents([graph])
            assert sorted(relation.label for relation in store.relations()) == sorted(HOSTILE)
        stats = store.stats()
        assert (stats.entities, stats.mentions, stats.relations) == (2, 2, len(HOSTILE))
        assert [e.label for e, _ in store.neighbourhood([entity_id("Ana")], 3).entities] == ["Ana", "Kestrel"]
        store.replace_documents([document("d", Says("x", [("Ana", "p", 0.9), ("Kestrel", "o", 0.9)]))])
        assert list(store.relations()) == []

    @pytest.mark.parametrize("label", ["", "   ", None])
    def test_a_relation_without_a_label_is_refused_before_anything_is_written(self, store: GraphStore, label: Any) -> None:
        graph = pair("d", "Ana", "likes", "Bo")
        broken = replace(graph, relations=(replace(graph.relations[0], label=label),))
        with pytest.raises(StoreError, match="label"):
            store.replace_documents([pair("ok", "Cy", "likes", "Di"), broken])
        assert store.stats().documents == 0

    def test_awkward_property_values_are_kept(self, store: GraphStore) -> None:
        properties = {
            "revenue": {"2023": 10, "2022": 5},
            "tags": ["a", 1, None],
            "grid": [[1, 2], [3, 4]],
            "empty_list": [],
            "nothing": None,
            "limit": float("inf"),
            "max_ok": 2**63 - 1,
            "too_big": 2**63,
            "very_big": 10**30,
            "text": "x",
            "back`tick": 1,
            "": "empty",
            "a b": [True],
            "日本": "x",
        }
        store.replace_documents(
            [document("d", Says("x", [("Kestrel", "o", 0.9, {**properties, "ratio": float("nan")}), ("Bo", "p", 0.5)]))]
        )
        kestrel = dict(store.find_entities(keys=["kestrel"])[0].properties)
        assert repr(kestrel.pop("ratio")) == "nan"
        assert kestrel == {key: value for key, value in properties.items() if value is not None}
        assert labels(store.entities()) == {"Kestrel", "Bo"}

    @pytest.mark.parametrize("id_", ["", "  ", None, 7, "a\0b", " a", "a\n", "x" * 501])
    def test_a_row_without_a_usable_id_is_refused_with_its_number(self, store: GraphStore, id_: Any) -> None:
        graph = pair("d", "Ana", "likes", "Bo")
        broken = replace(graph, mentions=(graph.mentions[0], replace(graph.mentions[1], entity_id=id_)), relations=())
        with pytest.raises(StoreError, match="Row 1"):
            store.replace_documents([broken])
        with pytest.raises(StoreError, match="document"):
            store.replace_documents([replace(graph, document=replace(graph.document, id=id_))])
        assert store.stats().documents == 0

    @pytest.mark.parametrize("text", AWKWARD)
    def test_any_text_reads_back_as_it_was(self, store: GraphStore, text: Any) -> None:
        clean = text.replace("\0", "").replace("\ud83d", "")
        said = [("Ana", "likes", "Bo", 0.5, {"note": text, "notes": [text, 1]})]
        graph = document("d", Says(text, [("Ana", "p", 0.9, {"note": text}), ("Bo", "p", 0.9), ("Cy" + text, text, 0.5)], said))
        cy = replace(graph.mentions[2], entity_id="cy", key="cy")
        store.replace_documents([replace(graph, mentions=(*graph.mentions[:2], cy)), pair("other", "Di", "likes", "Ed")])
        assert store.find_entities(keys=["ana"])[0].properties == {"note": clean}
        assert next(store.relations()).properties == {"note": clean, "notes": [clean, 1]}
        assert store.chunks_of(["cy"])["cy"][0].record.text == clean
        (entity,) = store.find_entities(keys=["cy"])
        assert (entity.label, entity.type) == ("Cy" + clean, clean)
        assert {"Di", "Ed"} <= labels(store.entities())

    @settings(
        max_examples=40,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
    )
    @given(st.dictionaries(st.text('abid_`é "', max_size=4), json_values, max_size=4))
    def test_any_properties_read_back_equal(self, store: GraphStore, properties: Any) -> None:
        store.replace_documents([document("d", Says("x", [("Ana", "p", 0.9, properties)]))])
        expected = {key: value for key, value in properties.items() if value is not None}
        found = store.find_entities(keys=["ana"])[0].properties
        assert found == expected
        assert json.dumps(found, sort_keys=True) == json.dumps(expected, sort_keys=True)  # 1 is not 1.0, and not True

    @pytest.mark.parametrize(
        "ids",
        [
            ["A", "a", "Á", "á"],
            ["x y", "x  y", "x,y"],
            ["a\\", "a'", 'a"', "a`"],
            ["😀", "由", "x" * 500, "x" * 499],
            ["NULL", "*", "a*", "1", "@a:{b}"],
        ],
    )
    def test_any_id_and_key_is_told_from_every_other(self, store: GraphStore, ids: Any) -> None:
        graph = document("d", Says("x", [("x", "p", 0.5)]))
        mentions = tuple(replace(graph.mentions[0], entity_id=id_, key=id_) for id_ in ids)
        store.replace_documents([replace(graph, mentions=mentions)])
        for id_ in ids:
            assert [e.id for e in store.find_entities(ids=[id_])] == [id_]
            assert [e.id for e in store.find_entities(keys=[id_])] == [id_]
            assert store.find_entities(ids=[f" {id_} ", id_ + "\n"], keys=[f" {id_} "]) == []
        assert [e.id for e in store.entities()] == sorted(ids)

    def test_relations_whose_ends_the_document_does_not_mention_are_refused(self, store: GraphStore) -> None:
        graph = pair("d", "Ana", "likes", "Bo")
        broken = replace(graph, mentions=graph.mentions[:1])
        with pytest.raises(StoreError, match="no mention"):
            store.replace_documents([pair("ok", "Cy", "likes", "Di"), broken])
        assert store.stats().documents == 0

    @pytest.mark.parametrize("score", [float("nan"), float("inf"), None, "0.5"])
    def test_a_score_that_is_no_finite_number_is_refused(self, store: GraphStore, score: Any) -> None:
        graph = pair("d", "Ana", "likes", "Bo")
        broken = replace(graph, relations=(replace(graph.relations[0], score=score),))
        with pytest.raises(StoreError, match="score"):
            store.replace_documents([broken])

    def test_a_neighbourhood_grows_hop_by_hop(self, store: GraphStore) -> None:
        store.replace_documents(
            [pair(f"d{n}", f"n{n}", "next", f"n{n + 1}") for n in range(5)] + [pair("loop", "n2", "next", "n0")]
        )
        for hops, expected in ((0, {"n0": 0}), (1, {"n0": 0, "n1": 1, "n2": 1}), (2, {"n0": 0, "n1": 1, "n2": 1, "n3": 2})):
            found = store.neighbourhood(["e-n0", "e-unknown"], hops)
            assert {entity.label: hop for entity, hop in found.entities} == expected
        found = store.neighbourhood(["e-n0"], 1)
        assert {r.id for r in found.relations} == {
            relation_id(*r) for r in (("n0", "next", "n1"), ("n1", "next", "n2"), ("n2", "next", "n0"))
        }
        assert {r.id for r in store.neighbourhood(["e-n1", "e-n0"], 0).relations} == {relation_id("n0", "next", "n1")}

    def test_a_neighbourhood_stops_at_its_limit_nearest_first(self, store: GraphStore) -> None:
        store.replace_documents([pair(f"d{n:02}", "hub", "has", f"leaf{n:02}") for n in range(20)])
        found = store.neighbourhood(["e-hub"], 2, limit=6)
        assert [(e.id, hop) for e, hop in found.entities] == [("e-hub", 0)] + [(f"e-leaf{n:02}", 1) for n in range(5)]
        assert len(found.relations) == 5
        seeds = [f"e-leaf{n:02}" for n in range(8)]
        assert [e.id for e, _ in store.neighbourhood(seeds, 1, limit=4).entities] == seeds

    def test_pages_give_every_row_in_order(self, store: GraphStore) -> None:
        store.replace_documents([pair(f"d{n:03}", f"a{n:03}", "likes", f"b{n:03}") for n in range(120)])
        entities = [entity.id for entity in store.entities(page_size=7)]
        assert entities == sorted(entities)
        assert len(set(entities)) == 240 == len(entities)
        relations = [relation.id for relation in store.relations(page_size=7)]
        assert len(set(relations)) == 120 == len(relations)
        assert relations == [relation.id for relation in store.relations()]

    def test_pages_of_no_size_still_give_every_row(self, store: GraphStore) -> None:
        store.replace_documents([pair("d", "Ana", "likes", "Bo")])
        assert len(list(store.entities(page_size=1))) == 2

    def test_two_documents_of_one_id_are_refused(self, store: GraphStore) -> None:
        with pytest.raises(StoreError, match="twice"):
            store.replace_documents([pair("d", "Ana", "likes", "Bo"), pair("d", "Ana", "likes", "Cy")])
