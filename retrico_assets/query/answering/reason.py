"""A language model answers from the evidence, and from nothing else."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from resources.models.llm.client import ChatModel, Reply
from resources.models.llm.json_text import read_json
from resources.prompting.replies import as_list, is_json
from resources.secrets import explain, mask_secrets
from resources.text.names import identity_key
from retrico_assets.query.answering.citations import AnswerStream, Citations, clean
from retrico_assets.query.answering.context import prompt, within_budget
from retrico_assets.query.answering.evidence import NOT_IN_SOURCES, Answer, AnswerState, Evidence, InferredRelation, Spending
from retrico_assets.query.failures import Failure

TOKEN_BUDGET = 3000
"""Approximate tokens (``count_tokens``) that the evidence may take in the prompt."""
ANSWER_TOKENS = 800
_THINKING_TOKENS = 4 * ANSWER_TOKENS  # for a model whose thoughts left no room for an answer
_LONGEST_QUOTE = 200

_TEXT: Mapping[str, Any] = {"type": "string"}
_RELATION = {
    "type": "object",
    "properties": {"head": _TEXT, "relation": _TEXT, "tail": _TEXT},
    "required": ["head", "relation", "tail"],
    "additionalProperties": False,
}
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "answer": _TEXT,
        "chunk_ids": {"type": "array", "items": _TEXT},
        "found": {"type": "boolean"},
        "inferred_relations": {"type": "array", "items": _RELATION},
    },
    "required": ["answer", "chunk_ids", "found", "inferred_relations"],
    "additionalProperties": False,
}
REMINDER = (
    'Reply with the JSON object alone, nothing before or after it: {"answer": "...", "chunk_ids": ["c1"], "found": true, ...}'
)

_JSON = re.compile(r"\s*(?:```\w*\s*)?(?:\{|\[\s*[\[{\"\]])")
_REFUSAL = re.compile(
    r"\W*(?:i['’]?m sorry|sorry\b|i can(?:['’]t|not| not)|i won['’]t|i am (?:unable|not able)|as an ai\b)", re.I
)
_CUT_CITATION = re.compile(r"\s*\[c?\d*\Z")
# Small models rename keys: these are understood, others make the relation unreadable.
_KEYS = {
    "head": ("head", "subject", "source"),
    "relation": ("relation", "predicate", "type", "label"),
    "tail": ("tail", "object", "target"),
}


def reason(
    question: str,
    evidence: Evidence,
    llm: ChatModel,
    *,
    token_budget: int = TOKEN_BUDGET,
    on_text: Callable[[str], None] | None = None,
) -> Answer:
    """The model's answer, citing chunk ids in square brackets, or why there is none.

    The best chunks and relations that fit ``token_budget`` (in ``count_tokens``) are shown to the model. Citations of sources
    that were not given are dropped. A reply without a JSON answer is asked for once more; plain text is then better than
    nothing, and noted. Never raises: a model that can't be reached, refuses or gives what can't be read leaves no text and a
    failure. Without a question or a chunk the model is not asked.

    ``on_text`` is called with the pieces of the answer as they come, its citations being the numbers of ``evidence.chunks``
    from 1: together they are the answer, unless its reply had to be mended or asked for again; then the answer follows whole,
    on a new line.
    """
    if not question.strip() or not evidence.chunks:
        return Answer()
    chosen = within_budget(evidence.chunks, token_budget)
    if not chosen:
        return _failed(f"the shortest source is longer than the budget of {token_budget} tokens")
    before = llm.usage
    try:
        citations = Citations(chosen, evidence.chunks)
        stream = AnswerStream(on_text, citations) if on_text else None
        said = _ask(prompt(question, evidence, chosen, token_budget), llm, citations, stream)
        answer = _answer(said, citations, evidence)
        if stream and answer.text:
            stream.finish(said.text)
    except Exception as error:  # an answer is an extra: its failure must not take the evidence away
        answer = _failed(explain(error))
    return replace(answer, usage=_spent(before, llm.usage))


@dataclass(frozen=True, slots=True)
class _Said:
    """What a reply holds: a text, citations still by short name, or the fault that left it without one."""

    text: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    fault: str = ""
    cut: bool = False
    prose: bool = False
    final: bool = True
    """False when the model may do better if it is reminded of what was asked for."""


def _ask(messages: list[dict[str, str]], llm: ChatModel, citations: Citations, stream: AnswerStream | None) -> _Said:
    """Ask, and ask once more if the reply is not what it should be; of two such replies, one with a text is better."""
    first = _hear(_complete(messages, llm, stream, ANSWER_TOKENS), citations)
    if first.final:
        return first
    reminded = [*messages[:-1], {**messages[-1], "content": f"{messages[-1]['content']}\n\n{REMINDER}"}]
    try:
        if stream:
            stream.restart()
        second = _hear(_complete(reminded, llm, stream, _THINKING_TOKENS if first.cut else ANSWER_TOKENS), citations)
    except Exception as error:  # the first reply, or what was wrong with it, is still worth telling
        failed = f"a second request failed: {explain(error)}"
        return replace(first, fault=f"{first.fault}; {failed}" if first.fault else failed)
    return second if second.text or second.final or not first.text else first


def _complete(messages: Sequence[Mapping[str, str]], llm: ChatModel, stream: AnswerStream | None, max_tokens: int) -> Reply:
    on_text = stream.feed if stream else None
    return llm.complete(messages, json_schema=SCHEMA, max_tokens=max_tokens, on_text=on_text)


def _hear(reply: Reply, citations: Citations) -> _Said:
    if reply.refusal or reply.finish_reason == "content_filter":
        return _Said(fault=_quoting("the model refused", reply.refusal or reply.text))
    cut = reply.finish_reason == "length"
    data = _object(reply.text)
    text = clean(_text(data.get("answer"))).strip()
    if not text and _told(data.get("found")) is False:
        return _Said(data=data, cut=cut)
    prose = "" if text else _prose(reply.text)
    if text or prose:
        said = _CUT_CITATION.sub("", text or prose) if cut else text or prose
        said += citations.listed(said, data.get("chunk_ids"))
        return _Said(said, data, cut=cut, prose=bool(prose), final=bool(text) or cut or bool(citations.cited(prose)))
    if cut:
        return _Said(fault=_quoting("the model's answer was cut short at its token limit", reply.text), cut=True, final=False)
    if not reply.text.strip():
        return _Said(fault="the model gave an empty reply", final=False)
    return _Said(fault=_quoting("the model's reply holds no JSON object with an answer", reply.text), final=False)


def _object(text: str) -> dict[str, Any]:
    """The JSON object with the answer in a reply, keys in lower case; empty if there is none."""
    data = read_json(text)
    for item in data if isinstance(data, list) else [data]:
        if isinstance(item, dict):
            lowered = {str(key).strip().lower(): value for key, value in item.items()}
            if "answer" in lowered:
                return lowered
    return {}


def _text(answer: object) -> str:
    if isinstance(answer, list) and all(isinstance(item, str) for item in answer):
        return ", ".join(answer)
    if isinstance(answer, int | float) and not isinstance(answer, bool):
        return str(answer)
    return answer if isinstance(answer, str) else ""


def _told(found: object) -> bool | None:
    """``found`` as the model gave it: small models write it as text."""
    if isinstance(found, bool):
        return found
    return {"true": True, "yes": True, "false": False, "no": False}.get(str(found).strip().lower())


def _prose(text: str) -> str:
    """The reply as an answer in plain text; empty when it is JSON of some other kind, or declines in so many words."""
    text = clean(text.replace("\ufeff", "")).strip()
    if _JSON.match(text) or '"answer"' in text or is_json(text):
        return ""
    return text


def _answer(said: _Said, citations: Citations, evidence: Evidence) -> Answer:
    notes = []
    if said.prose:
        if not citations.cited(said.text) and _REFUSAL.match(said.text):
            return _failed(_quoting("the model refused", said.text))
        notes.append("the model replied in plain text instead of the form asked for")
    if said.fault:
        if not said.text:
            return _failed(said.fault)
        notes.append(said.fault)
    alone = identity_key(citations.resolve(said.text, {}))
    missing = _told(said.data.get("found")) is False or alone == identity_key(NOT_IN_SOURCES)
    if said.text and not missing and not citations.cited(said.text):
        notes.append("the answer cites no source")
    inferred, unreadable = _inferred(said.data.get("inferred_relations"), evidence)
    if unreadable:
        notes.append(f"{unreadable} inferred relation(s) could not be read")
    state: AnswerState = "cut" if said.cut and said.text else "not_in_sources" if missing else "answered"
    return Answer(citations.resolve(said.text, citations.ids) or None, state, inferred, notes=tuple(notes))


def _inferred(listed: object, evidence: Evidence) -> tuple[tuple[InferredRelation, ...], int]:
    """The relations that the model inferred, each once and without those that were found, and how many can't be read."""
    entities: dict[str, set[tuple[str, str]]] = {}
    for found in evidence.entities:
        for name in (found.record.key, identity_key(found.record.label)):
            entities.setdefault(name, set()).add((found.record.id, found.record.label))
    known = {_key(triple) for triple in evidence.triples()}
    inferred: list[InferredRelation] = []
    unreadable = 0
    for item in as_list(listed):
        triple = _triple(item)
        key = _key(triple)
        if not all(key) or key[0] == key[2]:
            unreadable += 1
        elif key not in known:
            known.add(key)
            # Of namesakes none is guessed.
            (head_id, head), (tail_id, tail) = (
                next(iter(entities[end])) if len(entities.get(end, ())) == 1 else (None, text)
                for end, text in ((key[0], triple[0]), (key[2], triple[2]))
            )
            inferred.append(InferredRelation(head, triple[1], tail, head_id, tail_id))
    return tuple(inferred), unreadable


def _triple(item: object) -> tuple[str, str, str]:
    """Head, relation and tail of what the model listed; empty where it gave no text."""
    if isinstance(item, Mapping):
        parts = [next((item[key] for key in keys if item.get(key) is not None), "") for keys in _KEYS.values()]
    else:
        parts = list(item) if isinstance(item, list) and len(item) == 3 else []
    head, relation, tail = (clean(part).strip() if isinstance(part, str) else "" for part in parts or ("", "", ""))
    return head, relation, tail


def _key(triple: tuple[str, str, str]) -> tuple[str, str, str]:
    head, relation, tail = map(identity_key, triple)
    return head, relation, tail


def _failed(why: str) -> Answer:
    return Answer(failures=(Failure("reason", mask_secrets(why)),))


def _quoting(why: str, said: str) -> str:
    said = " ".join(said.split())
    quote = said[:_LONGEST_QUOTE] + ("…" if len(said) > _LONGEST_QUOTE else "")
    return f"{why}: {quote!r}" if quote else why


def _spent(before: Spending, after: Spending) -> Spending:
    """What was used between two readings of the model's totals; other threads that ask it meanwhile are counted in."""
    cost = None if after.cost is None else after.cost - (before.cost or 0.0)
    counts = ("requests", "cached", "prompt_tokens", "completion_tokens", "requests_without_usage")
    return Spending(**{name: getattr(after, name) - getattr(before, name) for name in counts}, cost=cost)
