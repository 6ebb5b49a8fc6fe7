"""The chat model against a scripted endpoint: retries, formats, secrets. A real local model is in test_query_reason.py."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate

import pytest

from resources.errors import LLMError, SettingsError
from resources.models.llm.client import Usage
from resources.models.llm.json_text import read_json
from resources.secrets import mask_secrets
from tests.support.llm_stub import Scripted, chat_model, refuses, says, scripted_llm

HELLO = [{"role": "user", "content": "Hello {x} %s <|endoftext|>"}]
SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
CANARY = "CANARY-key-1"


def model(url, **options):
    name = options.pop("api_key_env", None)
    return chat_model(url, api_key={"env": name} if name else None, **{"timeout": 5.0, **options})


def test_a_reply_brings_text_finish_reason_and_usage():
    with scripted_llm(says("Hi.")) as stub:
        reply = model(stub.base_url).complete(HELLO, max_tokens=12, temperature=0.5)
    assert (reply.text, reply.finish_reason, reply.usage) == ("Hi.", "stop", Usage(7, 3))
    assert stub.requests[0]["messages"] == HELLO
    assert (stub.requests[0]["max_tokens"], stub.requests[0]["temperature"]) == (12, 0.5)


@pytest.mark.parametrize("ending", ["", "/", "//"])
def test_base_url_may_end_with_a_slash(ending):
    with scripted_llm(says("Hi.")) as stub:
        assert model(stub.base_url + ending).complete(HELLO).text == "Hi."
    assert stub.paths == ["/v1/chat/completions"]


def test_a_missing_usage_is_none():
    with scripted_llm(says("Hi.", usage=False)) as stub:
        assert model(stub.base_url).complete(HELLO).usage is None


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("<think>Let me see.\nHm.</think>\n\nUlm.", "Ulm."),
        ("Let me see.</think>Ulm.", "Ulm."),
        ("<think>cut in the middle", ""),
        ("Ulm.", "Ulm."),
        (None, ""),
    ],
)
def test_the_reasoning_block_is_removed(said, text):
    with scripted_llm(says(said)) as stub:
        assert model(stub.base_url).complete(HELLO).text == text


def test_a_refusal_is_handed_on():
    with scripted_llm(says(None, refusal="I can't help with that.")) as stub:
        assert model(stub.base_url).complete(HELLO).refusal == "I can't help with that."


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_passing_error_is_tried_again(status):
    with scripted_llm(refuses(status, "busy"), refuses(status, "busy"), says("Hi.")) as stub:
        assert model(stub.base_url).complete(HELLO).text == "Hi."
    assert len(stub.requests) == 3


def test_retries_end():
    with (
        scripted_llm(refuses(503, "overloaded")) as stub,
        pytest.raises(LLMError, match=r"answered 503 \(tried 3 times\).*overloaded"),
    ):
        model(stub.base_url, max_retries=2).complete(HELLO)
    assert len(stub.requests) == 3


def test_a_time_out_is_tried_again_and_named():
    slow = Scripted(says("late").body, delay=1.0)
    with scripted_llm(slow, says("Hi.")) as stub:
        assert model(stub.base_url, timeout=0.3).complete(HELLO).text == "Hi."
    with scripted_llm(slow) as stub, pytest.raises(LLMError, match=r"no complete reply within 0.3 s \(tried 2 times\)"):
        model(stub.base_url, timeout=0.3, max_retries=1).complete(HELLO)


@pytest.mark.parametrize(
    "value", ["0.3", formatdate(time.time() + 3600, usegmt=True), "3600"], ids=["seconds", "date", "too long"]
)
def test_retry_after_is_honoured_with_an_upper_bound(value):
    with scripted_llm(refuses(429, "slow down", Retry_After=value), says("Hi.")) as stub:
        started = time.monotonic()
        assert model(stub.base_url, max_wait=0.4).complete(HELLO).text == "Hi."
        assert 0.25 < time.monotonic() - started < 3


def test_an_exhausted_quota_is_not_tried_again():
    with (
        scripted_llm(refuses(429, "You exceeded your quota", code="insufficient_quota")) as stub,
        pytest.raises(LLMError, match="quota"),
    ):
        model(stub.base_url).complete(HELLO)
    assert len(stub.requests) == 1


def test_a_bad_request_is_not_tried_again():
    with scripted_llm(refuses(400, "context length exceeded")) as stub, pytest.raises(LLMError, match="context length exceeded"):
        model(stub.base_url).complete(HELLO, json_schema=SCHEMA)
    assert len(stub.requests) == 1


def test_the_response_format_steps_down_and_is_remembered():
    with scripted_llm(
        refuses(400, "response_format json_schema is not supported"), refuses(400, "response_format?"), says("{}")
    ) as stub:
        llm = model(stub.base_url)
        llm.complete(HELLO, json_schema=SCHEMA)
        llm.complete(HELLO, json_schema=SCHEMA)
    formats = [request.get("response_format", {}).get("type") for request in stub.requests]
    assert formats == ["json_schema", "json_object", None, None]
    assert stub.requests[0]["response_format"]["json_schema"]["schema"] == SCHEMA


@pytest.mark.parametrize(
    "trouble", [refuses(429, "response_format requests are limited"), refuses(500, "response_format"), "slow"]
)
def test_a_passing_error_does_not_step_the_response_format_down(trouble):
    trouble = Scripted(says("late").body, delay=0.8) if trouble == "slow" else trouble
    with scripted_llm(trouble, says("{}")) as stub:
        model(stub.base_url, timeout=0.3).complete(HELLO, json_schema=SCHEMA)
    assert [request["response_format"]["type"] for request in stub.requests] == ["json_schema", "json_schema"]


def test_what_a_server_takes_is_known_to_every_object_but_not_for_another_model():
    with scripted_llm(refuses(400, "response_format json_schema is not supported"), says("{}")) as stub:
        model(stub.base_url).complete(HELLO, json_schema=SCHEMA)
        model(stub.base_url + "/").complete(HELLO, json_schema=SCHEMA)
        chat_model(stub.base_url, "other").complete(HELLO, json_schema=SCHEMA)
    formats = [request["response_format"]["type"] for request in stub.requests]
    assert formats == ["json_schema", "json_object", "json_object", "json_schema"]


def test_requests_that_are_refused_at_the_same_time_step_down_once():
    refusal = refuses(400, "response_format json_schema is not supported")
    refusal.delay = 0.2
    with scripted_llm(refusal, refusal, says("{}")) as stub, ThreadPoolExecutor(2) as pool:
        llm = model(stub.base_url)
        list(pool.map(lambda _: llm.complete(HELLO, json_schema=SCHEMA), range(2)))
    formats = sorted(request["response_format"]["type"] for request in stub.requests)
    assert formats == ["json_object", "json_object", "json_schema", "json_schema"]


def test_a_schema_that_is_refused_does_not_cost_the_others_theirs():
    refusal = "Invalid schema for response_format 'reply': 'additionalProperties' is required"
    with scripted_llm(refuses(400, refusal), refuses(400, "'response_format.type' must be 'json_schema'"), says("{}")) as stub:
        for schema in (SCHEMA, SCHEMA, {"type": "array"}):
            model(stub.base_url).complete(HELLO, json_schema=schema)
    formats = [request.get("response_format", {}).get("type") for request in stub.requests]
    assert formats == ["json_schema", "json_object", None, None, "json_schema"]


def test_json_mode_that_wants_the_word_json_is_kept_for_prompts_that_have_it():
    refusal = "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
    with scripted_llm(refuses(400, "json_schema is not supported"), refuses(400, refusal), says("{}")) as stub:
        model(stub.base_url).complete(HELLO, json_schema=SCHEMA)
        model(stub.base_url).complete([{"role": "user", "content": "Reply in JSON."}], json_schema=SCHEMA)
    formats = [request.get("response_format", {}).get("type") for request in stub.requests]
    assert formats == ["json_schema", "json_object", None, "json_object"]


def test_a_local_server_that_takes_only_a_schema_and_fences_its_reply_is_understood():
    """A schema is asked for first, a fenced block is read, an empty key and a slash at the end do no harm."""
    with scripted_llm(says('```json\n{"answer": "yes"}\n```')) as stub:
        for url in (stub.base_url, stub.base_url + "/"):
            assert read_json(model(url, api_key_env=None).complete(HELLO, json_schema=SCHEMA).text) == {"answer": "yes"}
    assert [request["response_format"]["type"] for request in stub.requests] == ["json_schema", "json_schema"]


@pytest.mark.parametrize(
    "text", ['{"entities":[{"text":"Ana","label":"person"},{"text":"Kest', '{"entities":[]}', "Ana moved to"]
)
@pytest.mark.parametrize("reason", ["length", "max_tokens", "MAX_TOKENS", "model_length"])
def test_a_reply_that_was_cut_says_so_also_when_it_can_be_read(text, reason):
    with scripted_llm(says(text, reason)) as stub:
        assert model(stub.base_url).complete(HELLO).finish_reason == "length"


def test_a_reply_that_is_cut_off_by_the_connection_is_asked_again():
    half = Scripted("{half", headers={"Content-Length": "500"})
    with scripted_llm(half, says("Hi.")) as stub:
        assert model(stub.base_url).complete(HELLO).text == "Hi."


def test_what_can_not_be_sent_is_an_error_that_says_so():
    with scripted_llm(says("Hi.")) as stub, pytest.raises(LLMError, match="surrogates"):
        model(stub.base_url).complete([{"role": "user", "content": "half an emoji: \ud83d"}])


def test_parameters_of_newer_models_are_learnt():
    replies = (
        refuses(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
        refuses(400, "Unsupported value: 'temperature' does not support 0"),
        says("Hi."),
    )
    with scripted_llm(*replies) as stub:
        assert model(stub.base_url).complete(HELLO, max_tokens=9).text == "Hi."
    assert stub.requests[-1] == {"model": "m", "messages": HELLO, "max_completion_tokens": 9}


def test_a_word_in_a_quoted_prompt_is_not_taken_for_a_refused_parameter():
    said = "content policy: the prompt 'What temperature and stream has the Danube?' was blocked"
    with scripted_llm(refuses(400, said), says("Hi.")) as stub:
        with pytest.raises(LLMError, match="Danube"):
            model(stub.base_url).complete(HELLO, on_text=print)
        model(stub.base_url).complete(HELLO, on_text=print)
    assert [(request["temperature"], request["stream"]) for request in stub.requests] == [(0, True), (0, True)]


@pytest.mark.parametrize(
    "said",
    [
        "invalid temperature: only 1 is allowed for this model",
        "`temperature` must be strictly positive",
        "Unrecognized request argument supplied: temperature",
        "[{'type': 'extra_forbidden', 'loc': ['body', 'temperature'], 'msg': 'Extra inputs are not permitted'}]",
    ],
)
def test_a_temperature_that_is_refused_is_left_out(said):
    with scripted_llm(refuses(422, said), says("Hi.")) as stub:
        assert model(stub.base_url).complete(HELLO).text == "Hi."
    assert ["temperature" in request for request in stub.requests] == [True, False]


def test_a_base_url_without_v1_is_told_so():
    with scripted_llm(says("Hi.")) as stub, pytest.raises(LLMError, match=r"has no /v1\. Try http://127.0.0.1:\d+/v1"):
        model(stub.base_url.removesuffix("/v1")).complete(HELLO)


@pytest.mark.parametrize("body", ["<html>a proxy's page</html>", {"choices": []}, {"detail": "hello"}, [], {"choices": None}])
def test_what_is_no_chat_completion_is_an_error(body):
    with scripted_llm(Scripted(body)) as stub, pytest.raises(LLMError):
        model(stub.base_url, max_retries=0).complete(HELLO)


def test_a_server_that_is_not_there_is_an_error_that_says_where():
    with scripted_llm(says("Hi.")) as stub:
        url = stub.base_url
    with pytest.raises(LLMError, match=r"can't be reached.*Check base_url"):
        model(url, max_retries=1).complete(HELLO)


def test_an_address_that_is_none_is_refused_at_once():
    with pytest.raises(SettingsError, match="localhost:8080"):
        chat_model("localhost:1234/v1")
    for url in ("http://u:CANARY@h/v1", "http://h/v1?api_key=CANARY"):
        with pytest.raises(SettingsError, match="address alone") as caught:
            chat_model(url, "m")
        assert "CANARY" not in str(caught.value)
    with pytest.raises(SettingsError, match=r"llm\.model"):
        chat_model(None, " ")


def test_the_key_is_read_from_the_environment_when_it_is_needed(monkeypatch):
    with scripted_llm(says("Hi.")) as stub:
        llm = model(stub.base_url, api_key_env="RETRICO_TEST_KEY")
        monkeypatch.delenv("RETRICO_TEST_KEY", raising=False)
        with pytest.raises(LLMError, match="RETRICO_TEST_KEY is not set"):
            llm.complete(HELLO)
        for key in ("first-key", "second-key\n"):
            monkeypatch.setenv("RETRICO_TEST_KEY", key)
            llm.complete(HELLO)
    assert [headers["authorization"] for headers in stub.headers] == ["Bearer first-key", "Bearer second-key"]


@pytest.mark.parametrize("name", [None, "RETRICO_TEST_KEY"])
def test_a_local_server_needs_no_key(monkeypatch, name):
    monkeypatch.setenv("RETRICO_TEST_KEY", "")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-this-server")
    with scripted_llm(says("Hi.")) as stub:
        assert model(stub.base_url, api_key_env=name).complete(HELLO).text == "Hi."
    assert "not-for-this-server" not in str(stub.headers)


def test_the_key_is_in_no_error_and_no_repr(monkeypatch, capfd, caplog):
    """A canary key, with success, a wrong key and a wrong port."""
    monkeypatch.setenv("RETRICO_TEST_KEY", CANARY)
    caplog.set_level("DEBUG")
    told = []
    with scripted_llm(
        says("Hi."),
        refuses(401, f"Incorrect API key provided: {CANARY}."),
        Scripted(f"<p>{CANARY}</p>", 418),
        Scripted(f"<p>{CANARY}</p>"),
    ) as stub:
        llm = model(stub.base_url, api_key_env="RETRICO_TEST_KEY", max_retries=0)
        assert llm.complete(HELLO).text == "Hi."
        for _ in range(3):
            with pytest.raises(LLMError) as caught:
                llm.complete(HELLO)
            told.append(caught.value)
    with pytest.raises(LLMError) as caught:
        llm.complete(HELLO)
    told.append(caught.value)
    assert "RETRICO_TEST_KEY" in str(told[0])
    out = capfd.readouterr()
    seen = [
        repr(llm),
        out.out,
        out.err,
        caplog.text,
        *map(str, told),
        *(str(error.__cause__) + str(error.__context__) for error in told),
    ]
    assert not [text for text in seen if "CANARY" in text]


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("bolt://neo4j:CANARY-2@h:7687 is down", "bolt://neo4j:***@h:7687 is down"),
        ("postgresql://u:p@ss:CANARY-3@h/db", "postgresql://u:***@h/db"),
        ("redis://:CANARY@h", "redis://:***@h"),
        ("http://h:80/a@b is fine", "http://h:80/a@b is fine"),
        ("GET /x?api_key=CANARY&y=1", "GET /x?api_key=***&y=1"),
        ("Authorization: Bearer CANARY.x", "Authorization: Bearer ***"),
        ("key hunter22 twice hunter22", "key *** twice ***"),
    ],
)
def test_secrets_are_masked_and_the_rest_stays(text, masked):
    assert mask_secrets(text, "hunter22", "x") == masked


def test_importing_the_module_does_not_import_openai():
    code = "import sys, resources.models.llm.client; sys.exit('openai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
