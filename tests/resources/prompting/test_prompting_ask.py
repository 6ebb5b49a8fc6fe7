"""Asking a model for an object: what is read, when it is reminded, and what is a failure."""

from typing import Annotated, ClassVar

import pytest
from pydantic import BaseModel, BeforeValidator

from resources.prompting.ask import ask
from resources.prompting.replies import Flag, ModelReply, as_list, is_json
from tests.support.llm_stub import chat_model, refuses, says, scripted_llm

MESSAGES = [{"role": "system", "content": "Answer."}, {"role": "user", "content": "Who?"}]


class Item(BaseModel):
    name: str


class Items(ModelReply):
    example: ClassVar[str] = '{"items": [{"name": "Ana"}], "found": true}'
    items_field: ClassVar[str | None] = "items"

    items: Annotated[list[Item], BeforeValidator(as_list)]
    found: Flag = None


def asked(*replies, **options):
    with scripted_llm(*replies) as stub:
        llm = chat_model(stub.base_url, max_retries=0)
        return ask(llm, MESSAGES, Items, max_tokens=10, **options), stub, llm


@pytest.mark.parametrize(
    "text",
    [
        '{"items": [{"name": "Ana"}], "found": true}',
        '{"Items": [{"name": "Ana"}], "FOUND": "yes", "more": 1}',
        '{"items": "[{\\"name\\": \\"Ana\\"}]", "found": "True"}',
        '{"items": {"name": "Ana"}, "found": true}',
        '```json\n{"items": [{"name": "Ana"}], "found": true,}\n```',
    ],
)
def test_small_differences_of_form_are_read(text):
    result, stub, _ = asked(says(text))
    assert result.value == Items(items=[Item(name="Ana")], found=True)
    assert (result.failure, len(stub.requests)) == ("", 1)


@pytest.mark.parametrize("text", ['[{"name": "Ana"}]', '{"name": "Ana"}'])
def test_a_list_or_a_single_item_stands_for_the_object_that_contains_it(text):
    assert asked(says(text))[0].value == Items(items=[Item(name="Ana")])


@pytest.mark.parametrize("text", ["[1, 2]", '"text"', "Ana, I think.", "", "null", '{"items": [{"nobody": 1}]}'])
def test_a_reply_without_the_object_is_asked_for_once_more_and_then_a_failure(text):
    result, stub, llm = asked(says(text), says('{"items": []}'))
    assert result.value == Items(items=[])
    assert [Items.example in request["messages"][-1]["content"] for request in stub.requests] == [False, True]
    assert (llm.usage.requests, llm.usage.prompt_tokens) == (2, 14)
    result, stub, _ = asked(says(text))
    assert (result.value, len(stub.requests)) == (None, 2)
    assert (text or "empty") in result.failure
    assert len(asked(says(text), remind=False)[1].requests) == 1


def test_a_truncated_reply_is_marked_and_not_asked_for_again():
    result, stub, _ = asked(says('{"items": [{"name": "Ana"}', "length"))
    assert (result.value, result.is_truncated, len(stub.requests)) == (Items(items=[Item(name="Ana")]), True, 1)
    result, _, _ = asked(says("{", "length"))
    assert (result.value, result.is_truncated) == (None, True)
    assert "cut short" in result.failure


def test_a_refusal_and_a_failing_request_are_failures_at_once():
    result, stub, _ = asked(says(None, refusal="I can't."))
    assert (result.is_refused, result.failure, len(stub.requests)) == (True, 'the model refused: "I can\'t."', 1)
    result, stub, _ = asked(refuses(401, "bad key"))
    assert result.error.kind == "credentials"
    assert ("bad key" in result.failure, len(stub.requests)) == (True, 1)


def test_a_reminder_that_fails_leaves_the_failure_of_the_first_reply():
    result, _, _ = asked(says("Ana."), refuses(401, "bad key"))
    assert "Ana." in result.failure


def test_the_schema_is_strict_and_without_references():
    assert Items.schema_for_model() == {
        "type": "object",
        "properties": {
            "items": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}},
                    "required": ["name"],
                    "additionalProperties": False,
                },
            },
            "found": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
        },
        "required": ["items", "found"],
        "additionalProperties": False,
    }


JSON_OR_NOT = [('"text"', True), ("[1, 2]", True), ("{", True), ("[c1] says so", False), ("1879", False)]


@pytest.mark.parametrize(("text", "expected"), JSON_OR_NOT)
def test_json_is_distinguished_from_plain_text(text, expected):
    assert is_json(text) == expected
