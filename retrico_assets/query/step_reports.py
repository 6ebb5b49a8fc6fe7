"""What the UI shows of each step of a question."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from resources.records import Chunk, Scored, Subgraph
from retrico_assets.query.answering.evidence import Evidence, Spending
from retrico_assets.query.answering.render import render_table
from retrico_assets.query.session import QuerySession
from retrico_assets.query.state import QueryState, Retrieved

LONGEST_TEXT = 160
"""Characters of a chunk that are shown."""


class Markdown(str):
    """A text to be shown as Markdown."""

    __slots__ = ()


Report = Mapping[str, Any]
"""Numbers, plain texts, Markdown and plain data by name."""

StepReport = Callable[[QueryState, QueryState, QuerySession], Report]
"""A report of a step from the state before and after it."""

StrategyReport = Callable[[Retrieved, QueryState, QuerySession], Report]
"""A report of one strategy."""


def no_report(before: QueryState, after: QueryState, session: QuerySession) -> Report:
    """Nothing."""
    return {}


def no_strategy_report(result: Retrieved, state: QueryState, session: QuerySession) -> Report:
    """Nothing."""
    return {}


def mentions(before: QueryState, after: QueryState, session: QuerySession) -> Report:
    rows = [(mention.text, mention.label, f"{mention.score:.3f}") for mention in after.question.mentions]
    return {"mentions": len(rows)} | _table("found", ("mention", "type", "score"), rows)


def named_entities(before: QueryState, after: QueryState, session: QuerySession) -> Report:
    rows = [(entity.label, entity.type, entity.id) for entity in after.question.entities]
    fault = after.question.fault
    return {
        "entities": len(rows),
        **_table("linked", ("entity", "type", "id"), rows),
        **({"not linked": fault} if fault else {}),
    }


def strategy_results(result: Retrieved, state: QueryState, session: QuerySession) -> Report:
    options = dict(state.plan.options.get(result.strategy, {}))
    llm = session.already_open("llm")
    return {**_subgraph(result.subgraph), "options": options, **(_usage(llm.usage) if llm else {})}


def fused_results(before: QueryState, after: QueryState, session: QuerySession) -> Report:
    return {**_subgraph(after.subgraph), "method": after.plan.fusion.method}


def reranked_chunks(before: QueryState, after: QueryState, session: QuerySession) -> Report:
    if not after.plan.reranked:
        return {"reranked": 0}
    reranker = session.already_open("reranker")
    rows = [(_shortened(chunk), f"{chunk.score:.4f}") for chunk in after.subgraph.chunks]
    facts = {"reranked": len(before.subgraph.chunks), "reranker": reranker.name if reranker else ""}
    return facts | _table("chunk texts", ("text", "score"), rows)


def evidence_chunks(before: QueryState, after: QueryState, session: QuerySession) -> Report:
    rows = [(source.source, source.chunk.text[:LONGEST_TEXT], f"{source.score:.4f}") for source in after.evidence.chunks]
    return {"chunks": len(rows)} | _table("chunk texts", ("source", "text", "score"), rows)


def answer_usage(before: QueryState, after: QueryState, session: QuerySession) -> Report:
    return _usage(after.answer.usage)


def _subgraph(subgraph: Subgraph) -> Report:
    entities = [(entity.record.label, entity.record.type, f"{entity.score:.4f}") for entity in subgraph.entities]
    triples = Evidence(subgraph.entities, subgraph.relations).triples()
    relations = [(*triple, f"{scored.score:.4f}") for triple, scored in zip(triples, subgraph.relations, strict=True)]
    return {
        "entities": len(entities),
        "relations": len(relations),
        "chunks": len(subgraph.chunks),
        **_table("top entities", ("entity", "type", "score"), entities),
        **_table("top relations", ("head", "relation", "tail", "score"), relations),
    }


def _usage(usage: Spending) -> Report:
    """What the language model used; nothing if it was not called."""
    if not usage.requests and not usage.cached:
        return {}
    numbers = {
        "llm requests": usage.requests,
        "llm cached": usage.cached,
        "prompt tokens": usage.prompt_tokens,
        "completion tokens": usage.completion_tokens,
    }
    return numbers if usage.cost is None else {**numbers, "cost": usage.cost}


def _table(name: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> dict[str, Any]:
    """A table by its name; nothing if it has no rows."""
    return {name: Markdown(render_table(rows, header))} if rows else {}


def _shortened(chunk: Scored[Chunk]) -> str:
    return chunk.record.text[:LONGEST_TEXT]
