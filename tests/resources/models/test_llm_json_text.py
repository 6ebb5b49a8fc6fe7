"""What is read from a model's reply that should be JSON."""

import json
import time

import pytest

from resources.models.llm.json_text import read_json

ANA_IN_OSLO = [{"text": "Ana", "label": "person"}, {"text": "Oslo", "label": "location"}]
OBJECT = json.dumps({"entities": ANA_IN_OSLO})


@pytest.mark.parametrize(
    "reply",
    [
        f"```json\n{OBJECT}\n```",
        f"Sure! Here it is:\n{OBJECT[:-2]},]}}\nHope this helps.",
        json.dumps(ANA_IN_OSLO),
        "\ufeff" + OBJECT.replace("entities", "Entities"),
        '<think>draft {"entities":[{"text":"WRONG","label":"person"}]}</think>\n' + OBJECT,
        OBJECT + '{"entities":[]}',
    ],
    ids=["fence", "trailing comma", "list", "byte order mark", "reasoning", "two objects"],
)
def test_small_differences_of_form_do_not_matter(reply):
    value = read_json(reply)
    entities = value if isinstance(value, list) else next(iter(value.values()))
    assert entities == ANA_IN_OSLO


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("{}", {}),
        ("[]", []),
        ('["a", "b"]', ["a", "b"]),
        ('As [1] and [c2] say, {for short}: {"answer": "yes"} [end]', {"answer": "yes"}),
        ('{"answer": "a [c1] b", "ids": ["c1"', {"answer": "a [c1] b", "ids": ["c1"]}),
        ("{'answer': 'Ulm', 'sure': True, 'note': None}", {"answer": "Ulm", "sure": True, "note": None}),
        ('{answer: "Ulm"}', {"answer": "Ulm"}),
        ('{"answer": "two\nlines"}', {"answer": "two\nlines"}),
        ('{"answer": "a } and a ] in it",} {"answer": "no"}', {"answer": "a } and a ] in it"}),
        ('{"answer": "```\\n[1]\\n```"}', {"answer": "```\n[1]\n```"}),
        ('{"a": 1} and {"b": 2}', {"a": 1}),
        ('[{"a": 1},] [{"b": 2}]', [{"a": 1}]),
        ("", None),
        ("no JSON here", None),
        ("12", None),
        ('<think>{"a": 1}</think> nothing', None),
        ('<think>{"a": 1}', None),
        ('{"a": 1}</think>{"b": 2}', {"b": 2}),
    ],
)
def test_the_first_value_that_says_something_is_read(reply, value):
    assert read_json(reply) == value


@pytest.mark.parametrize("reply", ["[" * 100_000, '{"a":' * 50_000, "[1, " * 50_000, '{"' * 50_000], ids=lambda reply: reply[:5])
def test_what_is_nested_without_end_neither_fails_nor_hangs(reply):
    started = time.monotonic()
    read_json(reply)
    assert time.monotonic() - started < 5
