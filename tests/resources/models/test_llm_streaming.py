"""A reply that is shown while it comes: only what is meant for the reader, and the same reply as without."""

import itertools
import json
import threading
import time

import pytest

from resources.errors import LLMError
from resources.models.llm.client import Reply, Usage
from resources.models.llm.reasoning import VisibleText, without_reasoning
from tests.support.llm_stub import Scripted, chat_model, refuses, says, scripted_llm, streams

HELLO = [{"role": "user", "content": "Hello"}]


def ask(*replies, name="m", times=1, **options):
    """The last reply, the pieces shown for it, and the stub."""
    with scripted_llm(*replies) as stub:
        llm = chat_model(stub.base_url, name, **{"backoff": 0.01, "timeout": 5.0, **options})
        for _ in range(times):
            shown = []
            reply = llm.complete(HELLO, on_text=shown.append)
    return reply, shown, stub


def test_pieces_are_shown_as_they_come():
    came = []
    with scripted_llm(streams("One ", "two ", "three.", pause=0.1)) as stub:
        reply = chat_model(stub.base_url, "m").complete(HELLO, on_text=lambda piece: came.append((time.monotonic(), piece)))
        ended = time.monotonic()
    assert "".join(piece for _, piece in came) == "One two three."
    assert ended - came[0][0] > 0.2
    assert reply == Reply("One two three.", "stop", Usage(7, 3))
    assert stub.requests[0]["stream"] is True
    assert stub.requests[0]["stream_options"] == {"include_usage": True}


def test_without_a_reader_nothing_streams():
    with scripted_llm(says("Hi.")) as stub:
        chat_model(stub.base_url, "m").complete(HELLO)
    assert "stream" not in stub.requests[0]


def test_a_server_that_does_not_stream_gives_its_text_at_once():
    reply, shown, _ = ask(says("<think>Hm.</think>One two."))
    assert (shown, reply.text, reply.usage) == (["One two."], "One two.", Usage(7, 3))


@pytest.mark.parametrize(
    "said",
    [
        "<think>Let me see.\n{}</think>\n\nUlm, I\nthink.  ",
        "<think></think>Ulm",
        "  Ulm < Neu-Ulm, a <b>small</b> [town] <thin>",
        "<thinking>Hm</thinking>A<think>b</think>C",
        "<mm:think>Hm</mm:think>A [THINK]b[/THINK]C",
        "A <think>cut in the middle",
        "<think>only thought",
        "a<",
        "<<think>x</think>>",
    ],
)
def test_no_piece_shows_any_reasoning_however_the_text_is_split(said):
    for splits in itertools.chain(itertools.combinations(range(1, len(said)), 2), [tuple(range(1, len(said)))]):
        visible = VisibleText()
        bounds = [0, *splits, len(said)]
        pieces = [visible.feed(said[a:b]) for a, b in itertools.pairwise(bounds)]
        assert "".join([*pieces, visible.end()]) == without_reasoning(said)


def test_reasoning_in_pieces_or_in_a_field_of_its_own_is_not_shown():
    thoughts = [
        {"reasoning_content": "Secretly."},
        {"reasoning": "Secretly."},
        {"content": [{"type": "thinking", "thinking": []}]},
    ]
    reply, shown, _ = ask(
        streams(*thoughts, "<th", "ink>Secretly.</thi", "nk>\n\nUlm", {"content": [{"type": "text", "text": "."}]})
    )
    assert "".join(shown) == reply.text == "Ulm."


def test_reasoning_without_an_opening_tag_is_never_in_the_reply_and_is_held_back_once_it_is_known():
    reply, shown, _ = ask(streams("Let me ", "see.</think>", "Ulm", "."), times=2)
    assert (reply.text, shown) == ("Ulm.", ["Ulm", "."])


@pytest.mark.parametrize("name", ["DeepSeek-R1-Distill-Qwen-7B", "qwen3-235b-thinking", "qwq"])
def test_a_model_that_is_known_to_reason_is_waited_for(name):
    reply, shown, _ = ask(streams("Let me ", "see.</think>", "Ulm."), name=name)
    assert (reply.text, shown) == ("Ulm.", ["Ulm."])
    reply, shown, _ = ask(streams("Ulm", "."), name=name)
    assert (reply.text, shown) == ("Ulm.", ["Ulm."])


def test_a_model_that_reasons_in_a_field_of_its_own_is_not_waited_for():
    _, shown, _ = ask(streams({"content": "", "reasoning": "Let me see."}, "Ulm ", "is it."), name="deepseek-r1")
    assert shown == ["Ulm", " is it."]


def test_a_server_that_knows_no_stream_options_is_asked_without():
    refusal = refuses(400, "Unknown field: stream_options")
    reply, shown, stub = ask(refusal, streams("Ulm.", usage=False), times=2)
    assert (reply.text, reply.usage, shown) == ("Ulm.", None, ["Ulm."])
    assert ["stream_options" in request for request in stub.requests] == [True, False, False]


def test_a_server_that_refuses_to_stream_is_asked_without():
    reply, shown, stub = ask(refuses(400, "streaming is not supported by this model"), says("Ulm."), times=2)
    assert (reply.text, shown) == ("Ulm.", ["Ulm."])
    assert ["stream" in request for request in stub.requests] == [True, False, False]


EARLY_ENDS = [
    streams({"role": "assistant"}, finish_reason=None, done=False),
    streams({"role": "assistant"}, finish_reason=None, done=False, breaks=True),
    Scripted(events=[{"error": {"message": "engine died", "code": 500}}]),
    Scripted(events=["{half a"]),
]


@pytest.mark.parametrize("end", EARLY_ENDS, ids=["ends", "reset", "error", "no JSON"])
def test_a_stream_that_breaks_before_text_was_shown_is_tried_again(end):
    reply, shown, stub = ask(end, streams("Ulm."))
    assert (reply.text, shown, len(stub.requests)) == ("Ulm.", ["Ulm."], 2)


@pytest.mark.parametrize("end", EARLY_ENDS, ids=["ends", "reset", "error", "no JSON"])
def test_a_stream_that_breaks_after_text_was_shown_is_an_error(end):
    beginning = streams("Ulm is", finish_reason=None, usage=False, done=False).events
    with scripted_llm(Scripted(events=beginning + end.events, breaks=end.breaks, pause=0.05)) as stub:
        llm = chat_model(stub.base_url, "m", backoff=0.01)
        shown = []
        with pytest.raises(LLMError, match="broke off in the middle") as caught:
            llm.complete(HELLO, on_text=shown.append)
    assert (caught.value.kind, shown, len(stub.requests)) == ("stream", ["Ulm is"], 1)
    assert (llm.usage.requests, llm.usage.requests_without_usage) == (1, 1)


def test_a_stream_that_stalls_is_a_time_out():
    with (
        scripted_llm(streams("Ulm.", pause=2.0)) as stub,
        pytest.raises(LLMError, match="broke off"),
    ):
        chat_model(stub.base_url, "m", timeout=0.3).complete(HELLO, on_text=lambda _: None)
    with scripted_llm(streams({"role": "assistant"}, pause=2.0), streams("Ulm.")) as stub:
        assert chat_model(stub.base_url, "m", timeout=0.3).complete(HELLO, on_text=lambda _: None).text == "Ulm."


def test_a_stream_that_breaks_after_the_model_stopped_is_whole():
    reply, shown, _ = ask(streams("Ulm.", usage=False, done=False, breaks=True, pause=0.05))
    assert (reply, shown) == (Reply("Ulm.", "stop"), ["Ulm."])


def test_the_end_of_a_stream_without_a_finish_reason_is_believed():
    assert ask(streams("Ulm.", finish_reason=None))[0] == Reply("Ulm.", None, Usage(7, 3))


def test_comments_odd_line_separators_and_emoji_in_two_halves_do_no_harm():
    events = streams("a\u2028b\x85c \ud83d", "\ude00").events
    texts = [event if isinstance(event, str) else json.dumps(event) for event in events]
    unescaped = [text.replace("\\u2028", "\u2028").replace("\\u0085", "\x85") for text in texts]
    body = ": keep-alive\r\n\r\n" + "".join(f"data:{text}\r\n\r\n" for text in unescaped)
    reply, shown, _ = ask(Scripted(body, headers={"Content-Type": "text/event-stream; charset=utf-8"}))
    assert reply.text.startswith("a\u2028b\x85c")
    assert "".join(shown) == reply.text
    reply.text.encode()


def test_a_refusal_that_streams_is_handed_on():
    assert ask(streams({"refusal": "I can't "}, {"refusal": "help."}))[0].refusal == "I can't help."


def test_what_the_reader_raises_comes_through_and_frees_the_endpoint():
    def reader(_):
        raise BrokenPipeError("the terminal is gone")

    with scripted_llm(streams("Ulm.")) as stub:
        llm = chat_model(stub.base_url, "m", max_concurrency=1)
        for _ in range(2):
            with pytest.raises(BrokenPipeError):
                llm.complete(HELLO, on_text=reader)
        assert llm.complete(HELLO, on_text=lambda _: None).text == "Ulm."


def test_several_streams_at_once_do_not_mix():
    texts = {}
    with scripted_llm(*(streams(*f"{number} {number} {number}".split(" "), pause=0.02) for number in range(8))) as stub:
        llm = chat_model(stub.base_url, "m", max_concurrency=8)

        def run(thread):
            shown = []
            texts[thread] = (llm.complete(HELLO, on_text=shown.append).text, "".join(shown))

        threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    assert sorted(texts.values()) == [(str(number) * 3,) * 2 for number in range(8)]
    assert llm.usage.requests == 8
