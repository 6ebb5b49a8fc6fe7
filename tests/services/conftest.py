"""Servers that the tests start: fetched with Maven once, run on a free port of this machine, stopped afterwards.

They are skipped where java or mvn is missing. With RETRICO_REQUIRE_SERVERS=1 that is a failure instead.
RETRICO_TEST_CACHE names another folder for what is fetched.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.files.locking import locked

POM = Path(__file__).parent / "neo4j_server" / "pom.xml"
CACHE = Path(os.environ.get("RETRICO_TEST_CACHE") or Path.home() / ".cache" / "retrico-tests")
FETCH_SECONDS, START_SECONDS, STOP_SECONDS = 600, 120, 30
OPENED = ("java.nio", "java.io", "sun.nio.ch", "java.util.concurrent")
SETTINGS = """server.default_listen_address=127.0.0.1
server.bolt.listen_address=127.0.0.1:{port}
server.http.enabled=false
server.https.enabled=false
dbms.security.auth_enabled=false
server.memory.heap.max_size=512m
server.memory.pagecache.size=64m
dbms.usage_report.enabled=false
"""


@pytest.fixture(scope="session")
def neo4j_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Neo4j server with an empty database."""
    home = tmp_path_factory.mktemp("neo4j")
    port = _free_port()
    (home / "conf").mkdir()
    (home / "conf" / "neo4j.conf").write_text(SETTINGS.format(port=port))
    command = ["java", "-Xmx512m", "-cp", f"{_neo4j_jars()}/*"]
    command += [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
    command += ["org.neo4j.server.CommunityEntryPoint", f"--home-dir={home}", f"--config-dir={home}/conf", "--console-mode"]
    log = home / "server.log"
    with log.open("wb") as output:
        server = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        _wait_until_started(server, log)
        yield f"bolt://127.0.0.1:{port}"
    finally:
        _stop(server)


def _neo4j_jars() -> Path:
    """The folder of the server's jars, fetched once."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            _unavailable(f"{program} is not installed")
    version = POM.read_text().split("<version>")[2].split("<")[0]
    jars = CACHE / f"neo4j-{version}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with locked(CACHE / "neo4j.lock"):
        if not jars.is_dir():
            partly = CACHE / f"neo4j-{version}.partly"
            shutil.rmtree(partly, ignore_errors=True)
            fetch = ["mvn", "-q", "-B", "-f", str(POM), "dependency:copy-dependencies", "-DincludeScope=runtime"]
            done = subprocess.run([*fetch, f"-DoutputDirectory={partly}"], capture_output=True, text=True, timeout=FETCH_SECONDS)
            if done.returncode:
                _unavailable(f"Maven can't fetch Neo4j: {done.stdout[-500:]}")
            partly.rename(jars)
    return jars


def _unavailable(reason: str) -> None:
    if os.environ.get("RETRICO_REQUIRE_SERVERS") == "1":
        pytest.fail(f"RETRICO_REQUIRE_SERVERS is 1, but {reason}.")
    pytest.skip(f"No Neo4j server: {reason}.")


def _wait_until_started(server: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while "Started." not in (text := log.read_text(errors="replace")):
        if server.poll() is not None or time.monotonic() > deadline:
            pytest.fail(f"The Neo4j server did not start. Last lines of its log:\n{text[-2000:]}")
        time.sleep(0.1)


def _stop(server: "subprocess.Popen[bytes]") -> None:
    if server.poll() is None:
        os.killpg(server.pid, signal.SIGTERM)
    try:
        server.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])
