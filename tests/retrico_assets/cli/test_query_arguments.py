"""What is written after `retrico query`, and how the answer shows while it is written."""

import os
import pty
import re
import subprocess
import sys

import pytest

from resources.errors import SettingsError
from retrico_assets.cli.query import read_options, read_weights, strategy_lines
from retrico_assets.query.retrievers.base import check_options, known_strategies


def test_options_are_read_by_strategy():
    given = ["entity.hops=3", " path.max_length = 4", "entity.active_after=1905", 'tool.labels=["a", "b"]', "tool.note=a=b"]
    assert read_options(given) == {
        "entity": {"hops": "3", "active_after": "1905"},
        "path": {"max_length": "4"},
        "tool": {"labels": ["a", "b"], "note": "a=b"},
    }


def test_a_number_is_read_by_the_type_of_its_option():
    options = read_options(["entity.hops=3", "entity.active_after=1905"])["entity"]
    checked = check_options("entity", options)
    assert (checked.hops, checked.active_after) == (3, "1905")


@pytest.mark.parametrize("text", ["entity", "entity.hops", "hops=3", ".hops=3", "entity.=3", "", "entity.hops=[1,"])
def test_a_wrong_option_is_an_error_that_shows_the_form(text):
    with pytest.raises(SettingsError, match=r"entity\.hops=3|must be JSON") as error:
        read_options([text])
    assert repr(text) in str(error.value)


def test_weights_are_numbers_by_strategy():
    assert read_weights("entity=2, keyword=0.5,") == {"entity": 2.0, "keyword": 0.5}
    assert read_weights("") == {}
    for text in ("entity", "entity=", "entity=much"):
        with pytest.raises(SettingsError, match="strategy=number"):
            read_weights(text)


def test_every_strategy_has_a_line_about_it():
    lines = list(strategy_lines())
    assert [name for name, _, _ in lines] == list(known_strategies())
    assert all(about and "\n" not in about and "`" not in about for _, about, _ in lines)
    assert "hops=2" in {name: options for name, _, options in lines}["entity"]


PIECES = """
from retrico_assets.cli.stream import shown_as_written
with shown_as_written({wanted}, {as_json}) as on_text:
    for piece in {pieces!r}:
        on_text and on_text(piece)
print("the result")
"""


def shown(wanted=None, as_json=False, pieces=("In [b]Ulm[/b]", " [1].")):
    """What stdout and stderr show in pipes."""
    code = PIECES.format(wanted=wanted, as_json=as_json, pieces=pieces)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout, done.stderr


def test_in_a_pipe_the_answer_is_streamed_only_with_the_flag():
    assert shown() == ("the result\n", "")
    assert shown(wanted=True) == ("the result\n", "In [b]Ulm[/b] [1].\n")
    assert shown(wanted=True, as_json=True) == ("the result\n", "In [b]Ulm[/b] [1].\n")


def on_a_terminal(**settings):
    """What a terminal of 80 columns receives."""
    ours, theirs = pty.openpty()
    code = PIECES.format(**settings)
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "80", "LINES": "10"}
    process = subprocess.Popen([sys.executable, "-c", code], stdout=theirs, stderr=subprocess.PIPE, env=environment)
    os.close(theirs)
    received = b""
    try:
        while piece := os.read(ours, 4096):
            received += piece
    except OSError:  # what Linux gives at the end of a terminal
        pass
    os.close(ours)
    assert process.wait() == 0, process.stderr.read()
    process.stderr.close()
    return received.decode()


def test_on_a_terminal_the_growing_answer_is_replaced_by_the_result():
    received = on_a_terminal(wanted=None, as_json=False, pieces=("In [b]Ulm[/b]", " [1]."))
    assert "In [b]Ulm[/b]" in received
    assert received.index("Ulm") < received.rindex("\x1b[2K") < received.index("the result")


def test_a_terminal_shows_the_end_of_a_long_answer():
    received = on_a_terminal(wanted=None, as_json=False, pieces=[f"line {number}\n" for number in range(50)])
    assert "line 49" in received
    frames = re.findall(r"(?:\x1b\[1A\x1b\[2K)+", received)
    assert frames
    assert max(frame.count("\x1b[1A") for frame in frames) < 10


def test_with_json_a_terminal_shows_nothing_else():
    assert on_a_terminal(wanted=None, as_json=True, pieces=("In Ulm",)) == "the result\r\n"
