"""An OpenAI-compatible endpoint on loopback that says what a test tells it to say, and remembers what it was asked."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Scripted:
    """One reply: a status, a body (text, or data that becomes JSON), headers, and seconds to wait before it."""

    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0


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

    @property
    def prompt(self) -> str:
        """What the user message of the last request said."""
        return self.requests[-1]["messages"][-1]["content"]


@contextmanager
def scripted_llm(*replies: Scripted, prefix: str = "/v1") -> Iterator[Stub]:
    """Serve the replies under ``prefix`` while the block runs; anything else is a 404."""
    stub = Stub("", list(replies))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            stub.paths.append(self.path)
            if self.path != f"{prefix}/chat/completions":
                self._send(refuses(404, "no such path"))
                return
            stub.requests.append(data)
            stub.headers.append({name.lower(): value for name, value in self.headers.items()})
            self._send(stub.replies[min(len(stub.requests), len(stub.replies)) - 1])

        def _send(self, reply: Scripted) -> None:
            time.sleep(reply.delay)
            body = reply.body if isinstance(reply.body, str) else json.dumps(reply.body)
            try:
                self.send_response(reply.status)
                self.send_header("Content-Type", "text/html" if isinstance(reply.body, str) else "application/json")
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body.encode())
            except OSError:
                pass  # the client gave up waiting, as a test of time-outs wants

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
