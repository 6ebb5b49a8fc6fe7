"""The protocol against llama.cpp's own server with a model of 135M: what it says is poor, how it says it is real."""

import json

import pytest

from resources.errors import LLMError
from resources.models.llm.json_text import read_json
from tests.support.llm_stub import chat_model
from tests.support.local_llm import NEEDS_LOCAL_LLM, local_llm

HELLO = [{"role": "user", "content": "Tell a story of three sentences."}]
SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string", "maxLength": 20}},
    "required": ["answer"],
    "additionalProperties": False,
}


pytestmark = NEEDS_LOCAL_LLM


@pytest.fixture(scope="module")
def base_url():
    with local_llm(1024) as url:
        yield url


def test_a_stream_gives_the_same_reply_as_none(base_url, tmp_path):
    llm = chat_model(base_url, "smollm2", timeout=300, cache_file=tmp_path / "c.db")
    shown = []
    whole = llm.complete(HELLO, max_tokens=24, cached=False)
    streamed = llm.complete(HELLO, max_tokens=24, cached=False, on_text=shown.append)
    assert streamed == whole
    assert "".join(shown) == whole.text
    assert len(shown) > 5
    assert (whole.finish_reason, whole.usage.completion_tokens) == ("length", 24)
    assert llm.usage.completion_tokens == 48


def test_a_schema_is_obeyed(base_url):
    reply = chat_model(base_url, "smollm2", timeout=300).complete(HELLO, json_schema=SCHEMA, max_tokens=60)
    assert list(json.loads(reply.text)) == ["answer"]
    assert read_json(reply.text) == json.loads(reply.text)


def test_a_request_that_is_too_long_is_told_apart(base_url):
    for on_text in (None, print):
        with pytest.raises(LLMError, match="longer than the model's context") as caught:
            chat_model(base_url, "smollm2", timeout=300).complete([{"role": "user", "content": "word " * 3000}], on_text=on_text)
        assert caught.value.kind == "context_length"


def test_tools_and_the_messages_about_them_are_taken(base_url):
    tools = [{"type": "function", "function": {"name": "find", "parameters": {"type": "object", "properties": {}}}}]
    call = {"id": "a1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    messages = [
        *HELLO,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a1", "content": "nothing found"},
    ]
    llm = chat_model(base_url, "smollm2", timeout=300)
    for on_text in (None, print):
        reply = llm.complete(messages, tools=tools, max_tokens=8, on_text=on_text)
        assert reply.finish_reason in ("stop", "length", "tool_calls")
        assert reply.usage.completion_tokens <= 8
