"""`retrico query`: the job `query`, and its result. Also what there is to choose from."""

import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import dagster as dg
from pydantic.fields import FieldInfo

from resources.errors import SettingsError
from retrico_assets.cli.build import failures
from retrico_assets.cli.instance import opened_instance, run_job
from retrico_assets.query.job import listening
from retrico_assets.query.retrievers.base import RETRIEVERS, retriever_class


@dataclass(frozen=True)
class QueryOutcome:
    """The result as `--json` prints it and as Markdown, and what failed, in words. No result if the job did not end."""

    result: dict[str, Any] | None
    markdown: str
    failures: tuple[str, ...]

    @property
    def answered(self) -> bool:
        """Whether at least one strategy could look."""
        if self.result is None:
            return False
        failed = {error["strategy"] for error in self.result["errors"]}
        return not failed.issuperset(self.result["strategies"])


def query(
    question: str, settings: Mapping[str, Any], log_level: str, on_text: Callable[[str], None] | None = None
) -> QueryOutcome:
    """Run the job `query` of the project in force.

    ``settings`` are fields of QueryConfig; None and empty ones are left to the project. ``on_text`` gets the answer as it is
    written.
    """
    given = {name: value for name, value in settings.items() if value not in (None, [], {})}
    config = {"question": question, **given}
    with opened_instance() as instance, listening(on_text) if on_text else nullcontext():
        run = run_job("query", {"ops": {"parse_question": {"config": config}}}, instance, log_level)
    if not run.success:
        return QueryOutcome(None, "", tuple(failures(run)))
    return QueryOutcome(run.output_for_node("reason"), _markdown(run), ())


def read_options(texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Options by strategy, each written as ``strategy.option=value``; a value in brackets or braces is JSON.

    SettingsError for one that is not so written.
    """
    options: dict[str, dict[str, Any]] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        strategy, dot, option = name.strip().partition(".")
        if not (equals and dot and strategy and option):
            raise SettingsError(f"--option {text!r} is not of the form strategy.option=value, such as entity.hops=3")
        options.setdefault(strategy, {})[option] = _value(text, value.strip())
    return options


def read_weights(text: str) -> dict[str, float]:
    """Weights by strategy, written as ``entity=2,keyword=1``. SettingsError for one that is not so written."""
    weights: dict[str, float] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, number = part.partition("=")
        try:
            weights[name.strip()] = float(number)
        except ValueError:
            raise SettingsError(f"--weights {part!r} is not of the form strategy=number, such as entity=2,keyword=1") from None
    return weights


def strategy_lines() -> Iterator[tuple[str, str, list[str]]]:
    """Each strategy with what it does, in a line, and its options, each with its default."""
    for name in RETRIEVERS:
        kind = retriever_class(name)
        about = inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0].replace("\n", " ").replace("``", "")
        about = re.sub(r" \([\w.]+\)", "", about)  # what a reader of the code would look up
        yield name, about, [f"{option}={_default(field)}" for option, field in kind.options.model_fields.items()]


def _default(field: FieldInfo) -> str:
    default = field.get_default(call_default_factory=True)
    return "" if default is None else str(default)


def _value(text: str, value: str) -> Any:
    """Words and numbers stay as written: what they mean is for the option's type to say."""
    if not value.startswith(("[", "{")):
        return value
    try:
        return json.loads(value)
    except ValueError as error:
        raise SettingsError(f"--option {text!r}: the value is no JSON ({error})") from None


def _markdown(run: dg.ExecuteInProcessResult) -> str:
    output = next(event for event in run.events_for_node("reason") if event.is_successful_output)
    return str(output.step_output_data.metadata["answer"].value)
