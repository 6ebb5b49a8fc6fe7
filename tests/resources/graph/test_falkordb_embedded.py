"""The embedded graph server: started by its first user, shared by all, gone after the last, and whole after every crash."""

import contextlib
import multiprocessing
import os
import random
import signal
import threading
import time
from dataclasses import replace
from itertools import pairwise

import pytest

from resources.errors import StoreError
from resources.graph.cypher.writes import replacement
from resources.graph.falkordb.embedded import embedded_status, open_embedded, stop_embedded
from resources.graph.memory import MemoryGraphStore
from resources.testing.graphs import Says, document, everything, pair

SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture
def folder(tmp_path):
    yield tmp_path / "graph"
    stop_embedded(tmp_path / "graph")


def _wait_until(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def _facts(count, start=0):
    return [pair(f"d{n:03}", f"a{n % 7}", "knows", f"b{n % 11}", 0.5, year=n) for n in range(start, start + count)]


def _built_at_once(graphs):
    store = MemoryGraphStore()
    store.replace_documents(graphs)
    return everything(store)


def _write_and_wait(folder, graphs, written):
    with open_embedded(folder, idle_seconds=1) as store:
        store.replace_documents(graphs)
        written.set()
        time.sleep(600)


def _write_in_turns(folder, graphs):
    with open_embedded(folder) as store:
        for graph in graphs:
            store.replace_documents([graph])


def _count_documents(folder, answers):
    with open_embedded(folder) as store:
        answers.put(store.stats().documents)


def test_a_second_process_shares_the_graph_and_survives_the_first(folder):
    written = SPAWN.Event()
    first = SPAWN.Process(target=_write_and_wait, args=(folder, _facts(3), written))
    first.start()
    assert written.wait(60)
    with open_embedded(folder) as store:
        assert store.stats().documents == 3
        os.kill(first.pid, signal.SIGKILL)
        first.join()
        assert store.stats().documents == 3
        store.replace_documents(_facts(1, start=3))
    with open_embedded(folder) as store:
        assert everything(store) == _built_at_once(_facts(4))


@pytest.mark.slow
def test_the_server_leaves_after_its_last_user_even_a_killed_one(folder):
    written = SPAWN.Event()
    user = SPAWN.Process(target=_write_and_wait, args=(folder, _facts(2), written))
    user.start()
    assert written.wait(60)
    assert embedded_status(folder).clients == 1
    time.sleep(1.5)  # longer than its idle seconds: it stays as long as somebody is there
    assert embedded_status(folder).running
    os.kill(user.pid, signal.SIGKILL)
    user.join()
    _wait_until(lambda: not embedded_status(folder).running)
    with open_embedded(folder) as store:
        assert everything(store) == _built_at_once(_facts(2))


def test_stop_says_whether_a_server_ran_and_an_open_store_goes_on_afterwards(folder):
    assert stop_embedded(folder) is False
    assert embedded_status(folder).running is False
    with open_embedded(folder) as store:
        store.replace_documents(_facts(2))
        assert stop_embedded(folder) is True
        assert embedded_status(folder).running is False
        assert store.stats().documents == 2  # it has started the server again
        assert stop_embedded(folder) is True
        assert store.replace_documents(_facts(1, start=2)) == 5
        assert everything(store) == _built_at_once(_facts(3))


@pytest.mark.parametrize("victim", ["server", "supervisor"])
def test_after_a_kill_the_next_call_works_and_nothing_is_lost(folder, victim):
    with open_embedded(folder) as store:
        store.replace_documents(_facts(5))
        server = embedded_status(folder).pid
        with open(f"/proc/{server}/status") as status:
            parent = int(next(line for line in status if line.startswith("PPid")).split()[1])
        os.kill(server if victim == "server" else parent, signal.SIGKILL)
        if victim == "supervisor":
            _wait_until(lambda: embedded_status(folder).pid != server)
        assert everything(store) == _built_at_once(_facts(5))
    with open_embedded(folder) as store:
        assert store.stats().documents == 5


def test_what_a_crash_leaves_behind_does_no_harm(folder):
    folder.mkdir()
    (folder / "server.lock").write_text("12345")
    (folder / "graph.sock").write_text("")
    with open_embedded(folder) as store:
        assert store.stats().documents == 0


@pytest.mark.slow
def test_many_processes_may_open_at_once(folder):
    answers = SPAWN.Queue()
    users = [SPAWN.Process(target=_count_documents, args=(folder, answers)) for _ in range(4)]
    for user in users:
        user.start()
    assert [answers.get(timeout=60) for _ in users] == [0] * 4
    for user in users:
        user.join(60)
        assert user.exitcode == 0


@pytest.mark.slow
def test_two_writers_at_once_lose_nothing(folder):
    facts = _facts(60)
    writers = [SPAWN.Process(target=_write_in_turns, args=(folder, facts[n::2])) for n in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
        assert writer.exitcode == 0
    with open_embedded(folder) as store:
        assert everything(store) == _built_at_once(facts)


def test_a_folder_too_long_for_a_socket_works(tmp_path):
    folder = tmp_path / ("long" * 20) / ("long" * 20)
    with open_embedded(folder) as store:
        store.replace_documents(_facts(1))
    assert stop_embedded(folder) is True
    with open_embedded(folder) as store:
        assert store.stats().documents == 1
    stop_embedded(folder)


def test_a_failed_start_tells_what_the_log_says(tmp_path):
    (tmp_path / "server.lock").mkdir()
    with pytest.raises(StoreError, match=r"did not start(.|\n)*server\.lock"):
        open_embedded(tmp_path)


def test_a_folder_that_can_not_be_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="can't be made"):
        open_embedded(tmp_path / "file" / "graph")


CHANGES = [
    "MATCH (n) DETACH DELETE n",
    "match (n) Set n.x = 1",
    "MATCH (n) REMOVE n.label",
    "CALL { CREATE (:X) } RETURN 1",
    "FOREACH (i IN [1] | CREATE (:X))",
    "LOAD CSV FROM 'file:///etc/hosts' AS l RETURN l",
    "MATCH (n) RETURN n; MATCH (m) DELETE m",
    "CREATE INDEX FOR (n:X) ON (n.y)",
    "RETURN (",
    "UNWIND range(1, 3) AS x",
]


def test_a_read_only_query_changes_nothing(folder):
    with open_embedded(folder) as store:
        store.replace_documents(_facts(2))
        before = everything(store)
        for statement in CHANGES:
            with pytest.raises(StoreError):
                store.query(statement)
        assert everything(store) == before
        assert store.query('RETURN "DELETE" AS word, $x AS x', {"x": {"a": ["'; DELETE", 1, None]}}) == [
            {"word": "DELETE", "x": {"a": ["'; DELETE", 1, None]}}
        ]
        (row,) = store.query("MATCH (e:Entity {key: $key})-[r]->(t:Entity) RETURN e, r, t.label AS tail", {"key": "a0"})
        assert (row["e"]["labels"], row["r"]["type"], row["tail"]) == (["Entity"], "KNOWS", "b0")
        with pytest.raises(StoreError, match="64 bits"):
            store.query("RETURN $x", {"x": 2**63})
        with pytest.raises(StoreError, match="can't be a name"):
            store.query("RETURN 1", {"x=1 MATCH (n) DELETE n //": 1})
        assert store.query("CREATE (:Note {text: 'x'})", read_only=False) == []
        assert store.query("MATCH (n:Note) RETURN n.text AS text") == [{"text": "x"}]


def test_a_server_that_cuts_results_is_found_out(folder):
    with open_embedded(folder) as store:
        store.replace_documents(_facts(30))
        whole = everything(store)
        store._transport.connected().execute_command("GRAPH.CONFIG", "SET", "RESULTSET_SIZE", 5)
        with pytest.raises(StoreError, match="RESULTSET_SIZE"):
            list(store.entities())
        with pytest.raises(StoreError, match="RESULTSET_SIZE"):
            list(store.relations())
        assert list(store.entities(page_size=4)) == whole["entities"]


def _used_by_a_step_that_fails(folder, n):
    with contextlib.suppress(RuntimeError), open_embedded(folder) as store:
        store.replace_documents(_facts(1, start=n))
        raise RuntimeError
    return store


def test_connections_are_closed_whatever_happens(folder):
    with open_embedded(folder) as watcher:
        before = embedded_status(folder).clients
        files = len(os.listdir("/proc/self/fd"))
        for n in range(20):
            store = _used_by_a_step_that_fails(folder, n)
            with pytest.raises(StoreError, match="closed"):
                store.stats()
        with pytest.raises(StoreError, match="can't be a name"):
            open_embedded(folder, graph="a b")
        _wait_until(lambda: embedded_status(folder).clients == before)
        assert len(os.listdir("/proc/self/fd")) == files
        assert watcher.stats().documents == 20


FAILS = ("MATCH (e:Entity) SET e.label = 'changed', e.map = {no: 'map'}", {})


@pytest.mark.parametrize("document_ids", [["d000"], ["d000", "d001", "d002"]])
@pytest.mark.parametrize("deleting", [True, False])
def test_a_write_that_fails_in_the_middle_leaves_everything_as_it_was(folder, monkeypatch, document_ids, deleting):
    def broken(read, ids, graphs):
        change = replacement(read, ids, graphs)
        return replace(change, statements=[*change.statements, FAILS])

    new = [pair(id_, "a0", "met", "someone new", 0.75, place="Oslo") for id_ in document_ids]
    with open_embedded(folder) as store, open_embedded(folder) as other:
        store.replace_documents(_facts(9))
        before = everything(store)
        monkeypatch.setattr("resources.graph.cypher.store.replacement", broken)
        with pytest.raises(StoreError, match="refused"):
            store.delete_documents(document_ids) if deleting else store.replace_documents(new)
        monkeypatch.undo()
        assert everything(other) == before
        assert everything(store) == before
        assert other.query("MATCH (:Chunk)-[p:PART_OF]->(:Document) RETURN count(p) AS n") == [{"n": 9}]
        store.replace_documents(new)
        assert everything(other) == _built_at_once([*new, *_facts(9 - len(new), start=len(new))])


def _large(id_, tag):
    """A document of 3,000 mentions, all of one version."""
    names = [f"{tag}{n}" for n in range(300)]
    mentions = [(name, "thing", 0.5) for name in names]
    said = [(a, "next to", b, 0.5) for a, b in pairwise(names)]
    return document(id_, *(Says(f"{tag} {n}", mentions, said) for n in range(10)))


@pytest.mark.slow
def test_readers_never_see_half_a_document(folder):
    old, new = _large("d", "old"), _large("d", "new")
    with open_embedded(folder) as store, open_embedded(folder) as reader:
        store.replace_documents([old])
        writer = threading.Thread(target=lambda: [store.replace_documents([graph]) for graph in [new, old] * 4])
        writer.start()
        seen = set()
        while writer.is_alive():
            statement = """OPTIONAL MATCH (:Entity)-[m:MENTIONED_IN]->(c:Chunk)
            WITH count(m) AS mentions, collect(DISTINCT left(c.text, 3)) AS versions
            OPTIONAL MATCH (:Entity)-[r]->(:Entity) RETURN mentions, versions, count(r) AS relations"""
            (row,) = reader.query(statement)
            seen.add((row["mentions"], tuple(row["versions"]), row["relations"]))
        writer.join()
    assert seen <= {(3000, ("old",), 299), (3000, ("new",), 299)}
    assert len(seen) == 2


@pytest.mark.slow
def test_a_server_killed_in_the_middle_of_writes_is_repaired_by_writing_again(folder):
    chance = random.Random(7)
    graphs = [_large(f"d{n}", f"v{n % 2}-") for n in range(6)]
    stop = threading.Event()

    def kill_now_and_then():
        while not stop.is_set():
            time.sleep(chance.uniform(0.05, 0.5))
            status = embedded_status(folder)
            if status.pid is not None and not stop.is_set():
                os.kill(status.pid, signal.SIGKILL)

    with open_embedded(folder) as store:
        killer = threading.Thread(target=kill_now_and_then)
        killer.start()
        interrupted = 0
        for graph in graphs:
            for attempt in range(8):
                stop_after = attempt == 4
                if stop_after:
                    stop.set()
                try:
                    store.replace_documents([graph])
                    break
                except StoreError:
                    interrupted += 1
        stop.set()
        killer.join()
        for id_, expected in ((g.document.id, g) for g in graphs):
            chunks = store.query("MATCH (c:Chunk {document_id: $id}) RETURN count(c) AS n", {"id": id_})[0]["n"]
            assert chunks in (0, len(expected.chunks))
        held = store.document_fingerprints()
        store.replace_documents([g for g in graphs if held.get(g.document.id) != g.fingerprint])
        assert everything(store) == _built_at_once(graphs)
