"""A chat model behind any OpenAI-compatible endpoint: OpenAI itself, or a local server."""

import os
import random
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from typing import Any

from resources.errors import LLMError, SettingsError
from resources.models.llm.cache import ReplyCache, cache_key
from resources.models.llm.dialect import dialect_of
from resources.models.llm.errors import NO_KEY, TRANSIENT, check_address, explain, kind_of, mask_secrets, retry_after
from resources.models.llm.limits import Meter, UsageTotals, gate_of
from resources.models.llm.reasoning import VisibleText, starts_unannounced
from resources.models.llm.replies import Collected, Reply, ToolCall, Usage, read_completion, read_stream
from resources.prompting.json_reply import read_json

__all__ = ["ChatModel", "Reply", "ToolCall", "Usage", "UsageTotals", "mask_secrets"]

_QUOTA_MEMORY = 60.0  # seconds for which a used-up quota is believed to be so still


class ChatModel:
    """Asks one model of one endpoint. Threads may share it.

    ``base_url`` None means OPENAI_BASE_URL if that is set, else OpenAI's own; ``api_key_env`` names the environment variable
    that holds the key (read at each call, never kept in settings), None or an empty variable means a server without one.

    Rate limits, time-outs, broken connections and 5xx replies are tried again ``max_retries`` times, after ``backoff`` * 2^n
    seconds or what Retry-After says, together at most ``max_wait`` seconds of waiting a call. ``timeout`` is in seconds and
    counts for one try: until the reply is there, in a stream until the next piece is.

    At most ``max_concurrency`` requests are under way, and ``requests_per_minute`` (None: no limit) begin in a minute, counted
    over all threads and objects of this process that ask the same endpoint. ``cache_file`` keeps replies (None: nothing is
    kept). ``prompt_price`` and ``completion_price`` are for a million tokens and give ``usage`` a cost.
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
        max_wait: float = 60.0,
        max_concurrency: int = 4,
        requests_per_minute: int | None = None,
        cache_file: str | os.PathLike[str] | None = None,
        prompt_price: float | None = None,
        completion_price: float | None = None,
    ) -> None:
        base_url = (base_url or os.environ.get("OPENAI_BASE_URL") or "").strip().rstrip("/")
        self.base_url = base_url or None
        if self.base_url is not None:
            check_address(self.base_url)
        if not model.strip():
            raise SettingsError("llm model is empty; name the model that the endpoint serves")
        for name, limit in (("max_concurrency", max_concurrency), ("requests_per_minute", requests_per_minute)):
            if limit is not None and limit < 1:
                raise SettingsError(f"llm {name} is {limit}; it must be at least 1")
        self.model = model
        self.api_key_env = api_key_env
        self.timeout = timeout
        self.max_retries = max_retries
        self.backoff = backoff
        self.max_wait = max_wait
        self.max_concurrency = max_concurrency
        self.requests_per_minute = requests_per_minute
        self._cache = ReplyCache(cache_file) if cache_file is not None else None
        self._meter = Meter(prompt_price, completion_price)
        self._gate = gate_of(self.base_url)
        self._dialect = dialect_of(self.base_url, model)
        self._used_up: tuple[float, str] | None = None  # until when a quota counts as used up, and what was said
        self._client: tuple[str, Any] | None = None
        self._connecting = threading.Lock()

    def __repr__(self) -> str:
        return f"ChatModel(base_url={self.base_url!r}, model={self.model!r}, api_key_env={self.api_key_env!r})"

    @property
    def usage(self) -> UsageTotals:
        """What was asked of this object so far."""
        return self._meter.totals

    def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        json_schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
        temperature: float = 0.0,
        tools: Sequence[Mapping[str, Any]] | None = None,
        on_text: Callable[[str], None] | None = None,
        cached: bool | None = None,
    ) -> Reply:
        """Send one conversation and return the reply, without the model's reasoning block.

        ``messages`` and ``tools`` are in OpenAI's form and are sent as they are. With ``json_schema`` the reply is asked for
        in that form by the strictest means that the server takes: a schema, else JSON mode, else the prompt alone; the text
        still has to be read with care (``read_json``). ``on_text`` is given the text as it comes, in pieces that together are
        ``Reply.text``; what it raises comes through. ``cached`` None lets the cache answer and keep a reply at temperature 0,
        True at any temperature; False asks anew, and the new reply replaces a kept one. Replies that are cut, refused, empty or
        without the JSON asked for are not kept.

        Raises LLMError, which never shows the key; its ``kind`` tells the causes apart.
        """
        cache = self._cache if cached is not None or temperature == 0 else None
        if cache is None:
            return self._ask(messages, json_schema, max_tokens, temperature, tools, on_text)
        key = cache_key(self.base_url, self.model, messages, tools, json_schema, max_tokens, temperature)
        known = cache.get(key) if cached is not False else None
        if known is not None:
            self._meter.count_cached()
            if on_text is not None and known.text:
                on_text(known.text)
            return known
        reply = self._ask(messages, json_schema, max_tokens, temperature, tools, on_text)
        if (cached or temperature == 0) and _is_worth_keeping(reply, json_schema is not None):
            cache.put(key, reply)
        return reply

    def close(self) -> None:
        """Close the connections and the cache. Another call opens them again."""
        with self._connecting:
            if self._client is not None:
                self._client[1].close()
                self._client = None
        if self._cache is not None:
            self._cache.close()

    def _ask(
        self,
        messages: Sequence[Mapping[str, Any]],
        json_schema: Mapping[str, Any] | None,
        max_tokens: int | None,
        temperature: float,
        tools: Sequence[Mapping[str, Any]] | None,
        on_text: Callable[[str], None] | None,
    ) -> Reply:
        key = self._key()
        client = self._connect(key)
        attempt, waited = 0, 0.0
        while True:
            self._stop_if_used_up()
            request = self._dialect.request(
                self.model,
                messages,
                json_schema=json_schema,
                max_tokens=max_tokens,
                temperature=temperature,
                tools=tools,
                stream=on_text is not None,
            )
            outcome, shown = self._try(client, request, on_text)
            if isinstance(outcome, Reply):
                self._meter.count(outcome.usage)
                return outcome
            # Outside of any handler: the error raised here must not drag the client's own along, which may quote the key.
            kind = kind_of(outcome)
            if not shown and self._dialect.adapt(outcome, request):
                continue
            left = self.max_wait - waited
            if shown or kind not in TRANSIENT or attempt >= self.max_retries or left <= 0:
                raise self._failure(outcome, kind, attempt + 1, key, shown)
            delay = min(self._delay(outcome, attempt), left)
            if kind == "rate_limit" and retry_after(outcome) is not None:
                self._gate.pause(delay)
            time.sleep(delay)
            waited += delay
            attempt += 1

    def _try(
        self, client: Any, request: Mapping[str, Any], on_text: Callable[[str], None] | None
    ) -> tuple[Reply | Exception, bool]:
        """The reply or the failure of one request, and whether any text was shown."""
        shown = False
        with closing(self._send(client, request)) as pieces:
            while True:
                try:
                    piece = next(pieces)
                except StopIteration as end:
                    return end.value, shown
                except Exception as error:  # the client's errors, and its transport's
                    return error, shown
                if on_text is not None:
                    shown = True
                    on_text(piece)

    def _send(self, client: Any, request: Mapping[str, Any]) -> Generator[str, None, Reply]:
        """Visible text piece by piece, then the reply. A server that does not stream when asked to gives one piece."""
        collected = Collected()
        with (
            self._gate.slot(self.max_concurrency, self.requests_per_minute),
            client.chat.completions.with_streaming_response.create(**request) as response,
        ):
            if "text/event-stream" in response.headers.get("content-type", ""):
                visible = VisibleText(self._dialect.begins_thinking)
                yield from read_stream(response.iter_bytes(), collected, visible)
                reply = collected.reply()
            else:
                read_completion(response.read(), collected)
                reply = collected.reply()
                if reply.text:
                    yield reply.text
        if starts_unannounced(collected.content):
            self._dialect.begins_thinking = True
        return reply

    def _key(self) -> str:
        if self.api_key_env is None:
            return NO_KEY
        value = os.environ.get(self.api_key_env)
        if value is None:
            raise LLMError(
                f"the environment variable {self.api_key_env} is not set; put the key of {self.model} in it", "credentials"
            )
        value = value.strip()
        if any(character.isspace() or not character.isascii() for character in value):
            raise LLMError(
                f"the value of the environment variable {self.api_key_env} has blanks or non-ASCII characters: it is no API key",
                "credentials",
            )
        return value or NO_KEY

    def _connect(self, key: str) -> Any:
        with self._connecting:
            if self._client is None or self._client[0] != key:
                from openai import OpenAI

                # A client with an older key is left to those that still use it.
                self._client = (key, OpenAI(api_key=key, base_url=self.base_url, timeout=self.timeout, max_retries=0))
            return self._client[1]

    def _delay(self, error: Exception, attempt: int) -> float:
        asked = retry_after(error)
        return self.backoff * 2**attempt * random.uniform(1.0, 1.25) if asked is None else asked

    def _failure(self, error: Exception, kind: str, tries: int, key: str, shown: bool) -> LLMError:
        message = explain(
            error,
            tries,
            model=self.model,
            base_url=self.base_url,
            key_env=self.api_key_env,
            timeout=self.timeout,
            shown=shown,
        )
        message = mask_secrets(message, key)
        if shown:
            self._meter.count(None)
            kind = "stream"
        elif kind == "quota":
            self._used_up = (time.monotonic() + _QUOTA_MEMORY, message)
        return LLMError(message, kind)

    def _stop_if_used_up(self) -> None:
        if self._used_up is not None and time.monotonic() < self._used_up[0]:
            raise LLMError(self._used_up[1], "quota")


def _is_worth_keeping(reply: Reply, is_json: bool) -> bool:
    if reply.refusal or reply.finish_reason not in ("stop", "tool_calls", None):
        return False
    says_something = read_json(reply.text) is not None if is_json else bool(reply.text)
    return says_something or bool(reply.tool_calls)
