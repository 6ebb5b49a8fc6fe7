"""A question as a Dagster job: an op for each step of steps.py, so that the UI shows what each one did."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise
from typing import Any

import dagster as dg
from pydantic import Field

from retrico_assets.failures import as_dagster_failure
from retrico_assets.query.answering.render import render_markdown, render_table, to_json
from retrico_assets.query.failures import Failure
from retrico_assets.query.options import QuestionOptions
from retrico_assets.query.plan import DEFAULT_STRATEGIES, Plan, plan_for_project
from retrico_assets.query.project_session import project_session
from retrico_assets.query.providers.graph_handle import GRAPH_STRATEGY, strategies_of
from retrico_assets.query.providers.rule import require_graph
from retrico_assets.query.session import QuerySession
from retrico_assets.query.state import QueryState, Retrieved
from retrico_assets.query.step_reports import Markdown, Report
from retrico_assets.query.steps import STEPS, AnyStep, Step, StrategyStep
from retrico_assets.run_config import RunConfig, fields_of

QUESTION_OP = STEPS[0].name
"""The op that takes the question and its options as config."""
RESULT_OP = STEPS[-1].name
"""The op whose output is the result as JSON data, and whose metadata has the answer as Markdown."""

_RESOURCES = {"graph_store", "text_store", "vector_store", "models", "project"}

_listener: ContextVar[Callable[[str], None] | None] = ContextVar("listener", default=None)


@contextmanager
def listening(on_text: Callable[[str], None]) -> Iterator[None]:
    """Give the pieces of the answer to ``on_text`` as they are written, for jobs that run in this thread meanwhile."""
    token = _listener.set(on_text)
    try:
        yield
    finally:
        _listener.reset(token)


@fields_of(QuestionOptions)
class QueryConfig(RunConfig):
    """A question, and options for it. What is left out is as `query` in project.yaml says."""

    question: str = Field(description="The question, as you would ask it.")


# What the launchpad shows first: without it, everything that could be configured.
_EXAMPLE = {"ops": {QUESTION_OP: {"config": {"question": "Write your question here"}}}}


def make_query_job(steps: Sequence[AnyStep] = STEPS) -> dg.JobDefinition:
    """A job with an op for each step. The first op takes a QueryConfig, the last one gives the result as JSON data."""
    for before, step in pairwise([None, *steps]):
        if isinstance(step, StrategyStep) and not isinstance(before, Step):
            raise TypeError(f"{step.name} runs for each strategy, so it must follow a step that does not.")
    start = _start_op(steps[0])
    ops = [(step, _op_of(step, before, is_last=step is steps[-1])) for before, step in pairwise(steps)]

    @dg.job(name="query", description="Answer one question from the graph, and show the evidence.", config=_EXAMPLE)
    def query() -> None:
        state = start()
        retrieved: dict[str, Any] = {}
        for step, op in ops:
            if isinstance(step, StrategyStep):
                retrieved = {"retrieved": _for_each_strategy(step, op, state)}
            else:
                state = op(state, **retrieved)
                retrieved = {}

    return query


def _for_each_strategy(step: StrategyStep, op: dg.OpDefinition, state: Any) -> Any:
    """The results of an op that runs once for each strategy."""
    strategies = _split_op(step)(state)
    return strategies.map(lambda strategy: op(state, strategy)).collect()


def _start_op(step: Any) -> dg.OpDefinition:
    @dg.op(name=step.name, description=step.run.__doc__, required_resource_keys=_RESOURCES)
    @as_dagster_failure
    def start(context: dg.OpExecutionContext, config: QueryConfig) -> QueryState:
        state = QueryState.begin(config.question, _plan(context, config))
        _warn(context, state.failures)
        return _run(context, step, state, shown_failures=0)

    return start


def _op_of(step: AnyStep, before: AnyStep, *, is_last: bool) -> dg.OpDefinition:
    """The op of a step that is not the first. After a step for each strategy it takes the results of these, too."""
    if isinstance(step, StrategyStep):
        return _strategy_op(step)
    plain_step = step

    def run(context: dg.OpExecutionContext, state: QueryState, retrieved: Sequence[Retrieved]) -> Any:
        after = _run(context, plain_step, state.with_retrieved(retrieved), shown_failures=len(state.failures))
        return _result(context, after) if is_last else after

    op = dg.op(name=step.name, description=step.run.__doc__, required_resource_keys=_RESOURCES)
    if isinstance(before, StrategyStep):

        @op
        @as_dagster_failure
        def with_results(context: dg.OpExecutionContext, state: QueryState, retrieved: list[Retrieved]) -> Any:
            return run(context, state, retrieved)

        return with_results

    @op
    @as_dagster_failure
    def without_results(context: dg.OpExecutionContext, state: QueryState) -> Any:
        return run(context, state, ())

    return without_results


def _split_op(step: StrategyStep) -> dg.OpDefinition:
    @dg.op(name=step.split, out=dg.DynamicOut(str), description="Send the question to each strategy.")
    def split(state: QueryState) -> Iterator[dg.DynamicOutput[str]]:
        for strategy in state.plan.strategies:
            yield dg.DynamicOutput(strategy, mapping_key=re.sub(r"\W", "_", strategy))

    return split


def _strategy_op(step: StrategyStep) -> dg.OpDefinition:
    @dg.op(name=step.name, description=step.run.__doc__, required_resource_keys=_RESOURCES)
    @as_dagster_failure
    def run(context: dg.OpExecutionContext, state: QueryState, strategy: str) -> Retrieved:
        with _session(context) as session:
            result = step.apply_to(strategy, state, session)
            report = step.report(result, state, session)
        failures = (result.failure,) if result.failure else ()
        _warn(context, failures, result.notes)
        _show(context, report, failures)
        return result

    return run


def _run(context: dg.OpExecutionContext, step: Step, state: QueryState, *, shown_failures: int) -> QueryState:
    """Run a step and show what it did, with all failures but the first ``shown_failures``."""
    with _session(context) as session:
        after = step.apply(state, session)
        report = step.report(state, after, session)
    _warn(context, after.failures[len(state.failures) :], after.notes[len(state.notes) :])
    _show(context, report, after.failures[shown_failures:])
    return after


def _result(context: dg.OpExecutionContext, state: QueryState) -> dict[str, Any]:
    result = state.result()
    if result.all_failed:
        context.log.error('Every strategy failed. See "errors" in the result.')
    answer = dg.MetadataValue.md(render_markdown(result))
    context.add_output_metadata({"answer": answer, "errors": len(result.failures)})
    return to_json(result)


def _plan(context: dg.OpExecutionContext, config: QueryConfig) -> Plan:
    settings = context.resources.project.settings
    plan = plan_for_project(
        config.model_dump(),
        settings.query,
        default_strategies=strategies_of(settings.retrieval.knowledge) or DEFAULT_STRATEGIES,
        token_budget=context.resources.models.context_tokens,
    )
    if GRAPH_STRATEGY in plan.strategies:
        require_graph(settings.retrieval_facts)
    return plan


def _session(context: dg.OpExecutionContext) -> QuerySession:
    resources, settings = context.resources, context.resources.project.settings
    return project_session(
        resources.graph_store,
        resources.text_store,
        resources.vector_store,
        resources.models,
        data_folder=settings.data_folder,
        cache=settings.query_cache,
        project=settings.retrieval_facts,
        warn=context.log.warning,
        on_text=_listener.get(),
    )


def _warn(context: dg.OpExecutionContext, failures: Sequence[Failure], notes: Sequence[str] = ()) -> None:
    for failure in failures:
        context.log.warning(f"{failure.strategy} failed: {failure.error}")
    for note in notes:
        context.log.warning(note)


def _show(context: dg.OpExecutionContext, report: Report, failures: Sequence[Failure]) -> None:
    shown = {name: dg.MetadataValue.md(value) if isinstance(value, Markdown) else value for name, value in report.items()}
    if failures:
        rows = [(failure.strategy, failure.error) for failure in failures]
        shown["errors"] = dg.MetadataValue.md(render_table(rows, ("step", "error")))
    context.add_output_metadata(shown)


query_job = make_query_job()
