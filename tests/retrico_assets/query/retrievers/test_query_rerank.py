"""The chunks of a fused ranking, put in a better order, or left in theirs."""

import pytest

from resources.models.rerankers.cross_encoder import EmbedderReranker, Reranker
from resources.records import Chunk, Entity, Relation, Scored, Subgraph
from retrico_assets.query.rerank import rerank
from tests.support.query_world import WordEmbedder

FOUND = Subgraph(
    (Scored(Entity("e", "Ulm", "ulm", "location"), 1.0),),
    (Scored(Relation("r", "e", "is", "e", 0.5, ("a",)), 1.0),),
    tuple(
        Scored(Chunk(id, "d", 0, text, 0, 1), score)
        for id, text, score in [
            ("a", "a red fish", 0.9),
            ("b", "a blue house", 0.8),
            ("c", "the blue door", 0.7),
            ("d", "x", 0.6),
        ]
    ),
)


class Saying(Reranker):
    """A reranker as a project could bring its own."""

    name = "saying"

    def __init__(self, *scores):
        self._scores = scores

    def scores(self, question, texts):
        if isinstance(self._scores[0], Exception):
            raise self._scores[0]
        return list(self._scores)


def ids(subgraph):
    return [found.record.id for found in subgraph.chunks]


def test_the_best_chunks_come_first_with_the_scores_of_the_reranker():
    embedder = WordEmbedder()
    reranked, failures = rerank("the blue door", FOUND, EmbedderReranker(embedder), 2)
    assert ids(reranked) == ["c", "b"]
    assert [found.score for found in reranked.chunks] == pytest.approx([1.0, 1 / 3])
    assert failures == ()


def test_entities_and_relations_stay():
    reranked, _ = rerank("the blue door", FOUND, EmbedderReranker(WordEmbedder()), 1)
    assert (reranked.entities, reranked.relations) == (FOUND.entities, FOUND.relations)


def test_equal_scores_keep_the_fused_order():
    assert ids(rerank("q", FOUND, Saying(0.5, 0.5, 0.7, 0.5), 4)[0]) == ["c", "a", "b", "d"]


@pytest.mark.parametrize(
    ("reranker", "words"),
    [(Saying(RuntimeError("out of memory at http://u:CANARY@h")), "RuntimeError: out of memory"), (Saying(1.0), "shorter")],
)
def test_a_failing_reranker_is_reported_and_the_fused_ranking_stays(reranker, words):
    reranked, failures = rerank("q", FOUND, reranker, 3)
    assert reranked.chunks == FOUND.chunks[:3]
    assert [failure.strategy for failure in failures] == ["rerank"]
    assert words in failures[0].error
    assert "CANARY" not in failures[0].error


@pytest.mark.parametrize("question", ["", " \n"])
def test_without_a_question_nothing_is_asked(question):
    assert rerank(question, FOUND, Saying(RuntimeError("asked")), 2) == (
        Subgraph(FOUND.entities, FOUND.relations, FOUND.chunks[:2]),
        (),
    )


def test_without_chunks_nothing_is_asked():
    assert rerank("q", Subgraph(), Saying(RuntimeError("asked")), 2) == (Subgraph(), ())
