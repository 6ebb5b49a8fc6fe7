"""The processes of an embedded graph server: which they are, and how they are ended when they no longer answer."""

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from resources.errors import StoreError
from resources.files.replacing import replace_atomically

FILE = "server.json"
_KILL_SECONDS = 20.0


@dataclass(frozen=True)
class Process:
    """A process by its id and the time it started, so that another one that got the same id later is not taken for it."""

    pid: int
    started: str

    @classmethod
    def of(cls, pid: int) -> "Process":
        """The process that has this id now."""
        return cls(pid, _start_time(pid))

    def kill(self) -> None:
        """End it at once, also when it is stopped. Nothing happens if it is gone."""
        if self.started == _start_time(self.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


@dataclass(frozen=True)
class ServerProcesses:
    """The server of a folder and the process that watches over it."""

    watcher: Process
    server: Process

    def kill(self) -> None:
        """End both. Every answered write is in the server's append-only file."""
        self.watcher.kill()  # first, or it might start something
        self.server.kill()


def write_processes(folder: Path, processes: ServerProcesses) -> None:
    """Record the processes of a folder's server."""
    with replace_atomically(folder / FILE) as temporary:
        temporary.write_text(json.dumps(asdict(processes)))


def read_processes(folder: Path) -> ServerProcesses | None:
    """The processes that were recorded last; None if there are none or the record can't be read."""
    try:
        content: dict[str, Any] = json.loads((folder / FILE).read_text())
        return ServerProcesses(Process(**content["watcher"]), Process(**content["server"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def wait_until(is_done: Callable[[], bool], seconds: float) -> bool:
    """Wait until ``is_done()`` is true, but not longer than this. Returns whether it is."""
    deadline = time.monotonic() + seconds
    while not is_done():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def kill_server(folder: Path, processes: ServerProcesses | None, is_gone: Callable[[], bool]) -> None:
    """End a folder's server that does not answer, and wait until ``is_gone()``.

    Raises:
        StoreError: it can't be ended: its processes are unknown, or belong to another user.
    """
    try:
        if processes is not None:
            processes.kill()
    except PermissionError as error:
        raise StoreError(
            f"The graph server of {folder} does not answer and belongs to another user. Ask that user to run `retrico stop`."
        ) from error
    if not wait_until(is_gone, _KILL_SECONDS):
        raise StoreError(
            f"The graph server of {folder} does not answer and can't be ended. Find its processes with "
            f"`ps -ef | grep {folder}`, kill them, and try again."
        )


def _start_time(pid: int) -> str:
    """When a process started, in ticks since the machine started (Linux). Empty if there is no such process or no /proc."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]  # the name before ")" may hold blanks
