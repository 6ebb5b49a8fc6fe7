"""Sends requests to an endpoint, and bounds the time that each may take."""

import asyncio
import json
import os
import threading
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from resources.models.llm.errors import BrokenReplyError, NotACompletionError

_END = object()
_CLOSING_TIME = 5.0


class Connection:
    """The connections to one endpoint with one key. Threads may share it.

    openai's client counts its time-out from one read of the socket to the next, so that a server which sends a byte now and
    then holds a caller for ever. Requests therefore run on an event loop, where one deadline covers all of a request.
    """

    def __init__(self, key: str, base_url: str | None, timeout: float) -> None:
        from openai import AsyncOpenAI

        self.key = key
        self._timeout = timeout
        # Retries are the caller's (see client.py), and the deadline is below.
        self._client = AsyncOpenAI(api_key=key, base_url=base_url, timeout=None, max_retries=0)

    def send(self, request: Mapping[str, Any]) -> Generator[Any]:
        """Send a request and yield the parsed reply, or the parsed events of a stream as they arrive.

        The whole reply must arrive within ``timeout`` seconds, in a stream the first and each further piece of content.
        Closing the generator drops the request.
        """
        received: SimpleQueue[Any] = SimpleQueue()
        task = asyncio.run_coroutine_threadsafe(self._receive(request, received.put), _event_loop())
        task.add_done_callback(lambda _: received.put(_END))
        try:
            while (data := received.get()) is not _END:
                yield data
            task.result()
        finally:
            task.cancel()

    def close(self) -> None:
        """Close all connections."""
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(self._client.close(), _event_loop()).result(_CLOSING_TIME)

    async def _receive(self, request: Mapping[str, Any], put: Callable[[Any], None]) -> None:
        async with (
            asyncio.timeout(self._timeout) as deadline,
            self._client.chat.completions.with_streaming_response.create(**request) as response,
        ):
            if "text/event-stream" not in response.headers.get("content-type", ""):
                put(parse_completion(b"".join([part async for part in _body(response)])))
                return
            async for event in parse_events(_body(response)):
                if _has_content(event):
                    deadline.reschedule(asyncio.get_running_loop().time() + self._timeout)
                put(event)


def parse_completion(body: bytes) -> Any:
    """The JSON of a reply that came in one piece."""
    try:
        return json.loads(body)
    except ValueError:
        pass
    if _is_beginning_of_json(body):
        raise BrokenReplyError("the reply ends in the middle")
    raise NotACompletionError(body.decode("utf-8", "replace"))


async def parse_events(body: AsyncIterator[bytes]) -> AsyncIterator[Any]:
    """The JSON of each server-sent event. Comments are skipped.

    Parsed here because openai's own stream takes one that the server ended early, without its last event, for complete.
    """
    is_complete = has_stopped = False
    async for line in _lines(body):
        name, _, data = line.partition(":")
        if name != "data":
            continue
        if data.strip() == "[DONE]":
            is_complete = True
            break
        try:
            event = json.loads(data)
        except ValueError:
            raise BrokenReplyError(f"the stream contains an event that is not JSON: {data.strip()[:100]!r}") from None
        has_stopped = has_stopped or bool(_choice(event).get("finish_reason"))
        yield event
    if not (is_complete or has_stopped):
        raise BrokenReplyError("the stream ended in the middle of the reply")


async def _body(response: Any) -> AsyncIterator[bytes]:
    try:
        async for part in response.iter_bytes():
            yield part
    except Exception as error:  # of httpx, whose package depends on openai's version
        raise BrokenReplyError(f"the connection broke in the middle of the reply: {error or type(error).__name__}") from error


async def _lines(body: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """Split at line feeds only: a model's text may contain any other separator of lines."""
    rest = b""
    async for part in body:
        *whole, rest = (rest + part).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace").rstrip("\r")
    yield rest.decode("utf-8", "replace").rstrip("\r")


def _has_content(event: Any) -> bool:
    """Whether an event brings the reply forward. Some servers send empty ones to keep the connection open."""
    choice = _choice(event)
    delta = choice.get("delta")
    has_delta = isinstance(delta, Mapping) and any(value for name, value in delta.items() if name != "role")
    return has_delta or bool(choice.get("finish_reason"))


def _choice(event: Any) -> Mapping[str, Any]:
    choices = event.get("choices") if isinstance(event, Mapping) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    return choice if isinstance(choice, Mapping) else {}


def _is_beginning_of_json(body: bytes) -> bool:
    from jiter import from_json

    if not body.lstrip().startswith(b"{"):
        return False
    try:
        from_json(body, partial_mode=True)
    except ValueError:
        return False
    return True


_loop: asyncio.AbstractEventLoop | None = None
_starting = threading.Lock()


def _event_loop() -> asyncio.AbstractEventLoop:
    """The event loop that all requests of this process share, on a thread of its own."""
    global _loop
    with _starting:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="language model requests", daemon=True).start()
        return _loop


def _forget_event_loop() -> None:
    """After a fork: the child has no thread that runs it."""
    global _loop, _starting
    _loop, _starting = None, threading.Lock()


os.register_at_fork(after_in_child=_forget_event_loop)
