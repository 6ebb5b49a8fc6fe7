"""How a result is shown: as Markdown to a person, as JSON to a program."""

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
                "head": found.head,
                "head_id": found.head_id,
                "relation": found.relation,
                "tail": found.tail,
                "tail_id": found.tail_id,
                "inferred": True,
            }
            for found in result.inferred
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
    """The result for a person: the answer, entities, relations, and the chunks quoted, numbered as the citations are."""
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
    """Text that Markdown shows as it is, within a line; without control characters, which could steer a terminal."""
    shown = re.sub(r"([\\`*_{}\[\]#|~$!])", r"\\\1", clean(" ".join(text.split())))
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _line(text: str) -> str:
    """A whole line that Markdown shows as it is: "-5", "1990." and "===" begin no list and make no heading there."""
    return _BLOCK_MARK.sub(r"\1\\\2", escape(text))


def _answer(result: QueryResult, number: Mapping[str, int]) -> Iterator[str]:
    if result.state == "not_in_sources" and (result.answer or "").strip(" .").lower() != NOT_IN_SOURCES:
        yield f"**{NOT_IN_SOURCES.capitalize()}.**"
    if result.answer is not None:
        # A model's lists are meant as such; a line under another one is not.
        text = "\n".join(_UNDERLINE.sub(r"\\", escape(line)) for line in result.answer.splitlines())
        cited = []
        for chunk_id, place in number.items():
            mark = escape(f"[{chunk_id}]")
            if mark in text:
                text = text.replace(mark, f"\\[{place}\\]")  # "[1](x)" would be a link, "[1]: x" vanish
                cited.append(place)
        yield text
        if cited:
            yield "Cited: " + "; ".join(f"[{place}] {_where(result.evidence.chunks[place - 1])}" for place in cited)
    elif result.state != "not_in_sources":
        yield "*No answer was written: here is the evidence.*" if result.evidence.chunks else "*Nothing was found.*"
    if result.state == "cut":
        yield "*The answer is cut: the model ran into its token limit.*"
    yield from (f"*Note: {escape(note)}*" for note in result.notes)


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
