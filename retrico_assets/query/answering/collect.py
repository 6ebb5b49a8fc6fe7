"""Turns what the strategies found into evidence: which chunks, and which document each comes from."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from resources.errors import SettingsError
from resources.graph.base import GraphStore
from resources.records import Chunk, Document, Scored, Subgraph
from resources.texts.base import TextStore
from retrico_assets.query.answering.evidence import Evidence, SourceChunk
from retrico_assets.query.failures import Failure, failure_of
from retrico_assets.query.options import ChunkSource
from retrico_assets.query.retrievers.ranking import once

FEW_CHUNKS = 5
"""With fewer chunks than this, those that state the relations or mention the entities are added."""
_MOST_ENTITIES = 20
_CHUNKS_PER_ENTITY = 50
_STEP = "collect"


def collect(
    subgraph: Subgraph,
    texts: TextStore,
    graph: GraphStore | None = None,
    *,
    source: ChunkSource = "all",
    max_chunks: int | None = None,
) -> tuple[Evidence, tuple[Failure, ...]]:
    """The evidence of a subgraph: its chunks with the source and title of their documents, best first, each once.

    ``source`` selects the chunks: "all", or those that mention the head, the tail, or either end ("both") of a relation.
    The chunks of the subgraph come first, in their order. While there are fewer than FEW_CHUNKS (or than ``max_chunks``, if
    that is less or ``source`` is not "all"), the chunks that state the relations follow, and then, with a graph, those that
    mention the entities, with a score of 0. A store that fails is reported as a failure, and the rest of the evidence is kept.

    Raises:
        SettingsError: ``source`` is not "all", and there is no graph.
    """
    if source != "all" and graph is None:
        raise SettingsError(f"chunk_source is {source!r}, which needs the graph, and the graph is not available. Use 'all'.")
    failures: list[Failure] = []
    ranked = list(once(subgraph.chunks))
    ids = _entity_ids(subgraph, source)
    try:
        if source != "all" and graph is not None:
            ranked = _mentioning(ranked, set(ids), graph)
        missing = _wanted(source, max_chunks) - len(ranked)
        if missing > 0:
            ranked = ranked + _further(subgraph, ranked, ids, texts, graph, missing)
    except Exception as error:  # the chunks that the strategies found are still there
        failures.append(failure_of(_STEP, error, "the chunks of the relations and entities could not be read"))
    if source != "all" and not ids:
        message = f"no relation was found, so chunk_source {source!r} selects no chunk. Use 'all'."
        failures.append(Failure(_STEP, message))
    kept = ranked[:max_chunks]
    documents: Mapping[str, Document] = {}
    try:
        if kept:
            documents = texts.get_documents(sorted({scored.record.document_id for scored in kept}))
    except Exception as error:  # the chunks are evidence without their sources, too
        failures.append(failure_of(_STEP, error, "the sources and titles of the chunks could not be read"))
    return evidence_of(subgraph, kept, documents), tuple(failures)


def evidence_of(subgraph: Subgraph, chunks: Sequence[Scored[Chunk]], documents: Mapping[str, Document]) -> Evidence:
    """Evidence with these chunks. Chunks of unknown documents have an empty source and title."""
    sources = []
    for scored in chunks:
        document = documents.get(scored.record.document_id)
        source, title = (document.source, document.title) if document else ("", "")
        sources.append(SourceChunk(scored.record, source, title, scored.score))
    return Evidence(subgraph.entities, subgraph.relations, tuple(sources))


def _wanted(source: ChunkSource, max_chunks: int | None) -> int:
    """With fewer chunks than this, further ones are looked up."""
    if max_chunks is None:
        return FEW_CHUNKS
    return min(max_chunks, FEW_CHUNKS) if source == "all" else max_chunks


def _entity_ids(subgraph: Subgraph, source: ChunkSource) -> list[str]:
    """Ids of the entities whose chunks count, best first."""
    if source == "all":
        return [scored.record.id for scored in once(subgraph.entities)]
    ends: list[str] = []
    for scored in subgraph.relations:
        if source in ("head", "both"):
            ends.append(scored.record.head_id)
        if source in ("tail", "both"):
            ends.append(scored.record.tail_id)
    return list(dict.fromkeys(ends))


def _mentioning(ranked: Sequence[Scored[Chunk]], ids: set[str], graph: GraphStore) -> list[Scored[Chunk]]:
    """The chunks that mention one of the entities."""
    entities = graph.entities_of([scored.record.id for scored in ranked]) if ranked and ids else {}
    return [scored for scored in ranked if any(entity.id in ids for entity in entities.get(scored.record.id, ()))]


def _further(
    subgraph: Subgraph, ranked: Sequence[Scored[Chunk]], ids: Sequence[str], texts: TextStore, graph: GraphStore | None, k: int
) -> list[Scored[Chunk]]:
    """At most ``k`` chunks that no strategy found: those that state relations, then those that mention entities."""
    known = {scored.record.id for scored in ranked}
    stated_in = [id for scored in subgraph.relations for id in scored.record.chunk_ids if id not in known]
    stating = list(dict.fromkeys(stated_in))[:k]
    stored = texts.get_chunks(stating) if stating else {}
    chunks = [stored[id] for id in stating if id in stored]
    if len(chunks) < k and ids and graph is not None:
        mentioning = graph.chunks_of(ids[:_MOST_ENTITIES], limit=_CHUNKS_PER_ENTITY)
        known.update(stored)
        chunks += [chunk for chunk in _by_mentions(mentioning, ids) if chunk.id not in known]
    score = min([0.0, *(scored.score for scored in ranked)])  # never above a chunk that a strategy ranked
    return [Scored(chunk, score) for chunk in chunks[:k]]


def _by_mentions(mentioning: Mapping[str, Sequence[Scored[Chunk]]], ids: Sequence[str]) -> list[Chunk]:
    """Chunks by the entities that they mention, each worth 1 / its rank, then by id."""
    chunks: dict[str, Chunk] = {}
    worth: defaultdict[str, float] = defaultdict(float)
    for rank, entity_id in enumerate(ids, 1):
        for scored in mentioning.get(entity_id, ()):
            chunks[scored.record.id] = scored.record
            worth[scored.record.id] += 1 / rank
    return sorted(chunks.values(), key=lambda chunk: (-worth[chunk.id], chunk.id))
