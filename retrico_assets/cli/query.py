"""`retrico query`: the job `query`, and its result."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg

from retrico_assets.cli.build import failures
from retrico_assets.cli.instance import opened_instance, run_job


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


def query(question: str, strategies: Sequence[str], top_k: int | None, hops: int | None, log_level: str) -> QueryOutcome:
    """Run the job `query` of the project in force."""
    options = {"strategies": list(strategies) or None, "top_k": top_k, "hops": hops}
    config = {"question": question, **{name: value for name, value in options.items() if value is not None}}
    with opened_instance() as instance:
        run = run_job("query", {"ops": {"parse_question": {"config": config}}}, instance, log_level)
    if not run.success:
        return QueryOutcome(None, "", tuple(failures(run)))
    return QueryOutcome(run.output_for_node("reason"), _markdown(run), ())


def _markdown(run: dg.ExecuteInProcessResult) -> str:
    output = next(event for event in run.events_for_node("reason") if event.is_successful_output)
    return str(output.step_output_data.metadata["answer"].value)
