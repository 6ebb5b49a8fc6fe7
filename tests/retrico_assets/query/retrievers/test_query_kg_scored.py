"""Triple patterns matched in real graphs (reference C29, B1, B34): what fits, how it is scored, what the model adds."""

import json
from collections.abc import Mapping, Sequence

import pytest

from resources.errors import LLMError, SettingsError, StoreError
from retrico_assets.query.answer import answer
from retrico_assets.query.question.linking import link
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers.base import make_retriever
from retrico_assets.query.sources import Sources
from tests.support.llm_stub import chat_model, refuses, says, scripted_llm
from tests.support.query_stores import GRAPHS, ODD_QUESTIONS, check, fact_id, id_of, names, opened, scores, tell, triples

ANA, BO, CY = "Ana Ruiz", "Bo Lind", "Cy Moss"
FACTS = [
    (ANA, "works at", "Kestrel Labs", 0.875),
    (ANA, "born in", "Oslo", 0.625),
    (BO, "works at", "Kestrel Labs", 0.75),
    (BO, "born in", "Oslo", 0.375),
    ("Kestrel Labs", "located in", "Oslo", 0.5),
    (CY, "lives in", "Bergen", 0.5),
]


class Model:
    """A KG model that knows what it is told: plausibility by (head, label, tail) names."""

    def __init__(self, plausible):
        self._plausible = {(id_of(h), label, id_of(t)): score for (h, label, t), score in plausible.items()}
        self.batches: list[list[tuple[str, str, str]]] = []

    def score(self, triples: Sequence[tuple[str, str, str]]) -> list[float | None]:
        self.batches.append(list(triples))
        return [self._plausible.get(triple) for triple in triples]

    def predict(self, head: str | None, relation: str, tail: str | None, k: int) -> list[tuple[str, str, str, float]]:
        fitting = [(*t, s) for t, s in self._plausible.items() if t[0] == (head or t[0]) and t[2] == (tail or t[2])]
        return sorted((one for one in fitting if one[1] == relation), key=lambda one: -one[3])[:k]

    def caveats(self, revision: str, entities: Mapping[str, str]) -> list[str]:
        known = {end for head, _, tail in self._plausible for end in (head, tail)}
        return [f"not scored: {name}" for id_, name in entities.items() if id_ not in known]


@pytest.fixture(scope="module", params=GRAPHS)
def stores(request, tmp_path_factory):
    with opened(request.param, tmp_path_factory.mktemp("kg")) as (graph, texts):
        tell(graph, texts, FACTS)
        yield graph, texts


def ask(stores, text, k=10, *, llm=None, kg=None, **options):
    graph, texts = stores
    retriever = make_retriever("kg_scored", Sources(graph, texts, llm=llm, kg=kg), options)
    found = retriever.retrieve(link(Question(text), graph), k)
    check(found, k)
    return found


def ask_llm(stores, patterns, **options):
    """What is found when the language model makes these (head, relation, tail) patterns of a question."""
    reply = {"patterns": [dict(zip(("head", "relation", "tail"), pattern, strict=True)) for pattern in patterns]}
    with scripted_llm(says(json.dumps(reply))) as stub:
        found = ask(stores, "Anything?", llm=chat_model(stub.base_url, "scripted", max_retries=0), **options)
        assert len(stub.requests) == 1
    return found


def test_a_known_head_finds_what_it_points_to(stores):
    found = ask(stores, "Where was Ana Ruiz born?")
    assert triples(found) == [(ANA, "born in", "Oslo")]
    assert scores(found) == [0.625]
    assert names(found) == [ANA, "Oslo"]
    assert [(one.record.id, one.score) for one in found.chunks] == [(f"{ANA} born in Oslo.", 0.625)]
    assert found.relations[0].record.id == fact_id(ANA, "born in", "Oslo")


def test_a_known_tail_finds_what_points_to_it(stores):
    found = ask(stores, "Who was born in Oslo?")
    assert triples(found) == [(ANA, "born in", "Oslo"), (BO, "born in", "Oslo")]
    assert scores(found) == [0.625, 0.375]
    assert [chunk.record.text for chunk in found.chunks] == [f"{ANA} born in Oslo.", f"{BO} born in Oslo."]


def test_two_named_entities_find_the_relation_between_them_first(stores):
    found = ask(stores, "What has Kestrel Labs to do with Ana Ruiz?")
    assert triples(found)[0] == (ANA, "works at", "Kestrel Labs")
    assert scores(found)[0] == 0.875
    assert max(scores(found)[1:]) == 0.75 / 4


def test_a_question_that_says_no_relation_finds_any_for_a_quarter(stores):
    found = ask(stores, "Tell me of Cy Moss")
    assert (triples(found), scores(found)) == ([(CY, "lives in", "Bergen")], [0.125])


def test_an_unknown_entity_finds_nothing(stores):
    found = ask(stores, "Where was Zoe Quux born?")
    assert (found.entities, found.relations, found.chunks) == ((), (), ())


def test_a_relation_that_the_entity_does_not_have_finds_nothing(stores):
    assert triples(ask(stores, "Where was Cy Moss born?")) == []


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ((ANA, "born in", None), [(ANA, "born in", "Oslo")]),
        ((None, "born in", "Oslo"), [(ANA, "born in", "Oslo"), (BO, "born in", "Oslo")]),
        ((BO, "works at", "Kestrel Labs"), [(BO, "works at", "Kestrel Labs")]),
        ((BO, "works at", "Oslo"), []),
        ((BO, None, None), [(BO, "works at", "Kestrel Labs"), (BO, "born in", "Oslo")]),
        ((BO, None, "Oslo"), [(BO, "born in", "Oslo")]),
        ((None, "located in", None), [("Kestrel Labs", "located in", "Oslo")]),
        ((ANA, "BORN_IN", None), [(ANA, "born in", "Oslo")]),
        ((ANA, "birth", None), [(ANA, "born in", "Oslo")]),
        (("Ruiz", "born in", None), [(ANA, "born in", "Oslo")]),
        (("Zoe Quux", "born in", None), []),
        ((None, "born in", "Zoe Quux"), []),
        ((None, "supervises", None), []),
        ((None, None, None), []),
    ],
)
def test_each_place_of_a_pattern_may_be_open(stores, pattern, expected):
    assert triples(ask_llm(stores, [pattern])) == expected


def test_several_patterns_are_all_looked_for_and_each_relation_counts_once(stores):
    found = ask_llm(stores, [(ANA, "born in", None), (None, "born in", "Oslo"), (CY, "lives in", None)])
    assert triples(found) == [(ANA, "born in", "Oslo"), (CY, "lives in", "Bergen"), (BO, "born in", "Oslo")]


def test_a_relation_that_the_graph_does_not_have_leaves_any_of_the_entity(stores):
    found = ask_llm(stores, [(CY, "supervises", None)])
    assert (triples(found), scores(found)) == ([(CY, "lives in", "Bergen")], [0.125])


def test_a_threshold_leaves_out_what_scores_less(stores):
    assert triples(ask(stores, "Who was born in Oslo?", min_score=0.5)) == [(ANA, "born in", "Oslo")]
    assert triples(ask(stores, "Who was born in Oslo?", min_score=0.9)) == []


def test_each_pattern_keeps_its_best(stores):
    found = ask_llm(stores, [(None, "born in", "Oslo"), (None, "works at", None)], per_pattern=1)
    assert triples(found) == [(ANA, "works at", "Kestrel Labs"), (ANA, "born in", "Oslo")]


def test_the_question_keeps_its_best(stores):
    assert triples(ask(stores, "Who was born in Oslo?", k=1)) == [(ANA, "born in", "Oslo")]


def test_the_scores_of_a_model_are_used_and_asked_for_once(stores):
    model = Model({(ANA, "born in", "Oslo"): 0.25, (BO, "born in", "Oslo"): 0.75})
    found = ask(stores, "Who was born in Oslo?", kg=model)
    assert triples(found) == [(BO, "born in", "Oslo"), (ANA, "born in", "Oslo")]
    assert scores(found) == [0.75, 0.25]
    assert [one.record.properties["score_source"] for one in found.relations] == ["kg_model", "kg_model"]
    assert [len(batch) for batch in model.batches] == [2]
    assert triples(ask(stores, "Who was born in Oslo?", kg=model, min_score=0.5)) == [(BO, "born in", "Oslo")]


def test_what_the_model_does_not_know_keeps_its_own_score_and_says_so(stores):
    found = ask(stores, "Who was born in Oslo?", kg=Model({(BO, "born in", "Oslo"): 0.5}))
    assert scores(found) == [0.625, 0.5]
    assert [one.record.properties["score_source"] for one in found.relations] == ["graph", "kg_model"]


def test_without_a_model_a_relation_is_as_it_is_stored(stores):
    found = ask(stores, "Where was Ana Ruiz born?")
    assert found.relations[0].record == next(r for r in stores[0].relations() if r.id == fact_id(ANA, "born in", "Oslo"))


def test_predicted_tails_come_below_the_stated_and_bring_their_entities(stores):
    model = Model(
        {
            (ANA, "born in", "Oslo"): 0.5,
            (ANA, "born in", "Bergen"): 1.0,
            (ANA, "born in", "Kestrel Labs"): 0.25,
            (ANA, "born in", ANA): 1.0,
            (ANA, "born in", "Nowhere"): 1.0,
        }
    )
    found = ask(stores, "Where was Ana Ruiz born?", kg=model)
    assert triples(found) == [(ANA, "born in", "Oslo"), (ANA, "born in", "Bergen")]
    predicted = found.relations[1].record
    assert predicted.properties == {"predicted": True, "score_source": "kg_model"}
    assert (predicted.id, predicted.chunk_ids, predicted.score) == (fact_id(ANA, "born in", "Bergen"), (), 1.0)
    assert "Bergen" in names(found)
    assert [chunk.record.text for chunk in found.chunks] == [f"{ANA} born in Oslo."]


def test_the_threshold_of_predictions_and_their_number_are_options(stores):
    model = Model({(CY, "born in", "Oslo"): 0.75, (CY, "born in", "Bergen"): 0.375})
    question = "Where was Cy Moss born?"
    assert triples(ask(stores, question, kg=model)) == [(CY, "born in", "Oslo")]
    both = ask(stores, question, kg=model, prediction_threshold=0.25)
    assert (triples(both), scores(both)) == ([(CY, "born in", "Oslo"), (CY, "born in", "Bergen")], [0.75, 0.375])
    assert triples(ask(stores, question, kg=model, prediction_threshold=0.25, predictions=1)) == [(CY, "born in", "Oslo")]
    assert triples(ask(stores, question, kg=model, predict_tails=False)) == []


def test_heads_are_predicted_when_asked_for(stores):
    model = Model({(ANA, "lives in", "Bergen"): 0.75, (CY, "lives in", "Bergen"): 0.5})
    question = "Who lives in Bergen?"
    assert triples(ask(stores, question, kg=model)) == [(CY, "lives in", "Bergen")]
    found = ask(stores, question, kg=model, predict_heads=True)
    assert triples(found) == [(CY, "lives in", "Bergen"), (ANA, "lives in", "Bergen")]
    assert scores(found) == [0.5, 0.375]


def test_a_stated_triple_is_never_a_prediction(stores):  # B34
    model = Model({(BO, "works at", "Kestrel Labs"): 1.0, (BO, "works at", "Oslo"): 0.75})
    found = ask(stores, "Where does Bo Lind work?", kg=model, min_score=0.0, per_pattern=1)
    assert triples(found) == [(BO, "works at", "Kestrel Labs"), (BO, "works at", "Oslo")]
    assert [one.record.properties.get("predicted", False) for one in found.relations] == [False, True]
    hidden = ask(stores, "Where does Bo Lind work?", kg=Model({(BO, "works at", "Kestrel Labs"): 0.25}), min_score=0.5)
    assert triples(hidden) == []  # below the threshold, and still no news


def test_a_pattern_open_on_both_sides_is_not_predicted(stores):
    model = Model({(CY, "located in", "Bergen"): 1.0})
    with scripted_llm(says(json.dumps({"patterns": [{"head": None, "relation": "located in", "tail": None}]}))) as stub:
        found = ask(stores, "Where?", llm=chat_model(stub.base_url, "scripted"), kg=model, predict_heads=True)
    assert triples(found) == [("Kestrel Labs", "located in", "Oslo")]


def test_a_failing_language_model_fails_the_strategy_unless_the_rule_is_chosen(stores):
    with scripted_llm(refuses(500, "down")) as stub:
        llm = chat_model(stub.base_url, "scripted", max_retries=0)
        with pytest.raises(LLMError, match="500"):
            ask(stores, "Where was Ana Ruiz born?", llm=llm)
        asked = len(stub.requests)
        assert triples(ask(stores, "Where was Ana Ruiz born?", llm=llm, patterns="rule")) == [(ANA, "born in", "Oslo")]
        assert len(stub.requests) == asked


def test_patterns_by_a_language_model_need_one(stores):
    with pytest.raises(SettingsError, match="patterns: llm, but there is no language model"):
        ask(stores, "Where was Ana Ruiz born?", patterns="llm")
    with pytest.raises(SettingsError, match=r"kg_scored\.patterns is"):
        ask(stores, "Where was Ana Ruiz born?", patterns="magic")


def test_names_that_could_not_be_looked_up_fail_the_strategy(stores):
    with pytest.raises(StoreError, match="graph is down"):
        make_retriever("kg_scored", Sources(*stores)).retrieve(Question("Ana Ruiz", fault="graph is down"), 3)


@pytest.mark.parametrize("kind", GRAPHS)
def test_a_label_that_is_new_in_the_graph_is_known_at_once(kind, tmp_path):
    with opened(kind, tmp_path) as stores:
        tell(*stores, [(ANA, "works at", "Kestrel Labs", 0.5)])
        assert triples(ask(stores, "Where was Ana Ruiz born?")) == [(ANA, "works at", "Kestrel Labs")]
        tell(*stores, [(ANA, "born in", "Oslo", 0.5)])
        assert triples(ask(stores, "Where was Ana Ruiz born?")) == [(ANA, "born in", "Oslo")]


def test_what_a_model_says_never_becomes_a_part_of_a_statement(stores):  # B13, B14
    before = list(stores[0].relations())
    evil = "x'}) MATCH (n) DETACH DELETE n //"
    assert triples(ask_llm(stores, [(evil, evil, evil), (None, f"x`]->() {evil}", None), (evil, "born in", None)])) == []
    assert triples(ask_llm(stores, [(ANA, f"born in`]->(b) {evil}", "Oslo")])) == [(ANA, "born in", "Oslo")]
    assert list(stores[0].relations()) == before


def test_a_hub_is_read_within_limits(tmp_path):
    with opened("memory", tmp_path) as (graph, texts):
        tell(graph, texts, [("Hub", "knows", f"Friend {n}", (n + 1) / 512) for n in range(511)])
        found = ask((graph, texts), "Who does Hub know? He knows many.", k=20, per_pattern=15)
        assert [one.score for one in found.relations] == [(511 - n) / 512 for n in range(15)]


@pytest.mark.parametrize("question", ODD_QUESTIONS)
def test_an_odd_question_is_no_error(stores, question):
    model = Model({(ANA, "born in", "Bergen"): 0.75})
    for found in (ask(stores, question), ask(stores, question, kg=model, k=1)):
        if "Ana" not in question:
            assert (found.entities, found.relations, found.chunks) == ((), (), ())


def test_what_the_model_does_not_know_is_a_note_of_the_answer(stores):
    graph, texts = stores
    question = f"Where does {BO} work?"
    known = Model({(BO, "works at", "Kestrel Labs"): 0.9})
    told = answer(question, graph=graph, texts=texts, kg=known, strategies=["kg_scored"])
    assert told.failures == ()
    assert [note for note in told.notes if BO in note] == []
    told = answer(question, graph=graph, texts=texts, kg=Model({}), strategies=["kg_scored", "entity"])
    assert f"not scored: {BO}" in told.notes
    assert answer(question, graph=graph, texts=texts, kg=Model({}), strategies=["entity"]).notes == ()
