"""The conformance suite of strategies: what every retriever must do, as tests for the author of one to run.

Extend ``RetrieverConformance`` in a test module, under a name that begins with ``Test``, and add a pytest fixture
``retriever`` that gives the retriever over stores with some documents::

    class TestMyRetriever(RetrieverConformance):
        question = "Where was Albert Einstein born?"

        @pytest.fixture
        def retriever(self, graph, texts):
            return MyRetriever(Sources(graph=graph, texts=texts))

        def retrieve(self, retriever, text, k=10):  # only for a strategy that needs the names in the question
            return retriever.retrieve(link(Question(text), retriever.graph), k)
"""

import math
from itertools import pairwise
from typing import Any, ClassVar

from resources.errors import SettingsError
from resources.records import Chunk, Entity, Relation, Scored, Subgraph
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers.base import Retriever
from retrico_assets.query.sources import Sources

ODD_QUESTIONS = (
    "",
    "   \n\t",
    "?!…",
    "🤔🤷‍♀️",
    "the of and is",
    'Where was "Albert Einstein" born?! (AND) OR NOT NEAR/3 * ^ : -',
    "Einstein's life; C++; 100% & a=b -- '); DROP TABLE chunks",
    "'}) MATCH (n) DETACH DELETE n // Albert Einstein, Ulm",
    "东京はどこですか",
    "東京 日本 京",
    "İSTANBUL ılık ISPARTA",
    "שלום مرحبا नमस्ते ภาษาไทย",
    "\0\x1b[31m",
    "Einstein " * 3000,
)
"""Empty, without a word, in the syntax of search engines and databases, in many scripts, very long."""


def check_ranking(found: Subgraph, k: int) -> None:
    """Assert what holds for the result of every strategy.

    Each ranking holds an item once, has finite scores and is sorted by them. There are at most ``k`` relations and chunks,
    and ``k`` entities besides the ends of the relations, which are all there.
    """
    rankings: tuple[tuple[Scored[Entity] | Scored[Relation] | Scored[Chunk], ...], ...]
    rankings = (found.entities, found.relations, found.chunks)
    for ranking in rankings:
        ids = [hit.record.id for hit in ranking]
        assert len(set(ids)) == len(ids), f"an item is there twice: {ids}"
        assert all(math.isfinite(hit.score) for hit in ranking)
        assert all(hit.score >= following.score for hit, following in pairwise(ranking)), "not sorted by score"
    assert len(found.relations) <= k
    assert len(found.chunks) <= k
    entities = [hit.record.id for hit in found.entities]
    ends = {end for hit in found.relations for end in (hit.record.head_id, hit.record.tail_id)}
    assert ends <= set(entities), "an end of a relation is missing among the entities"
    assert set(entities[k:]) <= ends, f"more than {k} entities that are not ends of the relations"


class RetrieverConformance:
    """What every strategy must do. See the top of this module for how to use it."""

    question: ClassVar[str] = "Where was Albert Einstein born?"
    """A question for which the retriever finds something."""

    def retrieve(self, retriever: Any, text: str, k: int = 10) -> Subgraph:
        """Ask the retriever a question. Override this to link names, or to open something for each question."""
        result: Subgraph = retriever.retrieve(Question(text), k)
        return result

    def strategy(self, retriever: Any) -> type[Retriever]:
        """The class of the retriever."""
        return type(retriever)

    def test_it_finds_something(self, retriever: Any) -> None:
        found = self.retrieve(retriever, self.question)
        assert found.entities or found.relations or found.chunks
        check_ranking(found, 10)

    def test_k_cuts_each_ranking_and_keeps_the_ends_of_relations(self, retriever: Any) -> None:
        for k in (1, 2):
            check_ranking(self.retrieve(retriever, self.question, k), k)

    def test_the_same_question_has_the_same_result(self, retriever: Any) -> None:
        assert self.retrieve(retriever, self.question) == self.retrieve(retriever, self.question)

    def test_an_odd_question_is_not_an_error(self, retriever: Any) -> None:
        for question in ODD_QUESTIONS:
            check_ranking(self.retrieve(retriever, question), 10)

    def test_a_blank_question_finds_nothing(self, retriever: Any) -> None:
        for question in ("", " \n"):
            assert self.retrieve(retriever, question) == Subgraph()

    def test_it_has_a_name_and_a_line_that_describes_it(self, retriever: Any) -> None:
        strategy = self.strategy(retriever)
        assert strategy.name
        assert (strategy.__doc__ or "").strip()

    def test_missing_sources_are_named(self, retriever: Any) -> None:
        strategy = self.strategy(retriever)
        needs = strategy.needs - {"names"}
        message = ""
        try:
            strategy(Sources())
        except SettingsError as error:
            message = str(error)
        assert all(need in message for need in needs), f"it needs {sorted(needs)}, but was made without, or said {message!r}"
