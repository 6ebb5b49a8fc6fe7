"""Replies that a chat model already gave, so that the same request is not paid twice."""

import contextlib
import hashlib
import json
import logging
import os
import threading
import time
from pathlib import Path
from typing import Any

from resources.errors import DamagedFileError, StoreError
from resources.files.locking import locked
from resources.files.sqlite import SqliteFile
from resources.models.llm.dialect import ChatRequest
from resources.models.llm.replies import Reply, ToolCall, Usage

_log = logging.getLogger(__name__)
_FORMAT = 1  # counted up when what a reply means changes: older rows are then not found


def cache_key(base_url: str | None, model: str, request: ChatRequest) -> str:
    """What identifies a request: SHA-256 of all that the reply depends on. The text itself is not kept."""
    parts = [
        _FORMAT,
        base_url,
        model,
        request.messages,
        request.tools or None,
        request.json_schema,
        request.max_tokens,
        float(request.temperature),
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class ReplyCache:
    """A SQLite file (WAL) that threads and processes share.

    It never fails: a damaged file is put aside with a warning and a new one begun, and when the file can't be used at all a
    warning says so once and nothing is kept.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        self._file = _file(self.path)
        self._usable = True

    def get(self, key: str) -> Reply | None:
        """The reply to this request, if it is known."""
        rows = self._run("SELECT reply FROM replies WHERE key = ?", (key,))
        try:
            return _from_json(rows[0][0]) if rows else None
        except (ValueError, TypeError, KeyError):
            return None  # a row of another make: it is asked anew and replaced

    def put(self, key: str, reply: Reply) -> None:
        self._run("INSERT OR REPLACE INTO replies (key, reply) VALUES (?, ?)", (key, _to_json(reply)))

    def close(self) -> None:
        self._file.disconnect()

    def _run(self, statement: str, values: tuple[str, ...]) -> list[Any]:
        with self._lock:
            for is_second_try in (False, True):
                if not self._usable:
                    return []
                try:
                    with self._file.reading() as database:
                        return database.execute(statement, values).fetchall()
                except StoreError as problem:
                    self._file.disconnect()
                    if is_second_try or not isinstance(problem, DamagedFileError) or not self._put_aside(problem):
                        self._usable = False
                        _log.warning("replies of the language model are not cached: %s: %s", self.path, problem)
            return []

    def _put_aside(self, problem: Exception) -> bool:
        """Rename the damaged file, unless another process was quicker. False if that can't be done."""
        try:
            with locked(self.path.with_name(self.path.name + ".lock")):
                if _is_sound(self.path):
                    return True
                aside = self.path.with_name(f"{self.path.name}.damaged-{time.time_ns()}")
                # Before the rename: after it, another process may have made a new file, with a log of its own.
                for ending in ("-wal", "-shm"):
                    self.path.with_name(self.path.name + ending).unlink(missing_ok=True)
                self.path.rename(aside)
        except OSError:
            return False
        _log.warning("the cache of language model replies %s is damaged (%s); put aside as %s", self.path, problem, aside.name)
        return True


def _file(path: Path) -> SqliteFile:
    schema = "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL) WITHOUT ROWID"
    return SqliteFile(path, schema=schema, version=1, remedy="It only saves requests.", synchronous="NORMAL")


def _is_sound(path: Path) -> bool:
    try:
        with contextlib.closing(_file(path)) as file, file.reading() as database:
            return bool(database.execute("PRAGMA quick_check").fetchone()[0] == "ok")
    except StoreError:
        return False


def _to_json(reply: Reply) -> str:
    usage = reply.usage and [reply.usage.prompt_tokens, reply.usage.completion_tokens]
    calls = [[call.id, call.name, call.arguments] for call in reply.tool_calls]
    return json.dumps({"text": reply.text, "finish_reason": reply.finish_reason, "usage": usage, "tool_calls": calls})


def _from_json(text: str) -> Reply:
    data = json.loads(text)
    return Reply(
        text=data["text"],
        finish_reason=data["finish_reason"],
        usage=Usage(*data["usage"]) if data["usage"] else None,
        tool_calls=tuple(ToolCall(*call) for call in data["tool_calls"]),
    )
