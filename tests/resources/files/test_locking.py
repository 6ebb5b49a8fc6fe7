"""Locks on files, between threads and between processes."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from resources.errors import StoreError
from resources.files.locking import lock_holder, locked

HOLDER = """
import sys, time
from pathlib import Path
from resources.files.locking import locked
with locked(Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock"


def start_holder(path: Path) -> "subprocess.Popen[str]":
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout
    assert holder.stdout.readline() == "locked\n"
    holder.stdout.close()
    return holder


def test_a_timeout_names_the_process_that_holds_the_lock(path: Path) -> None:
    holder = start_holder(path)
    try:
        assert lock_holder(path) == holder.pid
        with (
            pytest.raises(StoreError, match=rf"Process {holder.pid} has held the lock .*lock for more than 0.1 s"),
            locked(path, timeout=0.1),
        ):
            pass
    finally:
        holder.kill()
        holder.wait()


def test_a_lock_ends_with_its_process(path: Path) -> None:
    holder = start_holder(path)
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    assert lock_holder(path) is None
    with locked(path, timeout=0):
        assert lock_holder(path) == os.getpid()


def test_a_forked_child_neither_takes_nor_releases_the_lock_of_its_parent(path: Path) -> None:
    with locked(path):
        child = os.fork()
        if child == 0:
            try:
                with locked(path, timeout=0):
                    os._exit(1)
            except StoreError:
                os._exit(0)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        with pytest.raises(StoreError), locked(path, timeout=0):
            pass


def test_threads_exclude_each_other_and_a_waiting_one_is_told_once(path: Path) -> None:
    inside, most, waits = 0, 0, []

    def work() -> None:
        nonlocal inside, most
        with locked(path, on_wait=lambda: waits.append(1)):
            inside += 1
            most = max(most, inside)
            time.sleep(0.02)
            inside -= 1

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert (most, inside) == (1, 0)
    assert 1 <= len(waits) <= 4


def test_a_thread_that_would_wait_for_itself_is_refused(path: Path) -> None:
    with locked(path), pytest.raises(RuntimeError, match="Deadlock"), locked(path):
        pass


def test_a_lock_may_be_released_by_another_thread(path: Path) -> None:
    """Dagster may end a resource's generator in another thread than it started it."""
    held = locked(path)
    held.__enter__()
    thread = threading.Thread(target=held.__exit__, args=(None, None, None))
    thread.start()
    thread.join(5)
    with locked(path, timeout=0):
        pass
