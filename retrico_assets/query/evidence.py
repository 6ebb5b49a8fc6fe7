"""What an answer rests on, and how it is shown: as Markdown to a person, as JSON to a program."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from resources.records import Chunk, Entity, Relation, Scored, Subgraph
from resources.texts.base import TextStore
from retrico_assets.query.parse import Failure, explain
from retrico_assets.query.ranking import once


@dataclass(frozen=True, slots=True)
class SourceChunk:
    """A chunk, the document it is from, and how well it answers."""

    chunk: Chunk
    source: str
    title: str
    score: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was found: each tuple ranked, best first, each item once."""

    entities: tuple[Scored[Entity], ...] = ()
    relations: tuple[Scored[Relation], ...] = ()
    chunks: tuple[SourceChunk, ...] = ()

    def triples(self) -> list[tuple[str, str, str]]:
        """Display name of the head, relation label and display name of the tail, for each relation."""
        names = {found.record.id: found.record.label for found in self.entities}
        ends = [(found.record.head_id, found.record.label, found.record.tail_id) for found in self.relations]
        return [(names.get(head, head), label, names.get(tail, tail)) for head, label, tail in ends]


@dataclass(frozen=True, slots=True)
class QueryResult:
    """A question, its answer (None without a language model, or when it gave none) and the evidence.

    The answer cites chunks by id in square brackets; ``failures`` are what went wrong without stopping the rest.
    """

    question: str
    strategies: tuple[str, ...]
    answer: str | None
    evidence: Evidence
    failures: tuple[Failure, ...] = ()

    @property
    def all_failed(self) -> bool:
        """True when no strategy could look."""
        return {failure.strategy for failure in self.failures} >= set(self.strategies)


def collect(subgraph: Subgraph, texts: TextStore) -> tuple[Evidence, tuple[Failure, ...]]:
    """Add source and title to each chunk, in one round trip; a document that is gone, or a failing store, leaves them empty."""
    ranked = list(once(subgraph.chunks))
    failures: tuple[Failure, ...] = ()
    documents = {}
    try:
        documents = texts.get_documents(sorted({found.record.document_id for found in ranked})) if ranked else {}
    except Exception as error:  # the chunks are here already: show them without their sources
        failures = (Failure("collect", f"sources and titles could not be read: {explain(error)}"),)
    sources = []
    for found in ranked:
        document = documents.get(found.record.document_id)
        sources.append(
            SourceChunk(found.record, document.source if document else "", document.title if document else "", found.score)
        )
    return Evidence(subgraph.entities, subgraph.relations, tuple(sources)), failures


def to_json(result: QueryResult) -> dict[str, Any]:
    """The result as plain data, ready for json.dumps. ``head`` and ``tail`` are display names."""
    evidence = result.evidence
    return {
        "question": result.question,
        "strategies": list(result.strategies),
        "answer": result.answer,
        "entities": [
            {"id": e.record.id, "label": e.record.label, "type": e.record.type, "score": _finite(e.score)}
            for e in evidence.entities
        ],
        "relations": [
            {
                "id": r.record.id,
                "head": head,
                "relation": label,
                "tail": tail,
                "score": _finite(r.score),
                "chunk_ids": list(r.record.chunk_ids),
            }
            for r, (head, label, tail) in zip(evidence.relations, evidence.triples(), strict=True)
        ],
        "chunks": [
            {
                "id": c.chunk.id,
                "source": c.source,
                "title": c.title,
                "text": c.chunk.text,
                "start": c.chunk.start,
                "end": c.chunk.end,
                "score": _finite(c.score),
            }
            for c in evidence.chunks
        ],
        "errors": [{"strategy": failure.strategy, "error": failure.error} for failure in result.failures],
    }


def render_markdown(result: QueryResult) -> str:
    """The result for a person: the answer, entities, relations, and the chunks quoted, numbered as the citations are."""
    evidence = result.evidence
    number = {source.chunk.id: place for place, source in enumerate(evidence.chunks, 1)}
    parts = [f"## {escape(result.question) or '(an empty question)'}", _answer(result, number)]
    if result.failures:
        parts.append("\n".join(f"- **{escape(f.strategy)} failed:** {escape(f.error)}" for f in result.failures))
    if evidence.entities:
        rows = [(e.record.label, e.record.type, f"{e.score:.4f}") for e in evidence.entities]
        parts.append("### Entities\n\n" + render_table(rows, ("entity", "type", "score")))
    if evidence.relations:
        lines = [_relation(r, triple, number) for r, triple in zip(evidence.relations, evidence.triples(), strict=True)]
        parts.append("\n".join(["### Relations", "", *lines]))
    if evidence.chunks:
        parts.append("### Sources")
        parts += [_quote(source, place) for place, source in enumerate(evidence.chunks, 1)]
    return "\n\n".join(parts) + "\n"


def render_table(rows: Sequence[Sequence[str]], header: Sequence[str]) -> str:
    """A Markdown table of plain texts."""
    lines = ["| " + " | ".join(map(escape, cells)) + " |" for cells in (header, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(header), *lines[1:]])


def escape(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    shown = re.sub(r"([\\`*_{}\[\]#|~$!])", r"\\\1", " ".join(text.split()))
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _answer(result: QueryResult, number: dict[str, int]) -> str:
    if result.answer is None:
        return "*No answer was written: here is the evidence.*" if result.evidence.chunks else "*Nothing was found.*"
    text = escape(result.answer)
    for chunk_id, place in number.items():
        text = text.replace(escape(f"[{chunk_id}]"), f"[{place}]")
    return text


def _relation(found: Scored[Relation], triple: tuple[str, str, str], number: dict[str, int]) -> str:
    head, label, tail = map(escape, triple)
    stated = ", ".join(f"[{number[id]}]" for id in found.record.chunk_ids if id in number)
    return f"- {head} -\\[{label}\\]-&gt; {tail} ({found.score:.4f}) {stated}".rstrip()


def _quote(source: SourceChunk, place: int) -> str:
    title = f", {escape(source.title)}" if source.title and source.title != source.source else ""
    where = f"{escape(source.source) or 'unknown source'}{title}, {source.chunk.start}-{source.chunk.end}"
    lines = "\n".join(f"> {escape(line)}".rstrip() for line in source.chunk.text.splitlines())
    return f"**[{place}]** {where} ({source.score:.4f})\n\n{lines}"


def _finite(score: float) -> float:
    return float(score) if math.isfinite(score) else 0.0
