"""The best chunks of a fused ranking, put in order by a model that reads each beside the question."""

from resources.models.rerankers.cross_encoder import Reranker
from resources.records import Scored, Subgraph
from retrico_assets.query.failures import Failure, explain

RERANKED = 30
"""How many chunks a reranker reads unless told otherwise."""


def rerank(question: str, subgraph: Subgraph, reranker: Reranker, top_k: int) -> tuple[Subgraph, tuple[Failure, ...]]:
    """The ``top_k`` chunks that the reranker scores best, with its scores, equal ones in their order so far.

    Entities and relations stay. If the reranker fails, which is reported, the chunks stay as they were ranked. Never raises.
    """
    chunks = subgraph.chunks
    failures: tuple[Failure, ...] = ()
    if question.strip() and chunks:
        try:
            scores = reranker.scores(question, [found.record.text for found in chunks])
            scored = [Scored(found.record, score) for found, score in zip(chunks, scores, strict=True)]
            chunks = tuple(sorted(scored, key=lambda found: -found.score))
        except Exception as error:  # whatever a model raises: the fused ranking is a good one
            failures = (Failure("rerank", f"the chunks keep their fused order: {explain(error)}"),)
    return Subgraph(subgraph.entities, subgraph.relations, chunks[:top_k]), failures
