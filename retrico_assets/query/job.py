"""A question as a Dagster job, so that every step of its answer can be looked at: the steps are those of answer.py."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import dagster as dg
from pydantic import Field

from resources.errors import SettingsError
from resources.records import Subgraph
from retrico_assets.failures import told_plainly
from retrico_assets.query.answer import (
    DEFAULT_STRATEGIES,
    Plan,
    Retrieved,
    failures_of,
    has_option,
    linked,
    merge,
    merged_options,
    needs_names,
    notes_of,
    result_of,
    retrieve,
    unlinked,
)
from retrico_assets.query.answering.evidence import Answer, Evidence, Spending, collect
from retrico_assets.query.answering.reason import reason
from retrico_assets.query.answering.render import render_markdown, render_table, to_json
from retrico_assets.query.failures import Failure, explain
from retrico_assets.query.options import QueryOptions
from retrico_assets.query.providers.graph_handle import GRAPH_STRATEGY, strategies_of
from retrico_assets.query.providers.rule import require_graph
from retrico_assets.query.question.question import Question, parse
from retrico_assets.query.rerank import rerank
from retrico_assets.query.retrievers.base import Need, Sources, check_limits, check_strategies, retriever_class

_listener: ContextVar[Callable[[str], None] | None] = ContextVar("listener", default=None)


@contextmanager
def listening(on_text: Callable[[str], None]) -> Iterator[None]:
    """Give the pieces of the answer to ``on_text`` as they are written, for jobs that run in this thread meanwhile."""
    token = _listener.set(on_text)
    try:
        yield
    finally:
        _listener.reset(token)


class QueryConfig(dg.Config):
    """What to ask, and how to look for it. What is left open is as `query` in project.yaml says."""

    question: str = Field(description="The question, as it is written.")
    strategies: list[str] | None = Field(None, description="Ways to look; the results of several are fused.")
    options: dict[str, Any] = Field({}, description="Options by strategy, such as {entity: {hops: 3}}.")
    top_k: int | None = Field(None, description="Entities, relations and chunks to keep.")
    hops: int | None = Field(None, description="Relations to walk, for every strategy that walks.")
    active_after: str | None = Field(None, description="Only relations that held on or after this date, such as 1905-01-01.")
    active_before: str | None = Field(None, description="Only relations that held on or before this date.")
    fusion: str | None = Field(None, description="rrf, weighted, union or intersection.")
    rrf_k: int | None = Field(None, description="The k of rrf and intersection: the smaller, the more the first ranks count.")
    weights: dict[str, float] | None = Field(None, description="How much each strategy counts; 1 unless given.")
    min_sources: int | None = Field(None, description="How many strategies must find an item, with intersection.")
    rerank: bool | None = Field(None, description="Whether the project's reranker orders the chunks. Default: if there is one.")
    chunk_source: str | None = Field(None, description="all chunks, or those of the relations' head, tail or both.")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question under way: what was asked, how it is answered, what is known of it, what has gone wrong so far."""

    question: Question
    plan: Plan
    failures: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fused:
    """The question and what all strategies together found."""

    asked: Asked
    subgraph: Subgraph


@dataclass(frozen=True, slots=True)
class Collected:
    """The question and the evidence for its answer."""

    asked: Asked
    evidence: Evidence


def planned(config: QueryConfig, project: QueryOptions, default: Sequence[str] = DEFAULT_STRATEGIES) -> Plan:
    """What the run says, else what the project says, else the defaults. SettingsError for what can't be done."""
    names = check_strategies(_first(config.strategies, project.strategies, default))
    top_k = _first(config.top_k, project.top_k, Plan().top_k)
    check_limits(top_k, config.hops)
    dates = {"active_after": config.active_after, "active_before": config.active_before}
    for option, value in {"hops": config.hops, **dates}.items():
        if value is not None and not any(has_option(name, option) for name in names):
            does = "walks by hops" if option == "hops" else "looks at dates"
            raise SettingsError(f"{option} is {value}, but no strategy asked {does} ({', '.join(names)}); add entity")
    options = merged_options(
        names,
        [
            ({"hops": project.hops}, {name: own for name, own in project.options.items() if name in names}),
            ({"hops": config.hops, **dates}, config.options),
        ],
    )
    if config.rerank and project.reranker is None:
        raise SettingsError("rerank is asked for, but the project has no reranker; set query.reranker in project.yaml")
    uses_reranker = project.reranker is not None and config.rerank is not False
    said = {"method": config.fusion, "k": config.rrf_k, "weights": config.weights, "min_sources": config.min_sources}
    fusion = project.fusion.replace(said, "fusion")
    if strangers := [name for name in config.weights or {} if name not in names]:
        raise SettingsError(f"weights for {', '.join(map(repr, strangers))}, but the strategies asked are: {', '.join(names)}")
    reranked = project.reranker.top if project.reranker and uses_reranker else 0
    return Plan(names, options, fusion, top_k, reranked, _first(config.chunk_source, project.chunk_source))


def _first(*values: Any) -> Any:
    return next(value for value in values if value is not None)


@dg.op(name="parse_question", required_resource_keys={"models", "project"})
@told_plainly
def parse_op(context: dg.OpExecutionContext, config: QueryConfig) -> Asked:
    """Find the entities that the question mentions, with the project's entity extractor."""
    settings = context.resources.project.settings
    plan = planned(config, settings.query, strategies_of(settings.retrieval.knowledge) or DEFAULT_STRATEGIES)
    if GRAPH_STRATEGY in plan.strategies:
        require_graph(settings)
    extractor = None
    failures: tuple[Failure, ...] = ()
    if needs_names(plan.strategies) and config.question.strip():
        try:
            extractor = context.resources.models.entity_extractor()
        except Exception as error:  # the graph's own names still work
            failures = (Failure("parse", f"the entity extractor can't be loaded: {explain(error)}"),)
    question, problems = parse(config.question, extractor)
    asked = Asked(question, plan, (*failures, *problems))
    _warn(context, asked.failures)
    rows = [(mention.text, mention.label, f"{mention.score:.3f}") for mention in question.mentions]
    _show(context, {"mentions": len(rows)}, {"found": (rows, ("mention", "type", "score"))}, asked.failures)
    return asked


@dg.op(name="link", required_resource_keys={"graph_store"})
def link_op(context: dg.OpExecutionContext, asked: Asked) -> Asked:
    """Find the entities of the graph that the question names: its mentions, and the graph's own names."""
    question = asked.question
    if needs_names(asked.plan.strategies):
        try:
            with context.resources.graph_store.connect() as graph:
                question = linked(question, graph)
        except Exception as error:  # the store can't be opened: strategies without need of names still answer
            question = unlinked(question, error)
    if question.fault:
        context.log.warning(question.fault)
    rows = [(entity.label, entity.type, entity.id) for entity in question.entities]
    _show(context, {"entities": len(rows)}, {"linked": (rows, ("entity", "type", "id"))})
    return replace(asked, question=question)


@dg.op(name="strategies", out=dg.DynamicOut(str))
def strategies_op(asked: Asked) -> Iterator[dg.DynamicOutput[str]]:
    """Send the question to each strategy."""
    for name in asked.plan.strategies:
        yield dg.DynamicOutput(name, mapping_key=re.sub(r"\W", "_", name))


@dg.op(name="retrieve", required_resource_keys={"graph_store", "text_store", "vector_store", "models", "project"})
def retrieve_op(context: dg.OpExecutionContext, asked: Asked, strategy: str) -> Retrieved:
    """Let one strategy look. If it fails, the others answer, and the result says so."""
    spent: dict[str, Any] = {}
    try:
        with ExitStack() as opened:
            sources = _opened(context, strategy, opened)
            found = retrieve(strategy, asked.question, sources, asked.plan)
            spent = _spent(sources.llm.usage) if sources.llm else {}
    except Exception as error:  # opening a store may fail in any driver's way
        found = Retrieved(strategy, Subgraph(), Failure(strategy, explain(error)))
    _warn(context, failures_of([found]))
    for note in found.notes:
        context.log.warning(note)
    _show_subgraph(
        context, found.subgraph, failures_of([found]), {"options": dict(asked.plan.options.get(strategy, {})), **spent}
    )
    return found


@dg.op(name="fuse")
def fuse_op(context: dg.OpExecutionContext, asked: Asked, found: list[Retrieved]) -> Fused:
    """Make one ranking of all."""
    subgraph = merge(found, asked.plan)
    _show_subgraph(context, subgraph, failures_of(found), {"method": asked.plan.fusion.method})
    return Fused(replace(asked, failures=asked.failures + failures_of(found), notes=notes_of(found)), subgraph)


@dg.op(name="rerank", required_resource_keys={"models"})
def rerank_op(context: dg.OpExecutionContext, fused: Fused) -> Fused:
    """Let the project's reranker, if it has one, put the best chunks in order."""
    asked = fused.asked
    if not asked.plan.reranked:
        _show(context, {"reranked": 0}, {})
        return fused
    name, read = "", len(fused.subgraph.chunks)
    try:
        reranker = context.resources.models.reranker()
        if reranker is None:
            raise SettingsError("project.yaml names a reranker since the definitions were loaded; reload them")
        name = reranker.name
        subgraph, failures = rerank(asked.question.text, fused.subgraph, reranker, asked.plan.top_k)
    except Exception as error:  # a model that can't be set up: the fused ranking is a good one
        subgraph = replace(fused.subgraph, chunks=fused.subgraph.chunks[: asked.plan.top_k])
        failures = (Failure("rerank", explain(error)),)
    _warn(context, failures)
    rows = [(found.record.text[:160], f"{found.score:.4f}") for found in subgraph.chunks]
    _show(context, {"reranked": read, "reranker": name}, {"chunk texts": (rows, ("text", "score"))}, failures)
    return Fused(replace(asked, failures=asked.failures + failures), subgraph)


@dg.op(name="collect", required_resource_keys={"text_store", "graph_store"})
def collect_op(context: dg.OpExecutionContext, fused: Fused) -> Collected:
    """Choose the chunks that count, and say where each comes from."""
    plan = fused.asked.plan
    try:
        with ExitStack() as opened:
            texts = _open("texts", context.resources, opened)
            graph = _open_if_it_can(context, "graph", opened, "collect")
            evidence, failures = collect(fused.subgraph, texts, graph, source=plan.chunk_source, max_chunks=plan.top_k)
    except Exception as error:  # the store can't be opened: the other steps' findings are still worth showing
        evidence = Evidence(fused.subgraph.entities, fused.subgraph.relations)
        failures = (Failure("collect", explain(error)),)
    _warn(context, failures)
    rows = [(chunk.source, chunk.chunk.text[:160], f"{chunk.score:.4f}") for chunk in evidence.chunks]
    _show(context, {"chunks": len(rows)}, {"chunk texts": (rows, ("source", "text", "score"))}, failures)
    return Collected(replace(fused.asked, failures=fused.asked.failures + failures), evidence)


@dg.op(name="reason", required_resource_keys={"models"})
def reason_op(context: dg.OpExecutionContext, collected: Collected) -> dict[str, Any]:
    """Let the language model, if the project has one, answer from the evidence; gives the result as JSON data."""
    asked, evidence = collected.asked, collected.evidence
    models = context.resources.models
    told = Answer()
    try:
        llm = models.llm()
        if llm is not None:
            with closing(llm):
                told = reason(asked.question.text, evidence, llm, token_budget=models.context_tokens, on_text=_listener.get())
    except Exception as error:  # a model that can't be set up must not take the evidence away
        told = Answer(failures=(Failure("reason", explain(error)),))
    _warn(context, told.failures)
    result = result_of(asked.question, asked.plan.strategies, evidence, asked.failures, asked.notes, told)
    if result.all_failed:
        context.log.error("no strategy could look: see the errors of the result")
    shown = {"answer": dg.MetadataValue.md(render_markdown(result)), "errors": len(result.failures)}
    context.add_output_metadata(shown | _spent(told.usage))
    return to_json(result)


# What the launchpad shows first: without it, everything that could be configured.
_EXAMPLE = {"ops": {"parse_question": {"config": {"question": "Write your question here"}}}}


@dg.job(name="query", description="Answer one question from the graph, and show the evidence.", config=_EXAMPLE)
def query_job() -> None:
    asked = link_op(parse_op())
    found = strategies_op(asked).map(lambda strategy: retrieve_op(asked, strategy))
    reason_op(collect_op(rerank_op(fuse_op(asked, found.collect()))))


def _opened(context: dg.OpExecutionContext, strategy: str, opened: ExitStack) -> Sources:
    """Only what the strategy needs or wants: a store that is down, or a model slow to load, is then nobody else's trouble."""
    kind = retriever_class(strategy)
    found: dict[str, Any] = {need: _open(need, context.resources, opened) for need in kind.needs}
    found |= {want: _open_if_it_can(context, want, opened, strategy) for want in kind.wants - kind.needs}
    found.pop("names", None)
    settings = context.resources.project.settings
    return Sources(**found, cache=settings.query_cache, project=settings)


def _open(need: Need, resources: Any, opened: ExitStack) -> Any:
    """The source, closed with the rest; None if the project has none."""
    if need == "graph":
        return opened.enter_context(resources.graph_store.connect())
    if need == "texts":
        return opened.enter_context(resources.text_store.connect())
    if need == "vectors":
        return opened.enter_context(resources.vector_store.connect())
    if need == "embedder":
        return resources.models.embedder()
    if need == "llm":
        llm = resources.models.llm()
        return llm and opened.enter_context(closing(llm))
    if need == "kg":
        from retrico_assets.kg.score import trained_model

        return trained_model(resources.project.settings.data_folder)
    return None


def _open_if_it_can(context: dg.OpExecutionContext, want: Need, opened: ExitStack, user: str) -> Any:
    """What the user can do without."""
    try:
        return _open(want, context.resources, opened)
    except Exception as error:  # opening a store may fail in any driver's way
        context.log.warning(f"{user} goes on without {want}: {explain(error)}")
        return None


def _spent(usage: Spending) -> dict[str, Any]:
    """What the language model took, as metadata; nothing if it was not asked."""
    if not usage.requests and not usage.cached:
        return {}
    spent = {"llm requests": usage.requests, "llm cached": usage.cached}
    spent |= {"prompt tokens": usage.prompt_tokens, "completion tokens": usage.completion_tokens}
    return spent if usage.cost is None else spent | {"cost": usage.cost}


def _warn(context: dg.OpExecutionContext, failures: tuple[Failure, ...]) -> None:
    for failure in failures:
        context.log.warning(f"{failure.strategy} failed: {failure.error}")


def _show(
    context: dg.OpExecutionContext,
    facts: Mapping[str, Any],
    tables: Mapping[str, tuple[Sequence[Sequence[str]], Sequence[str]]],
    failures: tuple[Failure, ...] = (),
) -> None:
    shown: dict[str, Any] = dict(facts)
    shown |= {name: dg.MetadataValue.md(render_table(rows, header)) for name, (rows, header) in tables.items() if rows}
    if failures:
        shown["errors"] = dg.MetadataValue.md(render_table([(f.strategy, f.error) for f in failures], ("step", "error")))
    context.add_output_metadata(shown)


def _show_subgraph(
    context: dg.OpExecutionContext, subgraph: Subgraph, failures: tuple[Failure, ...], facts: Mapping[str, Any]
) -> None:
    entities = [(found.record.label, found.record.type, f"{found.score:.4f}") for found in subgraph.entities]
    triples = Evidence(subgraph.entities, subgraph.relations).triples()
    relations = [(*triple, f"{found.score:.4f}") for triple, found in zip(triples, subgraph.relations, strict=True)]
    counts = {"entities": len(entities), "relations": len(relations), "chunks": len(subgraph.chunks)}
    _show(
        context,
        {**counts, **facts},
        {
            "top entities": (entities, ("entity", "type", "score")),
            "top relations": (relations, ("head", "relation", "tail", "score")),
        },
        failures,
    )
