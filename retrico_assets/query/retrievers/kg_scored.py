"""Strategy "kg_scored": the question as triple patterns, matched in the graph and scored by a KG model if there is one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal
from weakref import WeakKeyDictionary

from pydantic import Field

from resources.errors import SettingsError
from resources.graph.base import GraphStore
from resources.options import Options
from resources.records import Relation, Scored, Subgraph
from resources.text.names import identity_key
from retrico_assets.graph.identity import relation_id
from retrico_assets.query.question.question import Question
from retrico_assets.query.question.triple_patterns import TriplePattern, patterns_by_llm, patterns_by_rule, resolve_patterns
from retrico_assets.query.retrievers.base import MOST_RESULTS, Retriever
from retrico_assets.query.retrievers.ranking import stating_chunks, unit
from retrico_assets.query.sources import Need, Sources, TripleScorer

_CANDIDATES = 200
_MOST_FETCHED = 2_000
_MOST_KNOWN = 100_000

_LABELS: WeakKeyDictionary[GraphStore, tuple[str, dict[str, int]]] = WeakKeyDictionary()

Triple = tuple[str, str, str]


class KGScoredOptions(Options):
    patterns: Literal["auto", "llm", "rule"] = "auto"
    per_pattern: int = Field(default=10, ge=1, le=MOST_RESULTS)
    min_score: float = Field(default=0.0, ge=0, le=1)
    predict_tails: bool = True
    predict_heads: bool = False
    predictions: int = Field(default=5, ge=1, le=MOST_RESULTS)
    prediction_threshold: float = Field(default=0.5, ge=0, le=1)


@dataclass(frozen=True, slots=True)
class _Match:
    """A relation that fits a pattern. Stated ones come before predicted ones of the same score."""

    relation: Relation
    score: float
    predicted: bool = False

    @property
    def order(self) -> tuple[float, bool, str]:
        return -self.score, self.predicted, self.relation.id


class KGScoredRetriever(Retriever):
    """Relations that fit the question's triple patterns (triple_patterns.py): by an LLM, or by rule without one.

    A relation scores what the KG model gives its triple, or its own score where there is no model or the model doesn't know
    it, x how well its label is what was asked x the weight of the pattern. Of the relations that fit a pattern, the 200 best
    by their own score being looked at (2,000 a question), ``per_pattern`` of at least ``min_score`` are kept. With a KG model
    each carries the properties score_source ("kg_model" or "graph") and, from the model, kg_score.

    Patterns with one known end and a relation are completed by the model (``predict_tails``, ``predict_heads``): its best
    ``predictions`` of at least ``prediction_threshold`` that the graph does not state. Their score is the model's x the label's
    fit x the weight, and never more than the model's x the least of what the pattern keeps, so that they come below
    it. They have the property predicted, and no chunks.

    Entities are the ends of the relations, with the score of their best; chunks are those that state them. With
    ``patterns: auto`` or ``llm`` a failing LLM fails the strategy.
    """

    name: ClassVar[str] = "kg_scored"
    needs: ClassVar[frozenset[Need]] = frozenset(("names", "graph", "texts"))
    wants: ClassVar[frozenset[Need]] = frozenset(("llm", "kg"))
    options = KGScoredOptions
    config: KGScoredOptions

    def __init__(self, sources: Sources, config: KGScoredOptions | None = None) -> None:
        super().__init__(sources, config)
        if self.config.patterns == "llm" and sources.llm is None:
            raise SettingsError(
                'Strategy "kg_scored" has patterns: llm, but there is no language model. Set models.llm, or use rule.'
            )
        self._llm = None if self.config.patterns == "rule" else sources.llm
        self._kg = sources.kg

    def search(self, question: Question, k: int) -> Subgraph:
        if not identity_key(question.text):
            return Subgraph()
        patterns = self._patterns(question)
        stated = self._stated(patterns)
        matches = [match for group in stated for match in group]
        if self._kg is not None:
            matches += self._predicted(patterns, stated, self._kg)
        return self._result(_best_of_each(matches)[:k], k)

    def _patterns(self, question: Question) -> list[TriplePattern]:
        labels = _relation_labels(self.graph)
        if self._llm is None:
            return patterns_by_rule(question, labels)
        named = patterns_by_llm(question, self._llm, labels, self.graph.entity_types())
        return resolve_patterns(named, self.graph, labels)

    def _stated(self, patterns: Sequence[TriplePattern]) -> list[list[_Match]]:
        """For each pattern the relations of the graph that fit it best."""
        candidates = _find(patterns, self.graph, max(_CANDIDATES, 2 * self.config.per_pattern))
        different = list({relation.id: relation for found in candidates for relation in found}.values())
        scored = self._scored(different)
        stated = []
        for pattern, found in zip(patterns, candidates, strict=True):
            matches = [_Match(*scored[relation.id]) for relation in found]
            weighed = [replace(match, score=match.score * _weight(pattern, match.relation.label)) for match in matches]
            kept = sorted((match for match in weighed if match.score >= self.config.min_score), key=lambda m: m.order)
            stated.append(kept[: self.config.per_pattern])
        return stated

    def _scored(self, relations: Sequence[Relation]) -> dict[str, tuple[Relation, float]]:
        """Each relation with its score, by id; the model is asked once."""
        if self._kg is None or not relations:
            return {relation.id: (relation, unit(relation.score)) for relation in relations}
        scores = self._kg.score([_triple(relation) for relation in relations])
        found = {}
        for relation, score in zip(relations, scores, strict=True):
            told = {"score_source": "graph"} if score is None else {"score_source": "kg_model", "kg_score": unit(score)}
            marked = replace(relation, properties={**relation.properties, **told})
            found[relation.id] = (marked, unit(relation.score if score is None else score))
        return found

    def _predicted(self, patterns: Sequence[TriplePattern], stated: Sequence[Sequence[_Match]], kg: TripleScorer) -> list[_Match]:
        """What the model adds to each pattern: triples that the graph does not state, among entities that it has."""
        guesses = [self._guesses(pattern, kg) for pattern in patterns]
        different = {triple for guessed in guesses for triple in guessed}
        if not different:
            return []
        known = _known(different, self.graph)
        present = {entity.id for entity in self.graph.find_entities(ids=sorted({t[i] for t in different for i in (0, 2)}))}
        matches = []
        for pattern, group, guessed in zip(patterns, stated, guesses, strict=True):
            ceiling = min((match.score for match in group), default=1.0)
            news = [t for t in guessed if t not in known and t[0] in present and t[2] in present]
            for triple in sorted(news, key=lambda t: (-guessed[t], t))[: self.config.predictions]:
                score = guessed[triple] * min(_weight(pattern, triple[1]), ceiling)
                matches.append(_Match(_relation(triple, guessed[triple]), score, predicted=True))
        return matches

    def _guesses(self, pattern: TriplePattern, kg: TripleScorer) -> dict[Triple, float]:
        """Plausible completions of a pattern with one open end, with the model's score."""
        heads: Sequence[str | None] = pattern.head_ids or ()
        tails: Sequence[str | None] = pattern.tail_ids or ()
        if pattern.tail_ids is None and self.config.predict_tails:
            tails = (None,)
        elif pattern.head_ids is None and self.config.predict_heads:
            heads = (None,)
        else:
            return {}
        wanted = self.config.predictions + _CANDIDATES  # those that are stated already are left out afterwards
        guessed: dict[Triple, float] = {}
        for head, label, tail in ((h, label, t) for h in heads for label in pattern.labels or () for t in tails):
            for *ends, score in kg.predict(head, label, tail, wanted):
                triple = (ends[0], ends[1], ends[2])
                if unit(score) >= self.config.prediction_threshold and triple[0] != triple[2]:
                    guessed[triple] = unit(score)
        return guessed

    def _result(self, best: Sequence[_Match], k: int) -> Subgraph:
        relations = tuple(Scored(match.relation, match.score) for match in best)
        scores: dict[str, float] = {}
        for found in relations:
            for end in (found.record.head_id, found.record.tail_id):
                scores.setdefault(end, found.score)
        if not scores:
            return Subgraph()
        entities = {entity.id: entity for entity in self.graph.find_entities(ids=list(scores))}
        ranked = tuple(Scored(entities[id], scores[id]) for id in scores if id in entities)
        return Subgraph(ranked, relations, stating_chunks(relations, {}, self.texts, self.graph, k))


def _relation_labels(graph: GraphStore) -> dict[str, int]:
    """The graph's relation labels, counted anew only when the graph has changed: counting reads every relation."""
    revision = graph.revision()
    known = _LABELS.get(graph)
    if known is None or known[0] != revision:
        known = _LABELS[graph] = (revision, graph.relation_labels())
    return known[1]


def _find(patterns: Sequence[TriplePattern], graph: GraphStore, per_pattern: int) -> list[list[Relation]]:
    """For each pattern the relations that fit it, best first: one call for all patterns of the same labels and open ends."""
    groups: dict[Any, list[int]] = {}
    for number, pattern in enumerate(patterns):
        labels = None if pattern.labels is None else tuple(sorted(pattern.labels))
        groups.setdefault((labels, pattern.head_ids is None, pattern.tail_ids is None), []).append(number)
    found: list[list[Relation]] = [[] for _ in patterns]
    for (labels, *_), numbers in groups.items():
        relations = graph.find_relations(
            head_ids=_united(patterns[number].head_ids for number in numbers),
            tail_ids=_united(patterns[number].tail_ids for number in numbers),
            labels=labels,
            limit=min(per_pattern * len(numbers), _MOST_FETCHED),
        )
        for number in numbers:
            found[number] = [relation for relation in relations if _fits(relation, patterns[number])]
    return found


def _united(ids: Iterable[tuple[str, ...] | None]) -> list[str] | None:
    several = [some for some in ids if some is not None]
    return sorted({id for some in several for id in some}) if several else None


def _fits(relation: Relation, pattern: TriplePattern) -> bool:
    ends = ((relation.head_id, pattern.head_ids), (relation.tail_id, pattern.tail_ids))
    return all(ids is None or end in ids for end, ids in ends)


def _weight(pattern: TriplePattern, label: str) -> float:
    return pattern.weight * (1.0 if pattern.labels is None else pattern.labels[label])


def _known(triples: Iterable[Triple], graph: GraphStore) -> set[Triple]:
    """Those of the triples, and perhaps others among their parts, that the graph states."""
    heads, labels, tails = (sorted(set(parts)) for parts in zip(*triples, strict=True))
    return {_triple(r) for r in graph.find_relations(head_ids=heads, labels=labels, tail_ids=tails, limit=_MOST_KNOWN)}


def _triple(relation: Relation) -> Triple:
    return relation.head_id, relation.label, relation.tail_id


def _relation(triple: Triple, score: float) -> Relation:
    told: Mapping[str, Any] = {"predicted": True, "score_source": "kg_model"}
    return Relation(relation_id(*triple, None, None), *triple, score=score, chunk_ids=(), properties=told)


def _best_of_each(matches: Iterable[_Match]) -> list[_Match]:
    """Each relation where it scores best, best first."""
    best: dict[str, _Match] = {}
    for match in sorted(matches, key=lambda m: m.order):
        best.setdefault(match.relation.id, match)
    return list(best.values())
