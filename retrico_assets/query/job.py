"""A question as a Dagster job, so that every step of its answer can be looked at: the steps are those of answer.py."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from typing import Any

import dagster as dg
from pydantic import Field

from resources.records import Subgraph
from retrico_assets.failures import told_plainly
from retrico_assets.query.answer import (
    DEFAULT_STRATEGIES,
    Retrieved,
    failures_of,
    linked,
    merge,
    needs_names,
    retrieve,
    unlinked,
    with_hops,
)
from retrico_assets.query.evidence import Evidence, QueryResult, collect, render_markdown, render_table, to_json
from retrico_assets.query.parse import Failure, Question, explain, parse
from retrico_assets.query.reason import reason
from retrico_assets.query.retriever import Sources, check_limits, check_strategies, retriever_class


class QueryConfig(dg.Config):
    """What to ask, and how to look for it."""

    question: str = Field(description="The question, as it is written.")
    strategies: list[str] = Field(list(DEFAULT_STRATEGIES), description="Ways to look; the results of several are fused.")
    top_k: int = Field(10, description="Entities, relations and chunks to keep.")
    hops: int = Field(2, description="Relations to walk from the entities that the question names.")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question under way: what was asked, what is known of it, what has gone wrong so far."""

    question: Question
    strategies: tuple[str, ...]
    top_k: int
    hops: int
    failures: tuple[Failure, ...] = ()


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


@dg.op(name="parse_question", required_resource_keys={"models"})
@told_plainly
def parse_op(context: dg.OpExecutionContext, config: QueryConfig) -> Asked:
    """Find the entities that the question mentions, with the project's entity extractor."""
    strategies = check_strategies(config.strategies)
    check_limits(config.top_k, config.hops)
    extractor = None
    failures: tuple[Failure, ...] = ()
    if needs_names(strategies) and config.question.strip():
        try:
            extractor = context.resources.models.entity_extractor()
        except Exception as error:  # the graph's own names still work
            failures = (Failure("parse", f"the entity extractor can't be loaded: {explain(error)}"),)
    question, problems = parse(config.question, extractor)
    asked = Asked(question, strategies, config.top_k, config.hops, (*failures, *problems))
    _warn(context, asked.failures)
    rows = [(mention.text, mention.label, f"{mention.score:.3f}") for mention in question.mentions]
    _show(context, {"mentions": len(rows)}, {"found": (rows, ("mention", "type", "score"))}, asked.failures)
    return asked


@dg.op(name="link", required_resource_keys={"graph_store"})
def link_op(context: dg.OpExecutionContext, asked: Asked) -> Asked:
    """Find the entities of the graph that the question names: its mentions, and the graph's own names."""
    question = asked.question
    if needs_names(asked.strategies):
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
    for name in asked.strategies:
        yield dg.DynamicOutput(name, mapping_key=re.sub(r"\W", "_", name))


@dg.op(name="retrieve", required_resource_keys={"graph_store", "text_store", "vector_store", "models"})
def retrieve_op(context: dg.OpExecutionContext, asked: Asked, strategy: str) -> Retrieved:
    """Let one strategy look. If it fails, the others answer, and the result says so."""
    found = _look(context.resources, asked, strategy)
    if found.failure:
        _warn(context, (found.failure,))
    _show_subgraph(context, found.subgraph, (found.failure,) if found.failure else ())
    return found


@dg.op(name="fuse")
def fuse_op(context: dg.OpExecutionContext, asked: Asked, found: list[Retrieved]) -> Fused:
    """Make one ranking of all, by reciprocal rank fusion."""
    subgraph = merge(found, asked.top_k)
    _show_subgraph(context, subgraph, failures_of(found))
    return Fused(replace(asked, failures=asked.failures + failures_of(found)), subgraph)


@dg.op(name="collect", required_resource_keys={"text_store"})
def collect_op(context: dg.OpExecutionContext, fused: Fused) -> Collected:
    """Say where each chunk comes from."""
    try:
        with context.resources.text_store.connect() as texts:
            evidence, failures = collect(fused.subgraph, texts)
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
    answer: str | None = None
    failures: tuple[Failure, ...] = ()
    try:
        llm = context.resources.models.llm()
        if llm is not None:
            with closing(llm):
                answer, failures = reason(
                    asked.question.text, evidence, llm, token_budget=context.resources.models.context_tokens
                )
    except Exception as error:  # a model that can't be set up must not take the evidence away
        failures = (Failure("reason", explain(error)),)
    _warn(context, failures)
    result = QueryResult(asked.question.text, asked.strategies, answer, evidence, asked.failures + failures)
    if result.all_failed:
        context.log.error("no strategy could look: see the errors of the result")
    context.add_output_metadata({"answer": dg.MetadataValue.md(render_markdown(result)), "errors": len(result.failures)})
    return to_json(result)


# What the launchpad shows first: without it, everything that could be configured.
_EXAMPLE = {"ops": {"parse_question": {"config": {"question": "Write your question here"}}}}


@dg.job(name="query", description="Answer one question from the graph, and show the evidence.", config=_EXAMPLE)
def query_job() -> None:
    asked = link_op(parse_op())
    found = strategies_op(asked).map(lambda strategy: retrieve_op(asked, strategy))
    reason_op(collect_op(fuse_op(asked, found.collect())))


def _look(resources: Any, asked: Asked, strategy: str) -> Retrieved:
    """Open only what the strategy needs: a store that is down, or a model slow to load, is then nobody else's trouble."""
    try:
        needs = retriever_class(strategy).needs
        with ExitStack() as opened:
            sources = Sources(
                graph=opened.enter_context(resources.graph_store.connect()) if "graph" in needs else None,
                texts=opened.enter_context(resources.text_store.connect()) if "texts" in needs else None,
                vectors=opened.enter_context(resources.vector_store.connect()) if "vectors" in needs else None,
                embedder=resources.models.embedder() if "embedder" in needs else None,
            )
            return retrieve(strategy, asked.question, sources, asked.top_k, with_hops(strategy, asked.hops))
    except Exception as error:  # opening a store may fail in any driver's way
        return Retrieved(strategy, Subgraph(), Failure(strategy, explain(error)))


def _warn(context: dg.OpExecutionContext, failures: tuple[Failure, ...]) -> None:
    for failure in failures:
        context.log.warning(f"{failure.strategy} failed: {failure.error}")


def _show(
    context: dg.OpExecutionContext,
    numbers: dict[str, int],
    tables: Mapping[str, tuple[Sequence[Sequence[str]], Sequence[str]]],
    failures: tuple[Failure, ...] = (),
) -> None:
    shown: dict[str, Any] = dict(numbers)
    shown |= {name: dg.MetadataValue.md(render_table(rows, header)) for name, (rows, header) in tables.items() if rows}
    if failures:
        shown["errors"] = dg.MetadataValue.md(render_table([(f.strategy, f.error) for f in failures], ("step", "error")))
    context.add_output_metadata(shown)


def _show_subgraph(context: dg.OpExecutionContext, subgraph: Subgraph, failures: tuple[Failure, ...]) -> None:
    entities = [(found.record.label, found.record.type, f"{found.score:.4f}") for found in subgraph.entities]
    triples = Evidence(subgraph.entities, subgraph.relations).triples()
    relations = [(*triple, f"{found.score:.4f}") for triple, found in zip(triples, subgraph.relations, strict=True)]
    _show(
        context,
        {"entities": len(entities), "relations": len(relations), "chunks": len(subgraph.chunks)},
        {
            "top entities": (entities, ("entity", "type", "score")),
            "top relations": (relations, ("head", "relation", "tail", "score")),
        },
        failures,
    )
