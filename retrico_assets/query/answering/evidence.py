"""What an answer rests on: the evidence, and how it is collected."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from resources.errors import SettingsError
from resources.graph.base import GraphStore
from resources.models.llm.client import UsageTotals
from resources.records import Chunk, Entity, Relation, Scored, Subgraph
from resources.text.tokens import count_tokens
from resources.texts.base import TextStore
from retrico_assets.query.failures import Failure, explain
from retrico_assets.query.retrievers.ranking import once

AnswerState = Literal["answered", "not_in_sources", "cut", "none"]
"""``cut``: the model ran into its token limit, so there may have been more to say. ``none``: no answer was written."""
NOT_IN_SOURCES = "not in the sources"
ChunkSource = Literal["all", "head", "tail", "both"]
FEW_CHUNKS = 5
"""With fewer chunks than this, those that state the found relations or mention the found entities are added."""
Spending = UsageTotals
"""What one answer took of the language model."""
_ENTITIES_ASKED = 20
_CHUNKS_AN_ENTITY = 50


@dataclass(frozen=True, slots=True)
class SourceChunk:
    """A chunk, the document it is from, and how well it answers."""

    chunk: Chunk
    source: str
    title: str
    score: float

    @property
    def page(self) -> int | str | None:
        """The page that the chunk is on, for documents that have pages."""
        page = self.chunk.metadata.get("page")
        return page if isinstance(page, int | str) else None


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
class InferredRelation:
    """A relation that the model concluded from the evidence. An id is None when the evidence has no entity of that name."""

    head: str
    relation: str
    tail: str
    head_id: str | None = None
    tail_id: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What the language model made of the evidence. ``text`` cites chunks by id in square brackets, or is None.

    ``failures`` say why there is no answer, ``notes`` what to know about the one there is.
    """

    text: str | None = None
    state: AnswerState = "none"
    inferred: tuple[InferredRelation, ...] = ()
    failures: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()
    usage: Spending = field(default_factory=Spending)


@dataclass(frozen=True, slots=True)
class QueryResult:
    """A question, its answer (None without a language model, or when it gave none) and the evidence.

    The answer cites chunks by id in square brackets; ``failures`` are what went wrong without stopping the rest. ``state``,
    ``inferred``, ``notes`` and ``usage`` are those of ``Answer``.
    """

    question: str
    strategies: tuple[str, ...]
    answer: str | None
    evidence: Evidence
    failures: tuple[Failure, ...] = ()
    state: AnswerState = "none"
    inferred: tuple[InferredRelation, ...] = ()
    notes: tuple[str, ...] = ()
    usage: Spending = field(default_factory=Spending)

    @property
    def all_failed(self) -> bool:
        """True when no strategy could look."""
        return {failure.strategy for failure in self.failures} >= set(self.strategies)


def collect(
    subgraph: Subgraph,
    texts: TextStore,
    graph: GraphStore | None = None,
    *,
    source: ChunkSource = "all",
    token_budget: int | None = None,
    max_chunks: int | None = None,
) -> tuple[Evidence, tuple[Failure, ...]]:
    """The evidence of a subgraph: its chunks with source and title, best first, each once, and what went wrong.

    ``source`` says which chunks count: "all" of them, or those that mention the head, the tail, or an end ("both") of a
    found relation, which takes the graph. Chunks that were found come first, in their order. While there are fewer than
    FEW_CHUNKS (or ``max_chunks``, if that is less, or if ``source`` is not "all"), those follow that state a found relation,
    then, with a graph, those that mention found entities, with the score 0. ``token_budget`` is in ``count_tokens``; a chunk
    that doesn't fit is passed over. A failing store is reported, and what is known without it is kept. SettingsError for an
    option that is out of range, and for head, tail and both without a graph.
    """
    check_collection(source, graph is not None, token_budget, max_chunks)
    wanted = FEW_CHUNKS if max_chunks is None else max_chunks if source != "all" else min(max_chunks, FEW_CHUNKS)
    ranked = list(once(subgraph.chunks))
    failures: list[Failure] = []
    try:
        ids = _entities_asked(subgraph, source)
        if source != "all" and graph is not None:
            ranked = _mentioning(ranked, set(ids), graph)
        if len(ranked) < wanted:
            ranked += _further(subgraph, ranked, ids, texts, graph, wanted - len(ranked))
        if source != "all" and not ids:
            failures.append(Failure("collect", f"no relation was found, so no chunk counts for source {source!r}; use 'all'"))
    except Exception as error:  # what was found is here already
        failures.append(Failure("collect", f"chunks of the found relations and entities could not be read: {explain(error)}"))
    kept = _within(ranked, token_budget)[:max_chunks]
    if ranked and not kept:
        failures.append(Failure("collect", f"the shortest chunk is longer than the budget of {token_budget} tokens"))
    documents = {}
    try:
        documents = texts.get_documents(sorted({found.record.document_id for found in kept})) if kept else {}
    except Exception as error:  # the chunks are here already: show them without their sources
        failures.append(Failure("collect", f"sources and titles could not be read: {explain(error)}"))
    sources = []
    for found in kept:
        document = documents.get(found.record.document_id)
        sources.append(
            SourceChunk(found.record, document.source if document else "", document.title if document else "", found.score)
        )
    return Evidence(subgraph.entities, subgraph.relations, tuple(sources)), tuple(failures)


def check_collection(source: str, has_graph: bool, token_budget: int | None, max_chunks: int | None) -> None:
    """SettingsError, saying what to do, for options that ``collect`` can't work with."""
    if source not in get_args(ChunkSource):
        raise SettingsError(f"chunk source {source!r} is unknown; known are: {', '.join(get_args(ChunkSource))}")
    if source != "all" and not has_graph:
        raise SettingsError(f"chunk source {source!r} needs the graph, which knows what chunks mention; give it, or use 'all'")
    for name, value in (("token_budget", token_budget), ("max_chunks", max_chunks)):
        if value is not None and value < 1:
            raise SettingsError(f"{name} is {value}; it must be 1 or more, or left out")


def _entities_asked(subgraph: Subgraph, source: ChunkSource) -> list[str]:
    """Ids of the entities whose chunks count, best first."""
    if source == "all":
        return [found.record.id for found in once(subgraph.entities)]
    ends: list[str] = []
    for found in subgraph.relations:
        ends += [found.record.head_id] * (source != "tail") + [found.record.tail_id] * (source != "head")
    return list(dict.fromkeys(ends))


def _mentioning(ranked: Sequence[Scored[Chunk]], ids: set[str], graph: GraphStore) -> list[Scored[Chunk]]:
    named = graph.entities_of([found.record.id for found in ranked]) if ranked and ids else {}
    return [found for found in ranked if any(entity.id in ids for entity in named.get(found.record.id, ()))]


def _further(
    subgraph: Subgraph, ranked: Sequence[Scored[Chunk]], ids: Sequence[str], texts: TextStore, graph: GraphStore | None, k: int
) -> list[Scored[Chunk]]:
    """At most ``k`` chunks that no strategy found: those that state relations, then those that mention entities."""
    known = {found.record.id for found in ranked}
    stating = list(dict.fromkeys(id for found in subgraph.relations for id in found.record.chunk_ids if id not in known))[:k]
    stored = texts.get_chunks(stating) if stating else {}
    chunks = [stored[id] for id in stating if id in stored]
    if len(chunks) < k and ids and graph is not None:
        mentioning = graph.chunks_of(ids[:_ENTITIES_ASKED], limit=_CHUNKS_AN_ENTITY)
        known.update(stored)
        chunks += [chunk for chunk in _by_mentions(mentioning, ids) if chunk.id not in known]
    score = min([0.0, *(found.score for found in ranked)])
    return [Scored(chunk, score) for chunk in chunks[:k]]


def _by_mentions(mentioning: Mapping[str, Sequence[Scored[Chunk]]], ids: Sequence[str]) -> list[Chunk]:
    """Chunks by the entities they mention, each worth 1 / its rank, then by id."""
    chunks: dict[str, Chunk] = {}
    worth: defaultdict[str, float] = defaultdict(float)
    for rank, entity_id in enumerate(ids, 1):
        for found in mentioning.get(entity_id, ()):
            chunks[found.record.id] = found.record
            worth[found.record.id] += 1 / rank
    return sorted(chunks.values(), key=lambda chunk: (-worth[chunk.id], chunk.id))


def _within(ranked: Sequence[Scored[Chunk]], token_budget: int | None) -> list[Scored[Chunk]]:
    if token_budget is None:
        return list(ranked)
    kept = []
    for found in ranked:
        cost = count_tokens(found.record.text)
        if cost <= token_budget:
            kept.append(found)
            token_budget -= cost
    return kept


def is_predicted(relation: Relation) -> bool:
    """Whether a model thinks that the relation holds, no chunk stating it."""
    return relation.properties.get("predicted") is True
