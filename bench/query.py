"""Time of each strategy on the generated graph of bench/graph.py (5,000 entities, 2,000 chunks), warm, with embedded stores.

The embedder takes almost no time, so a figure is the time of the strategy without its model. Each question runs three times
and the best time counts, since other work on the machine can only make it slower.
"""

import os
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy and FAISS read it

import numpy as np

from bench.graph import WORDS, made_documents
from resources.graph.falkordb.embedded import open_embedded, stop_embedded
from resources.models.embedders.base import Embedder
from resources.records import Community, DocumentGraph
from resources.texts.sqlite import SqliteTextStore
from resources.vectors.faiss import FaissVectorStore
from retrico_assets.embeddings.sync import CHUNK_INDEX, COMMUNITY_INDEX, ENTITY_INDEX, RELATION_INDEX, sync_index
from retrico_assets.query.question.linking import link
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers.base import make_retriever, retriever_class
from retrico_assets.query.sources import Sources

QUESTIONS, ROUNDS, TOP_K = 50, 3, 10


@dataclass(frozen=True)
class Case:
    """A strategy with its options, and how many generated names and words its questions have."""

    strategy: str
    budget: float
    options: Mapping[str, Any] = field(default_factory=dict)
    names: int = 1
    words: int = 0
    what: str = ""


CASES = (
    Case("entity", 15, {"hops": 2}, what="2 hops"),
    Case("path", 50, {"max_length": 5, "max_pairs": 3}, names=3, what="5 hops, 3 pairs"),
    Case("keyword", 15, names=0, words=4, what="text store"),
    Case("keyword", 15, {"source": "graph"}, names=0, words=4, what="graph"),
    Case("chunk_embedding", 15, names=0, words=4),
    Case("entity_embedding", 15),
    Case("community", 15, names=1, words=4),
    Case("kg_scored", 15, what="by rule"),
    Case("hybrid", 15, words=4),
    Case("pagerank", 15, words=4),
)


class HashedEmbedder(Embedder):
    """The mean of one random vector per word: texts that share words are near, and no model runs."""

    name = "hashed"
    dimension = 384
    calls = 0

    def __init__(self) -> None:
        self._words: dict[str, np.ndarray] = {}

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        vectors = np.stack([np.mean([self._word(word) for word in text.split() or [""]], axis=0) for text in texts])
        unit: np.ndarray = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
        return unit

    def _word(self, word: str) -> np.ndarray:
        if word not in self._words:
            self._words[word] = np.random.default_rng(crc32(word.encode())).standard_normal(self.dimension)
        return self._words[word]


def run() -> list[tuple[str, str, str]]:
    """(name, p50 and p95, budget of the p50) of each case, including the linking of names where a strategy uses them."""
    documents = made_documents()
    with tempfile.TemporaryDirectory() as folder, filled_sources(Path(folder), documents) as sources:
        return [_figure(case, _times(case, sources, documents)) for case in CASES]


@contextmanager
def filled_sources(folder: Path, documents: Sequence[DocumentGraph]) -> Iterator[Sources]:
    """Embedded stores with the documents, and vectors of chunks, entities, relations and generated communities."""
    embedder = HashedEmbedder()
    try:
        with open_embedded(folder / "graph") as graph, SqliteTextStore(folder / "texts.sqlite") as texts:
            graph.replace_documents(documents)
            texts.put_documents([one.document for one in documents])
            texts.replace_chunks({one.document.id: one.chunks for one in documents})
            vectors = FaissVectorStore(folder / "vectors")
            chunks = {chunk.id: chunk.text for one in documents for chunk in one.chunks}
            entities = {m.entity_id: m.mention.text for one in documents for m in one.mentions}
            communities = _communities(sorted(entities))
            graph.replace_communities(communities)
            stated = [relation for one in documents for relation in one.relations]
            relations = {r.relation_id: f"{entities[r.head_id]} {r.label} {entities[r.tail_id]}" for r in stated}
            for index, texts_of in ((CHUNK_INDEX, chunks), (ENTITY_INDEX, entities), (RELATION_INDEX, relations)):
                sync_index(vectors, index, embedder, texts_of)
            sync_index(vectors, COMMUNITY_INDEX, embedder, {community.id: community.summary for community in communities})
            yield Sources(graph, texts, vectors, embedder, cache=folder / "cache")
    finally:
        stop_embedded(folder / "graph")


def _communities(entity_ids: Sequence[str], size: int = 50) -> list[Community]:
    chance = random.Random(2)
    parts = [tuple(entity_ids[start : start + size]) for start in range(0, len(entity_ids), size)]
    return [Community(f"c{n}", 0, part, None, f"Part {n}", " ".join(chance.choices(WORDS, k=40))) for n, part in enumerate(parts)]


def generated_question(case: Case, chance: random.Random, documents: Sequence[DocumentGraph]) -> str:
    """A question with names of entities, as frequent as in the documents, and words of the chunks."""
    mentions = [mention for one in documents for mention in one.mentions]
    names = dict.fromkeys(mention.mention.text for mention in chance.sample(mentions, 3 * case.names))
    return f"How are {', '.join(list(names)[: case.names])} and {' '.join(chance.sample(WORDS, case.words))} related?"


def _times(case: Case, sources: Sources, documents: Sequence[DocumentGraph]) -> list[float]:
    """Milliseconds of each question."""
    chance = random.Random(3)
    questions = [Question(generated_question(case, chance, documents)) for _ in range(QUESTIONS)]
    rounds = [[_measured(case, sources, question) for question in questions] for _ in range(ROUNDS)]
    if not any(chunks for _, chunks in rounds[0]):
        raise RuntimeError(f"strategy {case.strategy!r} found nothing, so its time means nothing. Check the generated documents.")
    return [min(milliseconds for milliseconds, _ in times) for times in zip(*rounds, strict=True)]


def _measured(case: Case, sources: Sources, question: Question) -> tuple[float, int]:
    """Milliseconds from the question to the result, and the number of chunks found."""
    assert sources.graph is not None
    kind = retriever_class(case.strategy)
    start = time.perf_counter()
    if "names" in kind.needs | kind.wants:
        question = link(question, sources.graph)
    found = make_retriever(case.strategy, sources, case.options).retrieve(question, TOP_K)
    return (time.perf_counter() - start) * 1e3, len(found.chunks)


def _figure(case: Case, times: Sequence[float]) -> tuple[str, str, str]:
    what = f"{case.strategy}, {case.what}" if case.what else case.strategy
    p95 = sorted(times)[int(0.95 * len(times))]
    return f"{what}: p50 (p95)", f"{statistics.median(times):.1f} ({p95:.1f}) ms", f"<= {case.budget:g} ms"


if __name__ == "__main__":
    for name, figure, budget in run():
        print(f"{name:<50} {figure:>20}  {budget}")
