"""How a question becomes triple patterns: by rule, and by what a language model says."""

import json

import pytest

from resources.errors import LLMError
from resources.records import Entity
from resources.text.names import identity_key
from retrico_assets.query.question.question import Question
from retrico_assets.query.question.triple_patterns import (
    LABEL_BUDGET,
    MOST_PATTERNS,
    NamedPattern,
    TriplePattern,
    patterns_by_llm,
    patterns_by_rule,
    resolve_patterns,
)
from tests.support.llm_stub import chat_model, refuses, says, scripted_llm
from tests.support.query_stores import id_of, opened, tell

LABELS = {"born in": 3, "place_of_birth": 2, "works at": 1}


def entity(name, id=None):
    return Entity(id or id_of(name), name, identity_key(name), "thing")


def by_rule(text, *entities, labels=LABELS, **links):
    return patterns_by_rule(Question(text, entities=entities, link_scores=links), labels)


def by_llm(*replies, text="Where was Ana born?", labels=LABELS, types=None, entities=()):
    with scripted_llm(*replies) as stub:
        llm = chat_model(stub.base_url, "scripted", max_retries=0)
        return patterns_by_llm(Question(text, entities=entities), llm, labels, types or {"person": 1}), stub


def says_patterns(*patterns):
    return says(json.dumps({"patterns": [dict(zip(("head", "relation", "tail"), one, strict=True)) for one in patterns]}))


def test_by_rule_an_entity_is_head_and_tail_with_the_labels_that_the_question_says():
    said = {"born in": 1.0, "place_of_birth": 0.5}
    assert by_rule("Where was Ana born?", entity("Ana")) == [
        TriplePattern((id_of("Ana"),), said, None),
        TriplePattern(None, said, (id_of("Ana"),)),
    ]


def test_by_rule_a_question_that_says_no_label_takes_any_for_less():
    patterns = by_rule("Who is Ana?", entity("Ana", "a"))
    assert patterns == [TriplePattern(("a",), None, None, 0.25), TriplePattern(None, None, ("a",), 0.25)]


def test_by_rule_namesakes_are_one_name_and_two_names_a_pair():
    one, other, oslo = entity("Ana", "a1"), entity("Ana", "a2"), entity("Oslo", "o")
    patterns = by_rule("Was Ana born in Oslo?", one, other, oslo)
    assert patterns[0] == TriplePattern(("a1", "a2", "o"), None, ("a1", "a2", "o"))
    assert [pattern.head_ids for pattern in patterns[1:]] == [("a1", "a2"), None, ("o",), None]
    assert len(by_rule("Was Ana born?", one, other)) == 2


def test_by_rule_a_name_that_is_less_sure_counts_less():
    patterns = by_rule("Was Ana born in Oslo?", entity("Ana Ruiz", "a"), entity("Oslo", "o"), a=0.5)
    assert [pattern.weight for pattern in patterns] == [0.5, 0.5, 0.5, 1.0, 1.0]


def test_by_rule_a_question_without_a_known_name_has_no_pattern():
    assert by_rule("Who was born?") == by_rule("") == []


def test_a_language_model_gives_several_patterns_with_open_places():
    patterns, stub = by_llm(says_patterns(("Ana", "born in", None), (None, "works at", "Kestrel"), ("Ana", None, "Oslo")))
    assert patterns == [
        NamedPattern("Ana", "born in", None),
        NamedPattern(None, "works at", "Kestrel"),
        NamedPattern("Ana", None, "Oslo"),
    ]
    assert stub.requests[0]["response_format"]["type"] == "json_schema"


def test_the_prompt_lists_labels_types_and_known_names_as_data():
    _, stub = by_llm(
        says_patterns(("Ana", None, None)), text='Where was "Ana" born?', types={"person": 4}, entities=(entity("Ana Ruiz"),)
    )
    assert '["born in", "place_of_birth", "works at"]' in stub.prompt
    assert '["person"]' in stub.prompt
    assert '["Ana Ruiz"]' in stub.prompt
    assert stub.prompt.endswith('Question: Where was "Ana" born?')


def test_the_prompt_shows_the_most_frequent_of_very_many_labels():
    labels = {f"relation {n:05}": n for n in range(20_000)}
    _, stub = by_llm(says_patterns(("Ana", None, None)), labels=labels, text="x" * 60_000)
    assert "relation 19999" in stub.prompt
    assert "relation 00001" not in stub.prompt
    assert len(stub.prompt) < LABEL_BUDGET + 3000


@pytest.mark.parametrize("open_place", [None, "", "  ", "null", "?", "?x", "…", [], {}, True])
def test_models_write_an_open_place_in_many_ways(open_place):
    assert by_llm(says_patterns(("Ana", "born in", open_place)))[0] == [NamedPattern("Ana", "born in", None)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('```json\n{"patterns": [{"head": "Ana", "relation": null, "tail": null}]}\n```', [NamedPattern("Ana", None, None)]),
        ('Sure! [{"head": "Ana", "tail": "Oslo"}] Anything else?', [NamedPattern("Ana", None, "Oslo")]),
        ('{"head": "Ana", "relation": "born in", "tail": null}', [NamedPattern("Ana", "born in", None)]),
        ('{"patterns": [{"head": "Ana", "relation": "born in"', [NamedPattern("Ana", "born in", None)]),
        (
            '{"patterns": [3, "x", {"head": 1984, "relation": null, "tail": null, "why": "?"}]}',
            [NamedPattern("1984", None, None)],
        ),
        ('{"patterns": []}', []),
        ('{"patterns": [{"head": null, "relation": null, "tail": null}]}', []),
    ],
)
def test_replies_are_read_with_care(text, expected):
    assert by_llm(says(text))[0] == expected


def test_repeated_patterns_count_once_and_only_so_many_are_taken():
    many = [(f"Ana {n}", None, None) for n in range(50)]
    patterns, _ = by_llm(says_patterns(many[0], *many))
    assert patterns == [NamedPattern(f"Ana {n}", None, None) for n in range(MOST_PATTERNS)]


@pytest.mark.parametrize("text", ["I can't do that.", "", '{"patterns": "none"}', '{"patterns": [{"subject": "Ana"}]}', "[1, 2]"])
def test_a_reply_without_patterns_is_an_error_that_quotes_it(text):
    with pytest.raises(LLMError, match=r"holds no triple patterns.*Set patterns: rule") as error:
        by_llm(says(text))
    assert text in str(error.value)


def test_a_list_that_arrives_as_text_is_read():
    text = json.dumps({"patterns": json.dumps([{"head": "Ana", "relation": None, "tail": None}])})
    assert by_llm(says(text))[0] == [NamedPattern("Ana", None, None)]


def test_a_reply_that_is_not_an_object_is_asked_for_once_more():
    patterns, stub = by_llm(says("[1, 2]"), says_patterns(("Ana", None, None)))
    assert patterns == [NamedPattern("Ana", None, None)]
    assert ["JSON object alone" in request["messages"][-1]["content"] for request in stub.requests] == [False, True]


def test_a_refusal_and_a_failure_are_errors():
    with pytest.raises(LLMError, match=r"refused.*not for me"):
        by_llm(says(None, refusal="not for me"))
    with pytest.raises(LLMError, match="500"):
        by_llm(refuses(500, "down"))


@pytest.fixture(scope="module", params=["memory", "falkordb"])
def graph(request, tmp_path_factory):
    with opened(request.param, tmp_path_factory.mktemp("patterns")) as (graph, texts):
        tell(graph, texts, [("Marie Curie", "born in", "Warsaw", 0.5), ("Ulm", "twin of", "New York", 0.5)])
        yield graph


def resolved(graph, *patterns, labels=LABELS):
    return resolve_patterns([NamedPattern(*pattern) for pattern in patterns], graph, labels)


def test_a_name_is_found_whatever_its_case_and_punctuation(graph):
    (pattern,) = resolved(graph, ("MARIE-CURIE", "born in", "the Warsaw"))
    assert pattern == TriplePattern((id_of("Marie Curie"),), {"born in": 1.0}, (id_of("Warsaw"),))


def test_a_part_of_a_name_counts_by_its_share(graph):
    assert resolved(graph, ("Curie", "born in", None))[0] == TriplePattern((id_of("Marie Curie"),), {"born in": 1.0}, None, 0.5)
    assert resolved(graph, ("Marie Skłodowska Curie", "born in", None))[0].weight == pytest.approx(2 / 3)


@pytest.mark.parametrize("name", ["University of Ulm", "Ulm University", "York Castle", "Cur", "Zoe Quux", "Marie Antoinette"])
def test_another_name_is_no_name_of_an_entity(graph, name):
    assert resolved(graph, (name, "born in", None)) == []


@pytest.mark.parametrize(
    ("relation", "labels"),
    [
        ("born in", {"born in": 1.0}),
        ("BORN IN", {"born in": 1.0}),
        ("born_in", {"born in": 1.0}),
        ("place of birth", {"place_of_birth": 1.0}),
        ("birthplace", {"born in": 1.0, "place_of_birth": 0.5}),
        ("employer", {"works at": 1.0}),
    ],
)
def test_a_relation_is_matched_to_the_labels_of_the_graph(graph, relation, labels):
    assert resolved(graph, ("Ulm", relation, None)) == [TriplePattern((id_of("Ulm"),), labels, None)]


def test_labels_that_differ_in_case_are_told_apart_when_written_so(graph):
    twins = {"Born In": 1, "born in": 1}
    assert resolved(graph, (None, "born in", None), labels=twins)[0].labels == {"born in": 1.0}
    assert resolved(graph, (None, "BORN IN", None), labels=twins)[0].labels == {"Born In": 1.0, "born in": 1.0}


def test_an_unknown_relation_leaves_any_if_an_end_is_known(graph):
    patterns = resolved(graph, ("Ulm", "supervises", None), (None, "supervises", None))
    assert patterns == [TriplePattern((id_of("Ulm"),), None, None, 0.25)]
