"""Replies that are kept: what counts as the same request, what is kept, and that the file never stands in the way."""

import json
import logging
import multiprocessing
import sqlite3
import threading

import pytest

from resources.models.llm.cache import ReplyCache
from resources.models.llm.client import Reply, ToolCall, Usage, UsageTotals
from tests.support.llm_stub import calls, chat_model, says, scripted_llm, streams

HELLO = [{"role": "user", "content": "Hello"}]
SCHEMA = {"type": "object"}
TOOLS = [{"type": "function", "function": {"name": "find"}}]


def test_the_same_request_is_answered_once_also_for_another_object(tmp_path):
    with scripted_llm(says("Hi."), says("Never.")) as stub:
        for _ in range(2):
            llm = chat_model(stub.base_url, "m", cache_file=tmp_path / "new" / "c.db", prompt_price=2, completion_price=10)
            assert llm.complete(HELLO) == llm.complete(HELLO) == Reply("Hi.", "stop", Usage(7, 3))
            llm.close()
    assert len(stub.requests) == 1
    assert llm.usage == UsageTotals(cached=2, cost=0.0)


@pytest.mark.parametrize(
    "other",
    [
        {"messages": [{"role": "user", "content": "Hello!"}]},
        {"json_schema": SCHEMA},
        {"max_tokens": 5},
        {"tools": TOOLS},
        {"temperature": 0.5, "cached": True},
        {"name": "other"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_another_request_is_another_reply(tmp_path, other):
    with scripted_llm(says('["One."]'), says('["Two."]')) as stub:
        ask = {"messages": HELLO}
        assert chat_model(stub.base_url, "m", cache_file=tmp_path / "c.db").complete(**ask).text == '["One."]'
        llm = chat_model(stub.base_url, other.pop("name", "m"), cache_file=tmp_path / "c.db")
        assert llm.complete(**ask | other).text == '["Two."]'
        assert llm.complete(**ask | other).text == '["Two."]'
    assert len(stub.requests) == 2


def test_another_endpoint_is_another_reply(tmp_path):
    for text in ("One.", "Two."):
        with scripted_llm(says(text), prefix=f"/{text}/v1") as stub:
            assert chat_model(stub.base_url, "m", cache_file=tmp_path / "c.db").complete(HELLO).text == text


def test_chance_is_not_kept_unless_asked(tmp_path):
    with scripted_llm(says("One."), says("Two."), says("Three.")) as stub:
        llm = chat_model(stub.base_url, "m", cache_file=tmp_path / "c.db")
        said = [llm.complete(HELLO, temperature=1, cached=cached).text for cached in (None, None, True, True, None)]
    assert said == ["One.", "Two.", "Three.", "Three.", "Three."]
    assert len(stub.requests) == 4


def test_asking_anew_replaces_what_was_kept(tmp_path):
    with scripted_llm(says("One."), says("Two.")) as stub:
        llm = chat_model(stub.base_url, "m", cache_file=tmp_path / "c.db")
        assert [llm.complete(HELLO, cached=cached).text for cached in (None, False, None)] == ["One.", "Two.", "Two."]


@pytest.mark.parametrize(
    "reply",
    [says("cut", "length"), says("filtered", "content_filter"), says(None, refusal="No."), says(""), says("<think>only</think>")],
)
def test_a_reply_that_is_cut_refused_or_empty_is_not_kept(tmp_path, reply):
    with scripted_llm(reply, says("Whole.")) as stub:
        llm = chat_model(stub.base_url, "m", cache_file=tmp_path / "c.db")
        llm.complete(HELLO)
        assert llm.complete(HELLO).text == "Whole."


def test_a_reply_without_the_json_asked_for_is_not_kept(tmp_path):
    with scripted_llm(says("I would rather talk."), says('{"a": 1,}'), says("Never.")) as stub:
        llm = chat_model(stub.base_url, "m", cache_file=tmp_path / "c.db")
        said = [llm.complete(HELLO, json_schema=SCHEMA).text for _ in range(3)]
    assert said == ["I would rather talk.", '{"a": 1,}', '{"a": 1,}']


def test_tool_calls_are_kept_too(tmp_path):
    with scripted_llm(calls(("find", {"q": 1}))) as stub:
        llm = chat_model(stub.base_url, "m", cache_file=tmp_path / "c.db")
        first, second = (llm.complete(HELLO, tools=TOOLS) for _ in range(2))
    assert first == second
    assert second.tool_calls == (ToolCall("call-1", "find", '{"q": 1}'),)
    assert len(stub.requests) == 1


def test_a_streamed_reply_is_kept_and_given_at_once(tmp_path):
    with scripted_llm(streams("One ", "two.")) as stub:
        llm = chat_model(stub.base_url, "m", cache_file=tmp_path / "c.db")
        for pieces in (["One", " two."], ["One two."]):
            shown = []
            llm.complete(HELLO, on_text=shown.append)
            assert shown == pieces
    assert (llm.usage.requests, llm.usage.cached) == (1, 1)


def test_without_a_file_nothing_is_kept():
    with scripted_llm(says("One."), says("Two.")) as stub:
        llm = chat_model(stub.base_url, "m")
        assert [llm.complete(HELLO).text for _ in range(2)] == ["One.", "Two."]


@pytest.mark.parametrize(
    "content", [b"no database at all, but long enough for a header" * 50, b"SQLite format 3\0" + b"\xff" * 5000]
)
def test_a_damaged_file_is_put_aside_with_a_warning(tmp_path, caplog, content):
    file = tmp_path / "c.db"
    file.write_bytes(content)
    with scripted_llm(says("Hi.")) as stub:
        llm = chat_model(stub.base_url, "m", cache_file=file)
        assert [llm.complete(HELLO).text for _ in range(2)] == ["Hi.", "Hi."]
    assert len(stub.requests) == 1
    assert [path.read_bytes() for path in tmp_path.glob("c.db.damaged-*")] == [content]
    assert "damaged" in caplog.text


def test_a_file_that_is_damaged_while_in_use_is_put_aside(tmp_path):
    file = tmp_path / "c.db"
    cache = ReplyCache(file)
    for number in range(300):
        cache.put(f"{number}", Reply("x" * 1000, "stop"))
    cache.close()
    with file.open("r+b") as content:
        content.seek(4096)
        content.write(b"\xff" * 200_000)
    assert cache.get("7") is None
    cache.put("7", Reply("again", "stop"))
    assert cache.get("7") == Reply("again", "stop")
    assert len(list(tmp_path.glob("c.db.damaged-*"))) == 1


@pytest.mark.parametrize("obstacle", ["a folder", "another table"])
def test_a_file_that_cannot_be_used_costs_the_cache_and_nothing_else(tmp_path, caplog, obstacle):
    file = tmp_path / "c.db"
    if obstacle == "a folder":
        file.mkdir()
    else:
        with sqlite3.connect(file) as other:
            other.execute("CREATE TABLE replies (something TEXT)")
    caplog.set_level(logging.WARNING)
    with scripted_llm(says("Hi.")) as stub:
        llm = chat_model(stub.base_url, "m", cache_file=file)
        assert [llm.complete(HELLO).text for _ in range(2)] == ["Hi.", "Hi."]
    assert len(stub.requests) == 2
    assert caplog.text.count("not cached") == 1
    assert file.exists()


def test_a_row_of_another_make_is_asked_anew(tmp_path):
    file = tmp_path / "c.db"
    with scripted_llm(says("One."), says("Two.")) as stub:
        llm = chat_model(stub.base_url, "m", cache_file=file)
        llm.complete(HELLO)
        with sqlite3.connect(file) as other:
            other.execute("UPDATE replies SET reply = ?", (json.dumps({"text": "?"}),))
        assert [llm.complete(HELLO).text for _ in range(2)] == ["Two.", "Two."]


def test_the_file_holds_neither_the_key_nor_the_question(tmp_path, monkeypatch):
    monkeypatch.setenv("RETRICO_TEST_KEY", "sk-CANARY-1")
    with scripted_llm(says("Hi.")) as stub:
        llm = chat_model(stub.base_url, api_key={"env": "RETRICO_TEST_KEY"}, cache_file=tmp_path / "c.db")
        llm.complete([{"role": "user", "content": "a confidential question"}])
    held = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"Hi." in held
    assert b"CANARY" not in held
    assert b"confidential" not in held


def _fill(file, start, many):
    cache = ReplyCache(file)
    for number in range(start, start + many):
        cache.put(f"{number}", Reply(f"reply {number}", "stop"))
    cache.close()


@pytest.mark.parametrize("is_damaged", [False, True])
def test_threads_and_processes_share_one_file(tmp_path, is_damaged):
    file = tmp_path / "c.db"
    if is_damaged:
        file.write_bytes(b"no database" * 1000)
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_fill, args=(file, 1000 * n, 100)) for n in range(2)]
    workers += [threading.Thread(target=_fill, args=(file, 1000 * n, 100)) for n in range(2, 4)]
    [worker.start() for worker in workers]
    [worker.join(60) for worker in workers]
    cache = ReplyCache(file)
    found = sum(cache.get(f"{1000 * n + m}") is not None for n in range(4) for m in range(100))
    assert found == 400
    assert len(list(tmp_path.glob("c.db.damaged-*"))) == is_damaged
