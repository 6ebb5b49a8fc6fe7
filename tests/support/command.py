"""Runs the `retrico` command: in this process, which is fast, or in a process of its own, as a user does."""

import contextlib
import gc
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

REPOSITORY = Path(__file__).parents[2]
COMMAND = [sys.executable, "-c", "from retrico_assets.cli.main import main; main()"]


@dataclass(frozen=True)
class Completed:
    """The exit code and the output of a command."""

    returncode: int
    stdout: str
    stderr: str


def run_in_process(*arguments: str) -> Completed:
    """Run a command in this process. Definitions are loaded afresh, and the environment is restored afterwards."""
    stdout, stderr = io.StringIO(), io.StringIO()
    with _fresh_process(), contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        from retrico_assets.cli.main import main

        with patch.object(sys, "argv", ["retrico", *arguments]):
            try:
                main()
                code = 0
            except SystemExit as exit_:
                code = exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    return Completed(code, stdout.getvalue(), stderr.getvalue())


def run_as_process(*arguments: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=timeout, cwd=REPOSITORY)


@contextlib.contextmanager
def _fresh_process() -> Iterator[None]:
    """What a command changes in its process is undone: variables, loaded definitions, the frozen heap."""
    sys.modules.pop("retrico_assets.definitions", None)
    with patch.dict(os.environ), contextlib.chdir(REPOSITORY):
        try:
            yield
        finally:
            gc.unfreeze()
            sys.modules.pop("retrico_assets.definitions", None)
