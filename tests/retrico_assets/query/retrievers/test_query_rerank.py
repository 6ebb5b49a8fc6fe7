"""The chunks of a fused ranking, put in a better order, or left in theirs."""

from dataclasses import replace

import pytest

from resources.models.rerankers.base import Reranker
from resources.models.rerankers.embedder import EmbedderReranker
from resources.records import Chunk, Entity, Relation, Scored, Subgraph
from retrico_assets.query.plan import Plan
from retrico_assets.query.rerank import rerank
from retrico_assets.query.session import QuerySession
from retrico_assets.query.state import QueryState
from retrico_assets.query.steps import RERANK
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
    reranked = rerank("the blue door", FOUND, EmbedderReranker(embedder), 2)
    assert ids(reranked) == ["c", "b"]
    assert [found.score for found in reranked.chunks] == pytest.approx([1.0, 1 / 3])


def test_entities_and_relations_stay():
    reranked = rerank("the blue door", FOUND, EmbedderReranker(WordEmbedder()), 1)
    assert (reranked.entities, reranked.relations) == (FOUND.entities, FOUND.relations)


def test_equal_scores_keep_the_fused_order():
    assert ids(rerank("q", FOUND, Saying(0.5, 0.5, 0.7, 0.5), 4)) == ["c", "a", "b", "d"]


@pytest.mark.parametrize(
    ("reranker", "words"),
    [(Saying(RuntimeError("out of memory at http://u:CANARY@h")), "RuntimeError: out of memory"), (Saying(1.0), "shorter")],
)
def test_a_failing_reranker_is_reported_and_the_fused_ranking_stays(reranker, words):
    state = QueryState.begin("q", Plan(top_k=3, reranked=4))
    state = replace(state, subgraph=FOUND)
    reranked = RERANK.apply(state, QuerySession(given={"reranker": reranker}))
    assert reranked.subgraph == FOUND
    assert [failure.strategy for failure in reranked.failures] == ["rerank"]
    assert words in reranked.failures[0].error
    assert "CANARY" not in reranked.failures[0].error


@pytest.mark.parametrize("question", ["", " \n"])
def test_an_empty_question_does_not_call_the_reranker(question):
    reranked = rerank(question, FOUND, Saying(RuntimeError("called")), 2)
    assert reranked == Subgraph(FOUND.entities, FOUND.relations, FOUND.chunks[:2])


def test_without_chunks_the_reranker_is_not_called():
    assert rerank("q", Subgraph(), Saying(RuntimeError("called")), 2) == Subgraph()
