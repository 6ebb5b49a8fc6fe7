"""A graph server that hangs: every wait ends, the next call replaces it, and stop always ends it."""

import json
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import time

import pytest

from resources.errors import StoreError
from resources.graph.falkordb import embedded
from resources.graph.falkordb.embedded import embedded_status, open_embedded, stop_embedded
from resources.graph.falkordb.processes import FILE, Process, read_processes
from resources.graph.falkordb.server import is_locked
from resources.testing.graphs import everything, pair

SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(embedded, "_PING_SECONDS", 0.5)
    monkeypatch.setattr(embedded, "_ANSWER_SECONDS", 1.0)
    monkeypatch.setattr(embedded, "_SAVE_SECONDS", 5.0)
    yield tmp_path / "graph"
    stop_embedded(tmp_path / "graph")


def facts(count, start=0):
    return [pair(f"d{n:03}", f"a{n % 7}", "knows", f"b{n % 11}", 0.5, year=n) for n in range(start, start + count)]


def stop_process(pid):
    os.kill(pid, signal.SIGSTOP)


def runs(pid):
    """Whether the process is there and not a zombie, which nobody may reap in a container."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_query_on_a_hung_server_ends_with_a_remedy_and_the_next_one_replaces_the_server(folder):
    with open_embedded(folder) as store:
        store.replace_documents(facts(5))
        before = everything(store)
        hung = embedded_status(folder).pid
        stop_process(hung)
        started = time.monotonic()
        with pytest.raises(StoreError, match=r"did not answer in time.*retrico stop"):
            store.stats()
        assert time.monotonic() - started < 5
        assert everything(store) == before
        assert embedded_status(folder).pid != hung
        assert not runs(hung)


def test_a_write_on_a_hung_server_ends_and_can_be_repeated(folder):
    with open_embedded(folder) as store:
        store.replace_documents(facts(3))
        stop_process(embedded_status(folder).pid)
        with pytest.raises(StoreError, match="did not answer in time"):
            store.replace_documents(facts(1, start=3))
        store.replace_documents(facts(1, start=3))
        assert store.stats().documents == 4


def test_opening_the_folder_of_a_hung_server_starts_it_again_with_everything(folder):
    with open_embedded(folder) as store:
        store.replace_documents(facts(4))
        before = everything(store)
        stop_process(embedded_status(folder).pid)
        started = time.monotonic()
        with open_embedded(folder) as other:
            assert everything(other) == before
        assert time.monotonic() - started < 10


def test_the_status_of_a_hung_server_says_that_it_does_not_answer(folder):
    with open_embedded(folder):
        pid = embedded_status(folder).pid
        stop_process(pid)
        status = embedded_status(folder)
    assert (status.running, status.answering, status.pid) == (True, False, pid)


@pytest.mark.parametrize("victims", [["server"], ["watcher"], ["server", "watcher"]])
def test_stop_always_ends_the_server_and_frees_its_lock(folder, victims):
    with open_embedded(folder) as store:
        store.replace_documents(facts(2))
        before = everything(store)
    processes = read_processes(folder)
    for victim in victims:
        stop_process(getattr(processes, victim).pid)
    started = time.monotonic()
    assert stop_embedded(folder) is True
    assert time.monotonic() - started < 20
    assert not is_locked(folder)
    assert not runs(processes.server.pid)
    with open_embedded(folder) as store:
        assert everything(store) == before


def test_a_process_that_got_the_id_of_an_ended_one_is_left_alone():
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        Process(bystander.pid, "12345").kill()
        time.sleep(0.1)
        assert bystander.poll() is None
        Process.of(bystander.pid).kill()
        assert bystander.wait(10) == -signal.SIGKILL
    finally:
        bystander.kill()


@pytest.mark.parametrize("content", ["", "[]", "{}", json.dumps({"watcher": {}, "server": {}})])
def test_a_damaged_record_of_the_processes_counts_as_none(tmp_path, content):
    (tmp_path / FILE).write_text(content)
    assert read_processes(tmp_path) is None


@pytest.mark.slow
def test_the_watcher_ends_a_server_that_does_not_answer(folder, tmp_path):
    quick = tmp_path / "quick.py"
    quick.write_text(
        "import sys; from pathlib import Path\n"
        "from resources.graph.falkordb import server\n"
        "server._PING_SECONDS, server._HUNG_SECONDS = 0.3, 1.0\n"
        "folder = Path(sys.argv[1]); folder.mkdir(); (folder / server.LOG).touch()\n"
        "sys.exit(server.main(folder, 30.0))\n"
    )
    watcher = subprocess.Popen([sys.executable, str(quick), str(folder)], env={**os.environ, "PYTHONPATH": os.getcwd()})
    try:
        deadline = time.monotonic() + 30
        while not embedded_status(folder).running:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        stop_process(embedded_status(folder).pid)
        assert watcher.wait(15) != 0
        assert not is_locked(folder)
    finally:
        watcher.kill()


@pytest.mark.slow
def test_a_server_that_can_not_write_is_one_error_in_seconds_and_not_a_lost_race(folder):
    """A limit on the size of files stands in for a full disk: the server ends at every write beyond it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with open_embedded(folder) as store:
        store.replace_documents(facts(3))
    stop_embedded(folder)
    size = max(file.stat().st_size for file in (folder / "appendonlydir").iterdir())
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20_000, hard))  # the server inherits it
    try:
        with open_embedded(folder) as store:
            started = time.monotonic()
            with pytest.raises(StoreError, match=r"ended 3 times during one write.*(Free some space|Look into)"):
                store.replace_documents(facts(200, start=3))
            assert time.monotonic() - started < 20
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    stop_embedded(folder)
    with open_embedded(folder) as store:
        store.replace_documents(facts(200, start=3))
        assert store.stats().documents == 203


def _open_and_count(folder, barrier, answers):
    barrier.wait(60)
    with open_embedded(folder, idle_seconds=0.5) as store:
        answers.put(store.stats().documents)


@pytest.mark.slow
def test_processes_that_open_new_folders_at_once_all_get_an_answer(tmp_path):
    answers, barrier = SPAWN.Queue(), SPAWN.Barrier(3)
    users = [SPAWN.Process(target=_open_and_count, args=(tmp_path / "graph", barrier, answers)) for _ in range(3)]
    for user in users:
        user.start()
    try:
        assert [answers.get(timeout=60) for _ in users] == [0] * 3
    finally:
        for user in users:
            user.join(30)
        stop_embedded(tmp_path / "graph")
