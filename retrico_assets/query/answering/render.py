"""Render a result: as Markdown for people, as JSON data for programs."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from resources.records import Relation, Scored
from retrico_assets.query.answering.citations import clean
from retrico_assets.query.answering.evidence import NOT_IN_SOURCES, QueryResult, SourceChunk, is_predicted

_BLOCK_MARK = re.compile(r"\A(\d*)([-+=.)])")
_UNDERLINE = re.compile(r"\A(?=[-=]+\Z)")


def to_json(result: QueryResult) -> dict[str, Any]:
    """The result as plain data, ready for json.dumps. ``head`` and ``tail`` are display names."""
    evidence, usage = result.evidence, result.usage
    return {
        "question": result.question,
        "strategies": list(result.strategies),
        "answer": result.answer,
        "state": result.state,
        "notes": list(result.notes),
        "inferred_relations": [
            {
                "head": relation.head,
                "head_id": relation.head_id,
                "relation": relation.relation,
                "tail": relation.tail,
                "tail_id": relation.tail_id,
                "inferred": True,
            }
            for relation in result.inferred
        ],
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
                "predicted": is_predicted(r.record),
                "properties": dict(r.record.properties),
            }
            for r, (head, label, tail) in zip(evidence.relations, evidence.triples(), strict=True)
        ],
        "chunks": [
            {
                "id": c.chunk.id,
                "source": c.source,
                "title": c.title,
                "page": c.page,
                "text": c.chunk.text,
                "start": c.chunk.start,
                "end": c.chunk.end,
                "score": _finite(c.score),
                "metadata": dict(c.chunk.metadata),
            }
            for c in evidence.chunks
        ],
        "errors": [{"strategy": failure.strategy, "error": failure.error} for failure in result.failures],
        "usage": {
            "requests": usage.requests,
            "cached": usage.cached,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "requests_without_usage": usage.requests_without_usage,
            "cost": usage.cost,
        },
    }


def render_markdown(result: QueryResult) -> str:
    """The result as Markdown: the answer, entities, relations, and the chunks, numbered as the citations."""
    evidence = result.evidence
    number = {source.chunk.id: place for place, source in enumerate(evidence.chunks, 1)}
    parts = [f"## {escape(result.question) or '(an empty question)'}", *_answer(result, number)]
    if result.failures:
        parts.append("\n".join(f"- **{escape(f.strategy)} failed:** {escape(f.error)}" for f in result.failures))
    if result.inferred:
        lines = [f"- {_triple((i.head, i.relation, i.tail))} (inferred)" for i in result.inferred]
        parts.append("\n".join(["### Inferred by the model, not stated", "", *lines]))
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
    """Text that Markdown shows literally within a line, without control characters, which a terminal would obey."""
    shown = re.sub(r"([\\`*_{}\[\]#|~$!])", r"\\\1", clean(" ".join(text.split())))
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _line(text: str) -> str:
    """A whole line that Markdown shows literally: "-5", "1990." and "===" start no list and make no heading."""
    return _BLOCK_MARK.sub(r"\1\\\2", escape(text))


def _answer(result: QueryResult, number: Mapping[str, int]) -> Iterator[str]:
    if result.state == "not_in_sources" and (result.answer or "").strip(" .").lower() != NOT_IN_SOURCES:
        yield f"**{NOT_IN_SOURCES.capitalize()}.**"
    if result.answer is not None:
        text, cited = _numbered(result.answer, number)
        yield text
        if cited:
            yield "Cited: " + "; ".join(f"[{place}] {_where(result.evidence.chunks[place - 1])}" for place in cited)
    elif result.state != "not_in_sources":
        yield "*No answer was written. This is the evidence.*" if result.evidence.chunks else "*Nothing was found.*"
    if result.state == "cut":
        yield "*The answer is incomplete: the model reached its token limit.*"
    for note in result.notes:
        yield f"*Note: {escape(note)}*"


def _numbered(answer: str, number: Mapping[str, int]) -> tuple[str, list[int]]:
    """The answer with the numbers of the chunks that it cites instead of their ids, and these numbers."""
    # Lists of a model stay lists. A line of dashes would turn the line above it into a heading.
    text = "\n".join(_UNDERLINE.sub(r"\\", escape(line)) for line in answer.splitlines())
    cited = []
    for chunk_id, place in number.items():
        mark = escape(f"[{chunk_id}]")
        if mark in text:
            text = text.replace(mark, f"\\[{place}\\]")  # "[1](x)" would be a link, "[1]: x" would disappear
            cited.append(place)
    return text, cited


def _triple(triple: tuple[str, str, str]) -> str:
    head, label, tail = map(escape, triple)
    return f"{head} -\\[{label}\\]-&gt; {tail}"


def _relation(found: Scored[Relation], triple: tuple[str, str, str], number: Mapping[str, int]) -> str:
    stated = ", ".join(f"[{number[id]}]" for id in found.record.chunk_ids if id in number)
    predicted = "(predicted) " if is_predicted(found.record) else ""
    return f"- {_triple(triple)} ({found.score:.4f}) {predicted}{stated}".rstrip()


def _where(source: SourceChunk) -> str:
    title = f", {escape(source.title)}" if source.title and source.title != source.source else ""
    page = f", page {escape(str(source.page))}" if source.page is not None else ""
    return f"{escape(source.source) or 'unknown source'}{title}{page}"


def _quote(source: SourceChunk, place: int) -> str:
    where = f"{_where(source)}, {source.chunk.start}-{source.chunk.end}"
    lines = "\n".join(f"> {_line(line)}".rstrip() for line in source.chunk.text.splitlines())
    return f"**[{place}]** {where} ({source.score:.4f})\n\n{lines}"


def _finite(score: float) -> float:
    return float(score) if math.isfinite(score) else 0.0
