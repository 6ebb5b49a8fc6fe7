"""Tool calls as servers differ in them; whatever they send, a call has an id, a name and arguments as text."""

import json

import pytest

from resources.errors import LLMError
from resources.models.llm.client import ToolCall
from tests.support.llm_stub import calls, chat_model, refuses, says, scripted_llm, streams

TOOLS = [
    {"type": "function", "function": {"name": "find", "parameters": {"type": "object", "properties": {"q": {"type": "string"}}}}}
]
HELLO = [{"role": "user", "content": "Who?"}]


def ask(reply, **options):
    with scripted_llm(reply) as stub:
        return chat_model(stub.base_url, "m").complete(HELLO, tools=TOOLS, **options)


def whole_and_streamed(*tool_calls):
    """The same calls in a completion, in one event of a stream, and spread over one event each."""
    yield ask(says(None, "tool_calls", tool_calls=list(tool_calls)))
    yield ask(streams({"tool_calls": list(tool_calls)}, finish_reason="tool_calls"), on_text=print)
    yield ask(streams(*({"tool_calls": [call]} for call in tool_calls), finish_reason="tool_calls"), on_text=print)


def test_tools_and_the_messages_about_their_calls_are_sent_as_they_are():
    messages = [
        *HELLO,
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "a1", "type": "function", "function": {"name": "find", "arguments": '{"q": "Ana'}}],
        },
        {"role": "tool", "tool_call_id": "a1", "content": "no JSON"},
    ]
    with scripted_llm(calls(("find", {"q": "Ana"}), ("find", "{broken"))) as stub:
        reply = chat_model(stub.base_url, "m").complete(messages, tools=TOOLS)
    assert stub.requests[0]["messages"] == messages
    assert stub.requests[0]["tools"] == TOOLS
    assert reply.tool_calls == (ToolCall("call-1", "find", '{"q": "Ana"}'), ToolCall("call-2", "find", "{broken"))
    assert (reply.text, reply.finish_reason) == ("", "tool_calls")


@pytest.mark.parametrize("tools", [None, []])
def test_without_tools_none_are_sent(tools):
    with scripted_llm(says("Hi.")) as stub:
        assert chat_model(stub.base_url, "m").complete(HELLO, tools=tools).tool_calls == ()
    assert "tools" not in stub.requests[0]


def test_calls_in_pieces_are_put_together():
    pieces = [
        {"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "find", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"q": '}}]},
        {"tool_calls": [{"index": 1, "id": "b", "function": {"name": "count", "arguments": "{"}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '"Ana"}'}}, {"index": 1, "function": {"arguments": "}"}}]},
    ]
    reply = ask(streams("I look.", *pieces, finish_reason="tool_calls"), on_text=print)
    assert reply.tool_calls == (ToolCall("a", "find", '{"q": "Ana"}'), ToolCall("b", "count", "{}"))
    assert reply.text == "I look."


@pytest.mark.parametrize("index", [{}, {"index": 0}], ids=["no index", "always 0"])
def test_calls_that_are_numbered_wrongly_stay_apart(index):
    """Ollama (ollama/ollama#7881 and #15457)."""
    tool_calls = [{**index, "id": f"c{n}", "function": {"name": "find", "arguments": f'{{"q": {n}}}'}} for n in (1, 2)]
    for reply in whole_and_streamed(*tool_calls):
        assert reply.tool_calls == (ToolCall("c1", "find", '{"q": 1}'), ToolCall("c2", "find", '{"q": 2}'))


@pytest.mark.parametrize("bad_id", [{}, {"id": ""}, {"id": None}, {"id": "same"}])
def test_ids_that_are_missing_or_twice_the_same_are_given(bad_id):
    tool_calls = [{"index": n, **bad_id, "function": {"name": "find", "arguments": "{}"}} for n in range(2)]
    for reply in whole_and_streamed(*tool_calls):
        assert len({call.id for call in reply.tool_calls if call.id}) == 2


def test_arguments_that_are_no_text_become_text():
    tool_calls = [
        {"index": 0, "id": "a", "function": {"name": "find", "arguments": {"q": "Çığ"}}},
        {"index": 1, "id": "b", "function": {"name": "find", "arguments": None}},
        {"index": 2, "id": "c", "function": {"name": "find"}},
        {"index": 3, "id": "d", "function": {"name": "find", "arguments": ""}},
    ]
    for reply in whole_and_streamed(*tool_calls):
        assert [json.loads(call.arguments) for call in reply.tool_calls] == [{"q": "Çığ"}, {}, {}, {}]


@pytest.mark.parametrize(("said", "meant"), [("stop", "tool_calls"), (None, "tool_calls"), ("length", "length")])
def test_the_finish_reason_says_that_tools_are_called_unless_the_reply_was_cut(said, meant):
    assert ask(calls(("find", {}), finish_reason=said)).finish_reason == meant


@pytest.mark.parametrize(
    "refusal",
    [
        refuses(400, "registry.ollama.ai/library/gemma:2b does not support tools"),
        refuses(400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        refuses(500, "tools param requires --jinja flag"),
        refuses(404, "No endpoints found that support tool use."),
        refuses(422, "unknown parameter: 'tools'"),
    ],
)
def test_a_server_that_does_not_support_tools_is_an_error_that_says_so(refusal):
    with scripted_llm(refusal) as stub, pytest.raises(LLMError, match="does not support tools") as caught:
        chat_model(stub.base_url, "m").complete(HELLO, tools=TOOLS)
    assert (caught.value.kind, len(stub.requests)) == ("tools", 1)


def test_a_wrong_conversation_is_not_taken_for_a_server_without_tools():
    said = "messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
    with scripted_llm(refuses(400, said)) as stub, pytest.raises(LLMError, match="must be a response") as caught:
        chat_model(stub.base_url, "m").complete(HELLO, tools=TOOLS)
    assert caught.value.kind == "request"
