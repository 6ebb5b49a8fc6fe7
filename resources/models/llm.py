"""A chat model behind any OpenAI-compatible endpoint: OpenAI itself, or a local server."""

import os
import random
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from resources.errors import LLMError, SettingsError

_NO_KEY = "no-key"  # the client refuses an empty key; local servers ignore this one
_RESPONSE_FORMATS = ("json_schema", "json_object", "plain")
_FORMAT_WORDS = ("response_format", "json_schema", "json_object", "json schema", "grammar", "structured output")
_SHORTEST_SECRET = 6


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request, as the server counts them."""

    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model wants made. ``arguments`` is the JSON text as the model wrote it, valid or not."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model said. ``finish_reason`` is "length" when the text was cut; ``usage`` is None if the server gave none."""

    text: str
    finish_reason: str | None
    usage: Usage | None = None
    refusal: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()


class ChatModel:
    """Asks one model of one endpoint.

    ``base_url`` None means OpenAI's own; ``api_key_env`` names the environment variable that holds the key (read at each
    call, never kept in settings), None or an empty variable means a server without one. Rate limits, time-outs, broken
    connections and 5xx replies are tried again ``max_retries`` times, waiting ``backoff`` * 2^n seconds or what Retry-After
    says, ``max_wait`` seconds at most. ``timeout`` is in seconds and counts for one try.
    """

    def __init__(
        self,
        base_url: str | None,
        model: str,
        api_key_env: str | None,
        *,
        timeout: float = 60.0,
        max_retries: int = 3,
        backoff: float = 0.5,
        max_wait: float = 30.0,
    ) -> None:
        self.base_url = base_url.strip().rstrip("/") if base_url else None
        if self.base_url is not None:
            _check_address(self.base_url)
        if not model.strip():
            raise SettingsError("llm model is empty; name the model that the endpoint serves")
        self.model = model
        self.api_key_env = api_key_env
        self.timeout = timeout
        self.max_retries = max_retries
        self.backoff = backoff
        self.max_wait = max_wait
        self._format = 0  # index in _RESPONSE_FORMATS: the best that this server is known to take
        self._token_parameter = "max_tokens"
        self._takes_temperature = True
        self._client: tuple[str, Any] | None = None

    def __repr__(self) -> str:
        return f"ChatModel(base_url={self.base_url!r}, model={self.model!r}, api_key_env={self.api_key_env!r})"

    def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        json_schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
        temperature: float = 0.0,
    ) -> Reply:
        """Send one conversation and return the reply, without the model's reasoning block.

        With ``json_schema`` the reply is asked for in that form by the strictest means that the server takes: a schema,
        else JSON mode, else the prompt alone; the text still has to be parsed with care. Raises LLMError, which never
        shows the key.
        """
        key = self._key()
        client = self._connect(key)
        attempt = 0
        while True:
            failure: Exception
            try:
                return _reply(client.chat.completions.create(**self._request(messages, json_schema, max_tokens, temperature)))
            except LLMError:
                raise
            except Exception as error:  # the client's errors, and its transport's
                failure = error
            # Outside of the handler: the error raised below must not drag the client's own along, which may quote the key.
            if self._adapt(failure, json_schema is not None):
                continue
            if attempt >= self.max_retries or not _is_transient(failure):
                raise LLMError(mask_secrets(self._explain(failure, attempt + 1), key))
            time.sleep(self._delay(failure, attempt))
            attempt += 1

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client[1].close()
            self._client = None

    def _key(self) -> str:
        if self.api_key_env is None:
            return _NO_KEY
        value = os.environ.get(self.api_key_env)
        if value is None:
            raise LLMError(f"the environment variable {self.api_key_env} is not set; put the key of {self.model} in it")
        value = value.strip()
        if any(character.isspace() or not character.isascii() for character in value):
            raise LLMError(
                f"the value of the environment variable {self.api_key_env} has blanks or non-ASCII characters: it is no API key"
            )
        return value or _NO_KEY

    def _connect(self, key: str) -> Any:
        if self._client is None or self._client[0] != key:
            from openai import OpenAI

            self.close()
            client = OpenAI(api_key=key, base_url=self.base_url, timeout=self.timeout, max_retries=0)
            self._client = (key, client)
        return self._client[1]

    def _request(
        self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any] | None, max_tokens: int | None, temperature: float
    ) -> dict[str, Any]:
        request: dict[str, Any] = {"model": self.model, "messages": [dict(message) for message in messages]}
        if self._takes_temperature:
            request["temperature"] = temperature
        if max_tokens is not None:
            request[self._token_parameter] = max_tokens
        form = _RESPONSE_FORMATS[self._format]
        if schema is not None and form == "json_schema":
            request["response_format"] = {"type": form, "json_schema": {"name": "reply", "schema": dict(schema), "strict": True}}
        elif schema is not None and form == "json_object":
            request["response_format"] = {"type": form}
        return request

    def _adapt(self, error: Exception, wants_json: bool) -> bool:
        """Give up what the server says that it does not take, for good. True if the request is worth sending again."""
        if getattr(error, "status_code", None) not in (400, 422):
            return False
        said = f"{error} {getattr(error, 'body', '')}".lower()
        if "max_completion_tokens" in said and self._token_parameter == "max_tokens":
            self._token_parameter = "max_completion_tokens"
        elif "temperature" in said and self._takes_temperature:
            self._takes_temperature = False
        elif wants_json and self._format < len(_RESPONSE_FORMATS) - 1 and any(word in said for word in _FORMAT_WORDS):
            self._format += 1
        else:
            return False
        return True

    def _delay(self, error: Exception, attempt: int) -> float:
        asked = _retry_after(error)
        wait = self.backoff * 2**attempt * random.uniform(1.0, 1.25) if asked is None else asked
        return min(max(wait, 0.0), self.max_wait)

    def _explain(self, error: Exception, tries: int) -> str:
        where = f"{self.model} at {self.base_url or 'the OpenAI API'}"
        status = getattr(error, "status_code", None)
        again = f" (tried {tries} times)" if tries > 1 else ""
        if type(error).__name__ == "APITimeoutError":
            return f"{where} gave no reply within {self.timeout:g} s{again}; raise the time-out or look at the server"
        if status is None:
            cause = f": {error.__cause__}" if error.__cause__ else ""
            return f"{where} can't be reached{again}: {error}{cause}; check base_url and that the server runs"
        if status == 404 and self.base_url and not re.search(r"/v\d+\w*$", urlsplit(self.base_url).path):
            return f"{where} answered 404: {error}; base_url has no /v1, try {self.base_url}/v1"
        advice = {
            401: f"; check the key in {self.api_key_env or 'api_key (none is configured)'}",
            403: f"; check the key in {self.api_key_env or 'api_key (none is configured)'} and what it may use",
            404: "; check base_url and the model's name",
        }.get(status, "")
        return f"{where} answered {status}{again}: {error}{advice}"


def _check_address(url: str) -> None:
    """A password in an address would be logged with every request, and a query would be cut off by the client."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingsError(
            f"llm base_url {mask_secrets(url)!r} is no http(s) address; write for example http://localhost:8080/v1"
        )
    if parts.username is not None or parts.query:
        raise SettingsError(
            f"llm base_url {mask_secrets(url)!r} has a user, a password or a query in it; "
            "give the address alone, and name the environment variable that holds the key"
        )


def mask_secrets(text: str, *secrets: str) -> str:
    """The text without the given secrets, passwords in URLs, bearer tokens and key parameters; each becomes ``***``.

    A given secret of fewer than six characters is left alone: it is a place-holder such as "x", and is in every word.
    """
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET and secret != _NO_KEY:
            text = text.replace(secret, "***")
    text = re.sub(r"(\b[A-Za-z][A-Za-z0-9+.\-]*://[^\s/:@]*):[^\s/]*@", r"\1:***@", text)
    text = re.sub(r"(?i)([?&](?:api[-_]?key|key|token|access_token|password|secret)=)[^&\s'\"]+", r"\1***", text)
    text = re.sub(r"(?i)(\bbearer\s+)[^\s'\",]+", r"\1***", text)
    return re.sub(r"\bsk-[A-Za-z0-9_\-*]{5,}", "***", text)


def _reply(completion: Any) -> Reply:
    choices = getattr(completion, "choices", None)
    message = getattr(choices[0], "message", None) if choices else None
    if choices is None or message is None:
        raise LLMError("the endpoint's reply holds no message: it is no OpenAI-compatible chat completion; check base_url")
    content = getattr(message, "content", None)
    usage = getattr(completion, "usage", None)
    prompt, completed = getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None)
    return Reply(
        text=_without_reasoning(content) if isinstance(content, str) else "",
        finish_reason=getattr(choices[0], "finish_reason", None),
        usage=Usage(prompt, completed) if isinstance(prompt, int) and isinstance(completed, int) else None,
        refusal=getattr(message, "refusal", None) or None,
    )


def _without_reasoning(text: str) -> str:
    """Some templates put the opening tag into the prompt, and a cut reply has no closing one."""
    text = re.sub(r"<think>.*?</think>", "", text, flags=re.DOTALL)
    if text.lstrip().startswith("<think>"):
        return ""
    _, closing, rest = text.partition("</think>")
    return (rest if closing else text).strip()


def _is_transient(error: Exception) -> bool:
    if "insufficient_quota" in f"{getattr(error, 'code', '')} {getattr(error, 'type', '')} {getattr(error, 'body', '')}":
        return False
    status = getattr(error, "status_code", None)
    if status is None:
        return type(error).__name__ in ("APIConnectionError", "APITimeoutError")
    return status in (408, 429) or status >= 500


def _retry_after(error: Exception) -> float | None:
    """Seconds that the server asks to wait: a number, or the time until an HTTP date (RFC 9110, 10.2.3)."""
    response = getattr(error, "response", None)
    value = response.headers.get("retry-after") if response is not None else None
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except ValueError:
            return None
    return seconds if 0 <= seconds < float("inf") else None
