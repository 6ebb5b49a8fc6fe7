"""A chat model behind any OpenAI-compatible endpoint: OpenAI itself, or a local server."""

import os
import random
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from typing import Any

from resources.errors import LLMError
from resources.models.llm.address import check_address
from resources.models.llm.cache import ReplyCache, cache_key
from resources.models.llm.connection import Connection
from resources.models.llm.dialect import ChatRequest, dialect_of, may_refuse_structured_output
from resources.models.llm.errors import TRANSIENT, explain, kind_of, retry_after
from resources.models.llm.json_text import read_json
from resources.models.llm.limits import Meter, UsageTotals, gate_of
from resources.models.llm.options import LLMOptions
from resources.models.llm.reasoning import VisibleText, starts_unannounced
from resources.models.llm.replies import Reply, ReplyBuilder, ToolCall, Usage
from resources.secrets import mask_secrets

__all__ = ["ChatModel", "LLMOptions", "Reply", "ToolCall", "Usage", "UsageTotals"]

_NO_KEY = "no-key"  # openai's client refuses an empty key; servers without keys ignore this one
_QUOTA_MEMORY = 60.0  # seconds for which a used-up quota is not tried again


class ChatModel:
    """One model of one endpoint. Threads may share it.

    ``cache_file`` keeps replies; without it, nothing is kept. The key is read from the environment at each call. Limits of
    concurrency and rate count over all threads and objects of this process that use the same endpoint. Rate limits,
    time-outs, broken connections and 5xx replies are retried; what Retry-After says comes before ``options.backoff``.

    The retries are not openai's own, which repeat a request after a used-up quota, ignore a long Retry-After, don't cover a
    stream that breaks off, and have no bound for all waits together.
    """

    def __init__(self, options: LLMOptions, cache_file: str | os.PathLike[str] | None = None) -> None:
        environment = os.environ.get("OPENAI_BASE_URL", "").strip()
        self.options = options
        self.model = options.model
        self.base_url = options.base_url or (check_address(environment) if environment else None)
        self._cache = ReplyCache(cache_file) if cache_file is not None else None
        self._meter = Meter(options.prompt_price, options.completion_price)
        self._gate = gate_of(self.base_url)
        self._dialect = dialect_of(self.base_url, options.model)
        self._quota_error: tuple[float, str] | None = None  # until when the quota counts as used up, and the message
        self._connection: Connection | None = None
        self._connecting = threading.Lock()

    def __repr__(self) -> str:
        return f"ChatModel(base_url={self.base_url!r}, model={self.model!r})"

    @property
    def max_concurrency(self) -> int:
        """How many requests may run at the same time."""
        return self.options.max_concurrency

    @property
    def usage(self) -> UsageTotals:
        """Requests and tokens of this object so far."""
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

        ``messages`` and ``tools`` are in OpenAI's form and are sent as they are. With ``json_schema`` the reply is requested
        by the strictest means that the server takes: a schema, else JSON mode, else the prompt alone; read its text with
        ``read_json``. ``on_text`` receives the text as it arrives, in pieces that together are ``Reply.text``; what it raises
        is passed on. ``cached``: None uses the cache at temperature 0, True at any temperature; False sends the request, and
        the new reply replaces a kept one. Replies that are truncated, refused, empty or without the JSON are not kept.

        Raises:
            LLMError: never shows the key; its ``kind`` tells the causes apart.
        """
        request = ChatRequest(messages, json_schema, max_tokens, temperature, tools)
        cache = self._cache if cached is not None or temperature == 0 else None
        if cache is None:
            return self._request(request, on_text)
        key = cache_key(self.base_url, self.model, request)
        known = cache.get(key) if cached is not False else None
        if known is not None:
            self._meter.count_cached()
            if on_text is not None and known.text:
                on_text(known.text)
            return known
        reply = self._request(request, on_text)
        if (cached or temperature == 0) and _is_worth_keeping(reply, json_schema is not None):
            cache.put(key, reply)
        return reply

    def close(self) -> None:
        """Close the connections and the cache. Another call opens them again."""
        with self._connecting:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
        if self._cache is not None:
            self._cache.close()

    def _request(self, request: ChatRequest, on_text: Callable[[str], None] | None) -> Reply:
        """Send a request until it succeeds, in the form that the server takes, as long as trying again is worth it."""
        connection = self._connect(self._key())
        attempt, waited = 0, 0.0
        refusal: Exception | None = None  # what may be about the response format, which is then left out once
        while True:
            self._raise_if_quota_is_used_up()
            body = self._dialect.body(self.model, request, stream=on_text is not None, structured=refusal is None)
            outcome, shown = self._try(connection, body, on_text)
            if isinstance(outcome, Reply):
                if refusal is not None:
                    self._dialect.give_up_structured_output(mask_secrets(str(refusal), connection.key))
                self._meter.count(outcome.usage)
                return outcome
            # Outside of any handler: the error raised here must not carry the client's own, which may quote the key.
            kind = kind_of(outcome)
            if not shown and self._dialect.adapt(outcome, body):
                continue
            if not shown and may_refuse_structured_output(outcome, body, attempt):
                refusal = outcome
                continue
            left = self.options.max_wait - waited
            if shown or kind not in TRANSIENT or attempt >= self.options.max_retries or left <= 0:
                error = outcome if refusal is None or kind in TRANSIENT else refusal
                raise self._failure(error, attempt + 1, connection.key, shown)
            waited += self._wait(outcome, kind, attempt, left)
            attempt += 1

    def _try(
        self, connection: Connection, body: Mapping[str, Any], on_text: Callable[[str], None] | None
    ) -> tuple[Reply | Exception, bool]:
        """The reply or the error of one request, and whether any text was shown."""
        shown = False
        with closing(self._send(connection, body)) as pieces:
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

    def _send(self, connection: Connection, body: Mapping[str, Any]) -> Generator[str, None, Reply]:
        """Yield the visible text piece by piece, and return the reply. A server that does not stream gives one piece."""
        builder = ReplyBuilder()
        visible = VisibleText(self._dialect.begins_thinking)
        with (
            self._gate.slot(self.options.max_concurrency, self.options.requests_per_minute),
            closing(connection.send(body)) as received,
        ):
            try:
                for data in received:
                    piece = builder.add(data)
                    if builder.separates_reasoning:
                        visible.begin_outside()
                    if builder.is_streamed and (text := visible.feed(piece)):
                        yield text
            except Exception:
                if builder.finish_reason is None:
                    raise
                # A stream that breaks after the model has stopped is complete, though its usage may be missing.
        reply = builder.reply()
        if rest := visible.end() if builder.is_streamed else reply.text:
            yield rest
        if starts_unannounced(builder.content):
            self._dialect.begins_thinking = True
        return reply

    def _key(self) -> str:
        if self.options.api_key is None:
            return _NO_KEY
        name = self.options.api_key.env
        value = os.environ.get(name)
        if value is None:
            raise LLMError(f"The environment variable {name} is not set. Put the key of {self.model} in it.", "credentials")
        value = value.strip()
        if any(character.isspace() or not character.isascii() for character in value):
            raise LLMError(
                f"The environment variable {name} contains blanks or non-ASCII characters. Put an API key in it.", "credentials"
            )
        return value or _NO_KEY

    def _connect(self, key: str) -> Connection:
        with self._connecting:
            if self._connection is None or self._connection.key != key:
                # A connection with an older key is left to those that still use it.
                self._connection = Connection(key, self.base_url, self.options.timeout)
            return self._connection

    def _wait(self, error: Exception, kind: str, attempt: int, left: float) -> float:
        """Wait as long as the server requests, else with exponential backoff; at most ``left``. Returns the seconds."""
        requested = retry_after(error)
        delay = self.options.backoff * 2**attempt * random.uniform(1.0, 1.25) if requested is None else requested
        delay = min(delay, left)
        if kind == "rate_limit" and requested is not None:
            self._gate.pause(delay)
        time.sleep(delay)
        return delay

    def _failure(self, error: Exception, tries: int, key: str, shown: bool) -> LLMError:
        message = explain(
            error,
            tries,
            model=self.model,
            base_url=self.base_url,
            key_env=self.options.api_key.env if self.options.api_key else None,
            timeout=self.options.timeout,
            shown=shown,
        )
        message = mask_secrets(message, key) if key != _NO_KEY else mask_secrets(message)
        kind = "stream" if shown else kind_of(error)
        if shown:
            self._meter.count(None)
        elif kind == "quota":
            self._quota_error = (time.monotonic() + _QUOTA_MEMORY, message)
        return LLMError(message, kind)

    def _raise_if_quota_is_used_up(self) -> None:
        if self._quota_error is not None and time.monotonic() < self._quota_error[0]:
            raise LLMError(self._quota_error[1], "quota")


def _is_worth_keeping(reply: Reply, is_json: bool) -> bool:
    if reply.is_refused or reply.finish_reason not in ("stop", "tool_calls", None):
        return False
    has_content = read_json(reply.text) is not None if is_json else bool(reply.text)
    return has_content or bool(reply.tool_calls)
