"""How much is asked at once and in a minute, how errors differ, and what all of it costs."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from resources.errors import LLMError, SettingsError
from resources.models.llm.client import UsageTotals
from resources.models.llm.limits import Gate
from tests.support.llm_stub import Scripted, chat_model, refuses, says, scripted_llm, streams

HELLO = [{"role": "user", "content": "Hello"}]
TOO_LONG = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens."


def test_no_more_requests_are_under_way_than_allowed_over_all_objects_of_an_endpoint():
    slow = says("Hi.")
    slow.delay = 0.1
    with scripted_llm(slow) as stub:
        models = [chat_model(f"{stub.base_url}{'/' * (n % 2)}", f"m{n}", max_concurrency=3) for n in range(4)]
        with ThreadPoolExecutor(12) as pool:
            list(pool.map(lambda n: models[n % 4].complete(HELLO), range(12)))
    assert stub.most_at_once == 3


def test_a_failure_gives_its_place_back():
    with scripted_llm(refuses(400, "no"), refuses(400, "no"), says("Hi.")) as stub:
        llm = chat_model(stub.base_url, "m", max_concurrency=1)
        for _ in range(2):
            with pytest.raises(LLMError):
                llm.complete(HELLO)
        assert llm.complete(HELLO).text == "Hi."


def test_no_more_requests_begin_in_a_minute_than_allowed(monkeypatch):
    monkeypatch.setattr("resources.models.llm.limits._MINUTE", 0.5)
    gate, starts = Gate(), []

    def go():
        with gate.slot(10, 3):
            starts.append(time.monotonic())

    threads = [threading.Thread(target=go) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join(10) for thread in threads]
    starts.sort()
    assert len(starts) == 8
    assert starts[2] - starts[0] < 0.4
    assert all(later - earlier >= 0.49 for earlier, later in zip(starts, starts[3:], strict=False))


def test_the_rate_limit_holds_for_requests_and_not_for_cached_replies(monkeypatch, tmp_path):
    monkeypatch.setattr("resources.models.llm.limits._MINUTE", 0.6)
    with scripted_llm(says("Hi.")) as stub:
        llm = chat_model(stub.base_url, "m", requests_per_minute=1, cache_file=tmp_path / "c.db")
        started = time.monotonic()
        for text in "aaaab":
            llm.complete([{"role": "user", "content": text}])
        assert 0.55 < time.monotonic() - started < 3
    assert len(stub.requests) == 2


def test_when_one_is_told_to_wait_the_others_wait_too():
    with scripted_llm(refuses(429, "slow down", Retry_After="0.5"), says("Hi.")) as stub:
        llm = chat_model(stub.base_url, "m")
        started = time.monotonic()
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(llm.complete, HELLO)
            while not stub.requests:
                time.sleep(0.01)
            time.sleep(0.1)
            assert pool.submit(chat_model(stub.base_url, "m").complete, HELLO).result().text == "Hi."
            assert time.monotonic() - started > 0.45
            assert first.result().text == "Hi."


@pytest.mark.parametrize("limit", [{"max_concurrency": 0}, {"requests_per_minute": 0}])
def test_a_limit_that_lets_nothing_through_is_refused(limit):
    with pytest.raises(SettingsError, match="greater than 0"):
        chat_model("http://localhost:1/v1", **limit)


HELD_OPEN = {
    "one byte at a time": Scripted(says("Hello there.").body, byte_pause=0.05),
    "comments alone": Scripted(events=[*streams("Hi.").events], comments=200, pause=0.05),
    "empty events": streams(*([{"content": ""}] * 200), pause=0.05),
}


@pytest.mark.parametrize("reply", HELD_OPEN.values(), ids=HELD_OPEN)
def test_a_server_that_sends_but_never_gets_on_is_a_time_out(reply):
    with scripted_llm(reply) as stub:
        llm = chat_model(stub.base_url, timeout=0.4, max_retries=0)
        started = time.monotonic()
        with pytest.raises(LLMError, match=r"within 0\.4 s") as caught:
            llm.complete(HELLO, on_text=print)
        taken = time.monotonic() - started
    assert caught.value.kind == "timeout"
    assert 0.35 < taken < 1.5


def test_a_stream_may_take_longer_than_the_time_limit_as_long_as_text_arrives():
    with scripted_llm(streams(*"abcdef", pause=0.15)) as stub:
        assert chat_model(stub.base_url, timeout=0.5, max_retries=0).complete(HELLO, on_text=print).text == "abcdef"


@pytest.mark.parametrize(
    "reply",
    [
        Scripted('{"choices": [{"message": {"content": "Hel', headers={"Content-Length": "500"}),
        Scripted('{"choices": [{"message": {"content": "Hel'),
    ],
    ids=["shorter than announced", "without a length"],
)
def test_a_body_that_is_cut_is_reported_as_incomplete(reply):
    with scripted_llm(reply) as stub, pytest.raises(LLMError, match="incomplete reply") as caught:
        chat_model(stub.base_url, max_retries=0).complete(HELLO)
    assert caught.value.kind == "server"
    assert "reached" not in str(caught.value)


FORMAT_REFUSALS = {
    "500 that names it": [refuses(500, "response_format caused a crash")] * 2,
    "501": [refuses(501, "Not implemented")],
    "404": [refuses(404, "Not found")],
    "unknown field": [refuses(400, "unknown field guided_json")],
    "extra input": [refuses(400, "Extra inputs are not permitted: strict")],
}


@pytest.mark.parametrize("refusals", FORMAT_REFUSALS.values(), ids=FORMAT_REFUSALS)
def test_structured_output_that_is_refused_in_other_words_is_left_out_and_that_is_remembered(refusals, caplog):
    with scripted_llm(*refusals, says("{}")) as stub:
        llm = chat_model(stub.base_url)
        for _ in range(2):
            assert llm.complete(HELLO, json_schema={"type": "object"}).text == "{}"
    sent = ["response_format" in request for request in stub.requests]
    assert sent == [True] * len(refusals) + [False, False]
    assert caplog.text.count("does not support structured output") == 1


def test_an_error_that_stays_without_structured_output_is_reported_and_nothing_is_remembered():
    with scripted_llm(refuses(404, "no such model")) as stub:
        llm = chat_model(stub.base_url)
        for _ in range(2):
            with pytest.raises(LLMError, match="no such model"):
                llm.complete(HELLO, json_schema={"type": "object"})
    assert ["response_format" in request for request in stub.requests] == [True, False, True, False]


@pytest.mark.slow
def test_errors_that_pass_are_waited_for_and_others_are_not():
    """1, 2, 5 and 6 succeed, 3 stops for good, 4 is told apart and is not repeated."""
    slow = Scripted(says("late").body, delay=1.0)
    with scripted_llm(
        says("1"),
        refuses(429, "busy", Retry_After="1"),
        refuses(429, "busy", Retry_After="1"),
        refuses(429, "busy"),
        says("2"),
        slow,
        says("5"),
        refuses(502, "bad gateway"),
        refuses(503, "overloaded"),
        says("6"),
        refuses(400, TOO_LONG, code="context_length_exceeded"),
        refuses(429, "You exceeded your current quota", code="insufficient_quota"),
    ) as stub:
        llm = chat_model(stub.base_url, "m", backoff=0.01, timeout=0.5)
        assert llm.complete(HELLO).text == "1"
        started = time.monotonic()
        assert llm.complete(HELLO).text == "2"
        assert 2.0 <= time.monotonic() - started < 4
        assert [llm.complete(HELLO).text for _ in range(2)] == ["5", "6"]
        with pytest.raises(LLMError, match="longer than the model's context") as caught:
            llm.complete(HELLO)
        assert caught.value.kind == "context_length"
        for _ in range(3):
            with pytest.raises(LLMError, match="quota or balance is used up") as caught:
                llm.complete(HELLO)
            assert caught.value.kind == "quota"
    assert len(stub.requests) == 12


def test_all_waits_of_a_call_together_have_an_upper_bound():
    with scripted_llm(refuses(429, "slow down", Retry_After="0.3")) as stub:
        llm = chat_model(stub.base_url, "m", max_retries=100, max_wait=1.0)
        started = time.monotonic()
        with pytest.raises(LLMError, match=r"answered 429 \(tried 5 times\)") as caught:
            llm.complete(HELLO)
    assert 0.95 < time.monotonic() - started < 3
    assert caught.value.kind == "rate_limit"


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (
            refuses(400, "request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it"),
            "context_length",
        ),
        (refuses(500, "Context size has been exceeded."), "context_length"),
        (Scripted({"error": "Trying to keep the first 9 tokens when context the overflows."}), "context_length"),
        (refuses(400, f"'max_tokens' or 'max_completion_tokens' is too large: 800. {TOO_LONG}"), "context_length"),
        (refuses(429, "Request too large for m on tokens per min (TPM): Limit 10, Requested 20"), "context_length"),
        (refuses(402, "Insufficient Balance"), "quota"),
        (refuses(429, "Your account is not active", code="billing_not_active"), "quota"),
        (refuses(401, "wrong key"), "credentials"),
        (refuses(403, "not you"), "credentials"),
        (refuses(404, "no such model"), "request"),
        (refuses(501, "not implemented"), "request"),
        (refuses(500, "out of memory"), "server"),
        (Scripted({"error": {"message": "upstream is down", "code": 502}}), "server"),
        (Scripted("<html>"), "reply"),
    ],
)
def test_the_kind_of_an_error_tells_what_to_do(reply, kind):
    with scripted_llm(reply) as stub, pytest.raises(LLMError) as caught:
        chat_model(stub.base_url, "m", max_retries=1, backoff=0.01).complete(HELLO, max_tokens=5)
    assert caught.value.kind == kind
    assert len(stub.requests) == (2 if kind == "server" else 1)


def test_a_limit_that_comes_with_a_quota_word_but_passes_is_waited_for():
    with scripted_llm(refuses(429, "Quota exceeded for requests per minute", code="rate_limit"), says("Hi.")) as stub:
        assert chat_model(stub.base_url, "m", backoff=0.01).complete(HELLO).text == "Hi."


def test_requests_tokens_and_cost_are_counted(tmp_path):
    with scripted_llm(says("Hi."), says("Hi.", usage=False), says("Hi.")) as stub:
        llm = chat_model(stub.base_url, "m", prompt_price=2, completion_price=10, cache_file=tmp_path / "c.db")
        for text in "abcc":
            llm.complete([{"role": "user", "content": text}])
    assert llm.usage == UsageTotals(3, 1, 14, 6, requests_without_usage=1, cost=pytest.approx((14 * 2 + 6 * 10) / 1e6))


def test_without_prices_there_is_no_cost_and_threads_lose_no_count():
    with scripted_llm(says("Hi.")) as stub:
        llm = chat_model(stub.base_url, "m", max_concurrency=8)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: llm.complete(HELLO), range(40)))
    assert llm.usage == UsageTotals(40, 0, 280, 120, 0, None)
