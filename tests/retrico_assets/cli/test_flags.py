"""Command-line flags that are derived from options."""

from typing import Annotated, Any, Literal

import pytest
import typer
from pydantic import Field
from typer.testing import CliRunner

from resources.errors import SettingsError
from resources.options import Options, ProjectPath
from retrico_assets.cli.flags import check, flags_of


class ExampleOptions(Options):
    levels: int = Field(default=3, ge=1, le=10, description="The most levels.")
    method: Literal["fast", "exact"] = Field(default="fast", description="How to search.")
    deep: bool = Field(default=False, description="Whether to go deep.")
    names: list[str] = Field(default=[], description="Some names.")
    split: list[float] = Field(default=[], description="Some shares.")
    more: dict[str, Any] = Field(default={}, description="More options.")
    file: ProjectPath | None = Field(default=None, description="A file.")
    model: str = Field(default="owner/name", description="A model.")


NAMES = {"model": "search_model"}
received: list[dict[str, Any]] = []
app = typer.Typer(pretty_exceptions_enable=False)


@app.command()
@flags_of(ExampleOptions, names=NAMES)
def search(
    question: Annotated[str, typer.Argument(help="A question.")],
    values: dict[str, Any],
    loud: Annotated[bool, typer.Option("--loud")] = False,
) -> None:
    """Search."""
    received.append({"question": question, "loud": loud, "values": values})


def run(*arguments):
    received.clear()
    result = CliRunner().invoke(app, ["why", *arguments])
    return result, received[0] if received else None


def test_without_flags_there_are_no_values():
    _, call = run()
    assert call == {"question": "why", "loud": False, "values": {}}


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        (["--levels", "4"], {"levels": 4}),
        (["--levels", "99"], {"levels": 99}),
        (["--method", "exact"], {"method": "exact"}),
        (["--deep"], {"deep": True}),
        (["--no-deep"], {"deep": False}),
        (["--names", "a, b", "--names", "c"], {"names": ["a", "b", "c"]}),
        (["--split", "0.8,0.2"], {"split": [0.8, 0.2]}),
        (["--more", '{"k": [1]}'], {"more": {"k": [1]}}),
        (["--search-model", "other/name"], {"model": "other/name"}),
        (["--loud"], {}),
    ],
)
def test_a_flag_gives_the_value_of_its_option(arguments, values):
    result, call = run(*arguments)
    assert result.exit_code == 0, result.output
    assert call["values"] == values


def test_paths_are_relative_to_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, call = run("--file", "facts.tsv")
    assert call["values"] == {"file": str(tmp_path / "facts.tsv")}


def test_help_has_the_descriptions_and_the_choices(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    output = CliRunner().invoke(app, ["--help"]).output
    for text in ("--levels", "The most levels.", "One of: fast, exact.", "Separated by commas.", "As JSON.", "--no-deep"):
        assert text in output
    assert "--search-model" in output
    assert "--values" not in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--more", "{"], "--more is '{'. It must be JSON"),
        (["--split", "0.8,half"], "--split contains 'half'. Each part must be a number."),
    ],
)
def test_what_can_not_be_read_is_named_by_its_flag(arguments, message):
    result, call = run(*arguments)
    assert call is None
    assert isinstance(result.exception, SettingsError)
    assert message in str(result.exception)


def test_values_are_checked_by_the_options_and_named_by_their_flags():
    with pytest.raises(SettingsError) as error:
        check(ExampleOptions(), {"levels": 0, "method": "quick"})
    assert str(error.value) == "--levels is 0. It must be between 1 and 10. --method is 'quick'. It must be 'fast' or 'exact'."
    with pytest.raises(SettingsError, match=r"^--search-model "):
        check(ExampleOptions(), {"model": 3}, NAMES)
    check(ExampleOptions(), {"levels": 10})
