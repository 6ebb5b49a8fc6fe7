"""Triples that tools add while they work, and finding them again."""

import gc
import json
import threading

import pytest

from resources.errors import SettingsError
from resources.text.names import identity_key
from retrico_assets.graph.identity import entity_id, relation_id
from retrico_assets.query.providers.live_triples import (
    KG_ADD_TRIPLE,
    KnowledgeTools,
    KnowledgeToolsProvider,
    kg_add_triple,
    live_triples,
    process_tools,
    query_tokens,
)
from retrico_assets.query.providers.rule import graph_ranking
from retrico_assets.query.question.question import Question
from retrico_assets.query.sources import Sources


def ask(text, k=10):
    return graph_ranking([KnowledgeToolsProvider(Sources())], Question(text), k)


def triples(found):
    names = {one.record.id: one.record.label for one in found.entities}
    return [(names[one.record.head_id], one.record.label, names[one.record.tail_id]) for one in found.relations]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Auth Service", ["auth", "service"]),
        ("İstanbul", ["i", "stanbul"]),
        ("ıslak", ["slak"]),
        ("東京", []),
        ("", []),
        ("auth-service_v2, AUTH!", ["auth", "service", "v2", "auth"]),
    ],
)
def test_a_question_is_cut_into_ascii_tokens(text, tokens):
    assert query_tokens(text) == tokens


def test_a_triple_is_found_with_its_source():
    tools = KnowledgeTools()
    tools.kg_add_triple("Auth Service", "depends on", "Zookeeper Q17")
    found = ask("What does the auth service depend on, zookeeper q17?")
    assert triples(found)[0] == ("Auth Service", "depends on", "Zookeeper Q17")
    assert found.relations[0].record.properties == {"source": "knowledge-tools"}
    assert found.relations[0].record.chunk_ids == ()
    assert {one.record.properties["source"] for one in found.entities} == {"knowledge-tools"}
    assert len(tools.triples()) == 1


def test_ids_are_those_that_a_build_would_give():
    tools = KnowledgeTools()
    tools.kg_add_triple("The Quixotic Wombat", "lives in", "Ulm")
    found = ask("quixotic wombat")
    head, tail = (entity_id(identity_key(name), "", None, "name") for name in ("quixotic wombat", "ULM"))
    assert found.relations[0].record.id == relation_id(head, "lives in", tail, None, None)
    assert tools.triples()


@pytest.mark.parametrize("question", ["東京", "", "🤔", "?!", "\0"])
def test_a_question_without_tokens_matches_nothing(question):
    tools = KnowledgeTools()
    tools.kg_add_triple("東京", "capital of", "日本")
    assert ask(question).relations == ()
    assert tools.triples()


def test_what_is_added_after_binding_is_found_by_the_next_retrieval():
    provider = KnowledgeToolsProvider(Sources())
    tools = KnowledgeTools()
    question = Question("xylophonist")
    assert graph_ranking([provider], question, 5).relations == ()
    tools.kg_add_triple("Xylophonist", "plays", "Marimba")
    assert triples(graph_ranking([provider], question, 5)) == [("Xylophonist", "plays", "Marimba")]


def test_every_live_instance_counts_and_a_collected_one_is_gone():
    first, second = KnowledgeTools(), KnowledgeTools()
    first.kg_add_triple("Vexillologist", "studies", "Flags")
    second.kg_add_triple("Vexillologist", "studies", "Flags")
    second.kg_add_triple("Vexillologist", "lives in", "Ulm")
    assert len(ask("vexillologist").relations) == 2
    del second
    gc.collect()
    assert triples(ask("vexillologist")) == [("Vexillologist", "studies", "Flags")]
    del first
    gc.collect()
    assert ask("vexillologist").relations == ()


def test_the_better_match_comes_first_and_k_cuts():
    tools = KnowledgeTools()
    tools.kg_add_triple("Oryx Gateway", "calls", "Oryx Ledger")
    tools.kg_add_triple("Oryx Ledger", "stores", "Invoices")
    tools.kg_add_triple("Oryx Gateway", "is", "Fast")
    found = ask("oryx gateway calls")
    assert triples(found) == [
        ("Oryx Gateway", "calls", "Oryx Ledger"),
        ("Oryx Gateway", "is", "Fast"),
        ("Oryx Ledger", "stores", "Invoices"),
    ]
    assert [one.score for one in found.relations] == pytest.approx([1, 2 / 3, 1 / 3])
    assert triples(ask("oryx gateway calls", k=1)) == triples(found)[:1]
    assert len(tools.triples()) == 3


def test_spellings_of_one_name_are_one_entity_and_one_relation():
    tools = KnowledgeTools()
    tools.kg_add_triple("The Pangolin Service", "uses", "Redis")
    tools.kg_add_triple("pangolin-service", "uses", "REDIS")
    assert len(ask("pangolin").relations) == 1
    assert len(ask("pangolin").entities) == 2
    assert len(tools.triples()) == 2


@pytest.mark.parametrize(
    ("triple", "fault"),
    [
        (("", "knows", "B"), "subject is blank"),
        (("A", " \n", "B"), "predicate is blank"),
        (("A", "knows", "\0"), "object is blank"),
        ((None, "knows", "B"), "subject must be text, got NoneType None"),
        (("A", 7, "B"), "predicate must be text, got int 7"),
        (("A", "knows", ["B"]), "object must be text, got list"),
        (("?!", "knows", "B"), "subject '\\?!' has no letter or digit"),
    ],
)
def test_a_part_that_says_nothing_is_refused(triple, fault):
    tools = KnowledgeTools()
    with pytest.raises(SettingsError, match=f"kg_add_triple: {fault}"):
        tools.kg_add_triple(*triple)
    assert tools.triples() == ()


def test_the_tool_takes_what_its_definition_asks_for():
    tools = KnowledgeTools()
    ((definition, function),) = tools.tools()
    assert definition is KG_ADD_TRIPLE
    parameters = json.loads(json.dumps(definition))["function"]["parameters"]
    assert set(parameters["required"]) == set(parameters["properties"]) == {"subject", "predicate", "object"}
    said = function(**json.loads('{"subject": "Numbat", "predicate": "eats", "object": "Termites"}'))
    assert said == "remembered: Numbat | eats | Termites"
    assert tools.triples() == (("Numbat", "eats", "Termites"),)


def test_the_function_of_the_module_keeps_its_triples_as_long_as_the_process():
    kg_add_triple("Quokka", "lives on", "Rottnest")
    gc.collect()
    assert ("Quokka", "lives on", "Rottnest") in process_tools().triples()
    assert triples(ask("quokka")) == [("Quokka", "lives on", "Rottnest")]


def test_threads_may_add_make_and_read_at_once():
    shared = KnowledgeTools()
    kept, faults = [], []

    def work(number):
        try:
            own = KnowledgeTools()
            kept.append(own)
            for step in range(50):
                shared.kg_add_triple(f"Threadling {number}", "takes step", f"S{step}")
                own.kg_add_triple(f"Threadling {number}", "owns", f"O{step}")
                KnowledgeTools()
                live_triples()
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert len([t for t in live_triples() if t[0].startswith("Threadling")]) == 400
