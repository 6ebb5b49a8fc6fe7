"""Locks on files, between processes and between threads."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from resources.errors import StoreError

_POLL_SECONDS = 0.02


@contextmanager
def locked(path: Path, *, timeout: float | None = None, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold an exclusive lock on ``path`` while the block runs. The file is created, and stays.

    The operating system releases the lock when its process ends, however it ends. A thread that asks again for a lock that it
    holds is refused at once (RuntimeError) when it would wait forever, and after ``timeout`` otherwise.

    Args:
        path: the lock file. Its folder must exist.
        timeout: seconds to wait for another holder; None waits as long as it takes.
        on_wait: called once when another holder has the lock, before waiting.

    Raises:
        StoreError: another holder kept the lock for longer than ``timeout``.
        OSError: the file can't be created or locked.
    """
    # Not bound to a thread: Dagster may leave the block of a resource in another thread than it entered it.
    lock = FileLock(path, thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        if on_wait is not None:
            on_wait()
        _wait(lock, path, timeout)
    try:
        yield
    finally:
        lock.release()


def lock_holder(path: Path) -> int | None:
    """The id of the process that holds the lock on ``path``. None if nobody does, and on systems other than Linux."""
    try:
        inode = path.stat().st_ino
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return None
    for line in lines:  # "3: FLOCK  ADVISORY  WRITE 14285 fe:00:9986175 0 EOF"; a waiting process has "->" after the number
        parts = line.split()
        if parts[1] == "FLOCK" and parts[5].rpartition(":")[2] == str(inode) and int(parts[4]) > 0:
            return int(parts[4])
    return None


def _wait(lock: FileLock, path: Path, timeout: float | None) -> None:
    try:
        lock.acquire(timeout=-1 if timeout is None else timeout, poll_interval=_POLL_SECONDS)
    except Timeout:
        holder = lock_holder(path)
        who = "Another process" if holder is None else "This process" if holder == os.getpid() else f"Process {holder}"
        raise StoreError(f"{who} has held the lock {path} for more than {timeout:g} s. Wait for it to end, or stop it.") from None
