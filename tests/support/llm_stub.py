"""An OpenAI-compatible endpoint on loopback that says what a test tells it to say, and remembers what it was asked."""

import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from resources.models.llm.client import ChatModel, LLMOptions
from resources.models.llm.dialect import forget_dialects


def chat_model(base_url: str | None, model: str = "m", *, cache_file: Path | None = None, **options: Any) -> ChatModel:
    """A chat model at this address that retries without long waits."""
    values = {"base_url": base_url, "model": model, "backoff": 0.01, **options}
    return ChatModel(LLMOptions.parse(values, "llm"), cache_file)


@dataclass
class Scripted:
    """One reply: a status, a body (text, or data that becomes JSON), headers, and seconds to wait before it.

    With ``events`` it is a stream of them (text as it is, or data that becomes JSON), ``pause`` seconds apart; ``breaks`` cuts
    the connection after the last. With ``byte_pause``, seconds pass between the bytes of the body; with ``comments``, that many
    comments come before each event, ``pause`` seconds apart.
    """

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    events: list[Any] | None = None
    pause: float = 0.0
    breaks: bool = False
    byte_pause: float = 0.0
    comments: int = 0


def says(text: str | None, finish_reason: str = "stop", usage: bool = True, **message: Any) -> Scripted:
    """A chat completion with this text."""
    body: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", "content": text, **message}}],
    }
    if usage:
        body["usage"] = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    return Scripted(body)


def calls(*wanted: tuple[str, Any], text: str | None = None, finish_reason: str = "tool_calls") -> Scripted:
    """A chat completion that wants tools called: names with arguments (text as it is, or data that becomes JSON)."""
    tool_calls = [
        {"id": f"call-{number}", "type": "function", "function": {"name": name, "arguments": _as_text(arguments)}}
        for number, (name, arguments) in enumerate(wanted, 1)
    ]
    return says(text, finish_reason, tool_calls=tool_calls)


def streams(
    *pieces: str | dict[str, Any],
    finish_reason: str | None = "stop",
    usage: bool = True,
    done: bool = True,
    pause: float = 0.0,
    breaks: bool = False,
) -> Scripted:
    """A chat completion that comes in pieces: text, or whole deltas. Without ``finish_reason`` and ``done`` it ends too early."""
    deltas = [{"content": piece} if isinstance(piece, str) else piece for piece in pieces]
    choices: list[dict[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    if finish_reason is not None:
        choices.append({"index": 0, "delta": {}, "finish_reason": finish_reason})
    events: list[Any] = [{"object": "chat.completion.chunk", "choices": [choice]} for choice in choices]
    if usage:
        events.append({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}})
    return Scripted(events=events + ["[DONE]"] * done, pause=pause, breaks=breaks)


def refuses(status: int, message: str, code: str | None = None, **headers: str) -> Scripted:
    """An error reply in OpenAI's form."""
    error = {"message": message, "type": "error", "code": code}
    return Scripted({"error": error}, status, {name.replace("_", "-"): value for name, value in headers.items()})


@dataclass
class Stub:
    """The endpoint: ``replies`` are given in order, the last one again and again; ``requests`` holds what came."""

    base_url: str
    replies: list[Scripted]
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    under_way: int = 0
    most_at_once: int = 0

    @property
    def prompt(self) -> str:
        """What the user message of the last request said."""
        return self.requests[-1]["messages"][-1]["content"]


def _as_text(data: Any) -> str:
    return data if isinstance(data, str) else json.dumps(data)


@contextmanager
def scripted_llm(*replies: Scripted, prefix: str = "/v1") -> Iterator[Stub]:
    """Serve the replies under ``prefix`` while the block runs; anything else is a 404."""
    stub = Stub("", list(replies))
    counting = threading.Lock()
    forget_dialects()  # the port may have been another stub's

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            reply = refuses(404, "no such path")
            with counting:
                stub.paths.append(self.path)
                if self.path == f"{prefix}/chat/completions":
                    stub.requests.append(data)
                    stub.headers.append({name.lower(): value for name, value in self.headers.items()})
                    reply = stub.replies[min(len(stub.requests), len(stub.replies)) - 1]
                stub.under_way += 1
                stub.most_at_once = max(stub.most_at_once, stub.under_way)
            self._send(reply)

        def _send(self, reply: Scripted) -> None:
            time.sleep(reply.delay)
            with counting:
                stub.under_way -= 1
            kind = "text/html" if isinstance(reply.body, str) else "application/json"
            try:
                self.send_response(reply.status)
                self.send_header("Content-Type", kind if reply.events is None else "text/event-stream")
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                if reply.events is None:
                    self._write(_as_text(reply.body).encode(), reply.byte_pause)
                for event in reply.events or ():
                    for _ in range(reply.comments):
                        self.wfile.write(b": keep-alive\n\n")
                        time.sleep(reply.pause)
                    self.wfile.write(f"data: {_as_text(event)}\n\n".encode())
                    time.sleep(reply.pause)
                if reply.breaks:
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.connection.close()
            except OSError:
                pass  # the client gave up waiting, as a test of time-outs wants

        def _write(self, body: bytes, pause: float) -> None:
            if not pause:
                self.wfile.write(body)
                return
            for byte in body:
                self.wfile.write(bytes([byte]))
                time.sleep(pause)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    stub.base_url = f"http://127.0.0.1:{server.server_address[1]}{prefix}"
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
