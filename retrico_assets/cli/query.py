"""`retrico query`: the job `query` and its result; the strategies and their options."""

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
from retrico_assets.query.job import QUESTION_OP, RESULT_OP, listening
from retrico_assets.query.retrievers.base import known_strategies, retriever_class


@dataclass(frozen=True)
class QueryOutcome:
    """The result as JSON data and as Markdown, and a line for each failure. There is no result if the job failed."""

    result: dict[str, Any] | None
    markdown: str
    failures: tuple[str, ...]

    @property
    def answered(self) -> bool:
        """Whether at least one strategy did not fail."""
        if self.result is None:
            return False
        failed = {error["strategy"] for error in self.result["errors"]}
        return not failed.issuperset(self.result["strategies"])


def query(
    question: str, settings: Mapping[str, Any], log_level: str, on_text: Callable[[str], None] | None = None
) -> QueryOutcome:
    """Run the job `query` of the current project.

    ``settings`` are fields of QueryConfig; empty ones are left to the project. ``on_text`` gets the answer as it is written.
    """
    given = {name: value for name, value in settings.items() if value not in (None, [], {})}
    config = {"question": question, **given}
    with opened_instance() as instance, listening(on_text) if on_text else nullcontext():
        run = run_job("query", {"ops": {QUESTION_OP: {"config": config}}}, instance, log_level)
    if not run.success:
        return QueryOutcome(None, "", tuple(failures(run)))
    return QueryOutcome(run.output_for_node(RESULT_OP), _markdown(run), ())


def read_options(texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Options by strategy, each written as ``strategy.option=value``. A value in brackets or braces is JSON.

    Raises:
        SettingsError: an option is written in another way.
    """
    options: dict[str, dict[str, Any]] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        strategy, dot, option = name.strip().partition(".")
        if not (equals and dot and strategy and option):
            raise SettingsError(f"--option is {text!r}. It must be strategy.option=value, such as entity.hops=3.")
        options.setdefault(strategy, {})[option] = _value(text, value.strip())
    return options


def read_weights(text: str) -> dict[str, float]:
    """Weights by strategy, written as ``entity=2,keyword=1``.

    Raises:
        SettingsError: a weight is written in another way.
    """
    weights: dict[str, float] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, number = part.partition("=")
        try:
            weights[name.strip()] = float(number)
        except ValueError:
            raise SettingsError(f"--weights contains {part!r}. It must be strategy=number, such as entity=2,keyword=1.") from None
    return weights


def strategy_lines() -> Iterator[tuple[str, str, list[str]]]:
    """Each strategy with a line about it, and its options with their defaults."""
    for name in known_strategies():
        kind = retriever_class(name)
        about = inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0].replace("\n", " ").replace("``", "")
        about = re.sub(r" \([\w.]+\)", "", about)  # names of the code mean nothing to a user
        yield name, about, [f"{option}={_default(field)}" for option, field in kind.options.model_fields.items()]


def _default(field: FieldInfo) -> str:
    default = field.get_default(call_default_factory=True)
    return "" if default is None else str(default)


def _value(text: str, value: str) -> Any:
    """The value of an option. Words and numbers stay text: the type of the option reads them."""
    if not value.startswith(("[", "{")):
        return value
    try:
        return json.loads(value)
    except ValueError as error:
        raise SettingsError(f"--option is {text!r}. Its value must be JSON ({error}).") from None


def _markdown(run: dg.ExecuteInProcessResult) -> str:
    output = next(event for event in run.events_for_node(RESULT_OP) if event.is_successful_output)
    return str(output.step_output_data.metadata["answer"].value)
