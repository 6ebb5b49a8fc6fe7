"""A question under way: the one record that its steps read and extend."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from resources.records import Subgraph
from retrico_assets.query.answering.evidence import Answer, Evidence, QueryResult
from retrico_assets.query.failures import Failure
from retrico_assets.query.plan import Plan
from retrico_assets.query.question.question import Question, read_question


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What one strategy found. ``failure`` says why it found nothing, ``notes`` what to know of its results."""

    strategy: str
    subgraph: Subgraph = field(default_factory=Subgraph)
    failure: Failure | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QueryState:
    """What is known of a question so far. Each step returns a new one; it holds plain data only, so it can be pickled."""

    plan: Plan
    question: Question
    retrieved: tuple[Retrieved, ...] = ()
    """What each strategy found, until the rankings are fused."""
    subgraph: Subgraph = field(default_factory=Subgraph)
    evidence: Evidence = field(default_factory=Evidence)
    answer: Answer = field(default_factory=Answer)
    failures: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def begin(cls, text: str, plan: Plan) -> "QueryState":
        """The state before the first step."""
        question, failures = read_question(text)
        return cls(plan, question, failures=failures)

    def with_failures(self, *failures: Failure) -> "QueryState":
        """The state with further failures; everything else stays."""
        return replace(self, failures=self.failures + failures)

    def with_retrieved(self, retrieved: Iterable[Retrieved]) -> "QueryState":
        """The state with the results of strategies, their failures and their notes, each note once."""
        results = tuple(retrieved)
        failures = tuple(result.failure for result in results if result.failure is not None)
        notes = [*self.notes, *(note for result in results for note in result.notes)]
        return replace(
            self,
            retrieved=self.retrieved + results,
            failures=self.failures + failures,
            notes=tuple(dict.fromkeys(notes)),
        )

    def with_answer(self, answer: Answer) -> "QueryState":
        """The state with an answer, its failures and its notes."""
        return replace(self, answer=answer, failures=self.failures + answer.failures, notes=self.notes + answer.notes)

    def result(self) -> QueryResult:
        """The answer, its evidence, and everything that went wrong."""
        return QueryResult(
            question=self.question.text,
            strategies=self.plan.strategies,
            answer=self.answer.text,
            evidence=self.evidence,
            failures=self.failures,
            state=self.answer.state,
            inferred=self.answer.inferred,
            notes=self.notes,
            usage=self.answer.usage,
        )
