"""Files that are replaced as a whole."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from resources.files.private import private_folder
from resources.files.replacing import replace_atomically


def test_the_new_content_takes_the_place_of_the_old(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for text in ("one", "two"):
        with replace_atomically(path) as temporary:
            temporary.write_text(text)
            assert not path.exists() or path.read_text() == "one"
        assert path.read_text() == text
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_failed_write_leaves_the_old_content_and_no_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("old")

    def fail() -> None:
        with replace_atomically(path) as temporary:
            temporary.write_text("half")
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        fail()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.json"]


def test_the_temporary_file_of_a_killed_writer_is_removed_and_that_of_a_live_one_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    script = (
        "import sys, time; from pathlib import Path; from resources.files.replacing import replace_atomically\n"
        "with replace_atomically(Path(sys.argv[1])) as temporary:\n"
        "    temporary.write_text('half'); print(temporary, flush=True); time.sleep(600)\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout
    left = Path(writer.stdout.readline().strip())
    writer.stdout.close()
    with replace_atomically(path) as temporary:
        temporary.write_text("one")
    assert left.read_text() == "half"
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait()
    with replace_atomically(path) as temporary:
        temporary.write_text("two")
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_private_folder_is_refused_when_others_can_open_it(tmp_path: Path) -> None:
    folder = private_folder(tmp_path / "private")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert private_folder(folder) == folder
    folder.chmod(0o750)
    with pytest.raises(PermissionError, match="not a private folder"):
        private_folder(folder)
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(PermissionError, match="not a private folder"):
        private_folder(tmp_path / "link")
