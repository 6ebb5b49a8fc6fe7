"""Reranking: a model that reads each chunk beside the question puts the best chunks in order."""

from resources.models.rerankers.base import Reranker
from resources.records import Scored, Subgraph
from resources.text.characters import is_blank


def rerank(question: str, subgraph: Subgraph, reranker: Reranker, top_k: int) -> Subgraph:
    """The subgraph with the ``top_k`` chunks that the reranker scores best, and its scores; ties keep their order.

    Entities and relations stay. An empty question or a subgraph without chunks does not call the reranker.

    Raises:
        RetricoError: the reranker can't be loaded or can't score the chunks.
    """
    chunks = subgraph.chunks
    if chunks and not is_blank(question):
        scores = reranker.scores(question, [scored.record.text for scored in chunks])
        reranked = [Scored(scored.record, score) for scored, score in zip(chunks, scores, strict=True)]
        chunks = tuple(sorted(reranked, key=lambda scored: -scored.score))
    return Subgraph(subgraph.entities, subgraph.relations, chunks[:top_k])
