"""Strategy "tool": a language model looks things up in the graph and the texts, by tools, in rounds."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field

from resources.options import Options
from resources.records import Chunk, Entity, Relation, Scored, Subgraph
from resources.text.characters import is_blank
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers.base import Retriever
from retrico_assets.query.retrievers.ranking import ranked_relations, with_ends
from retrico_assets.query.sources import Need
from retrico_assets.query.tools.loop import converse, most_frequent, opening
from retrico_assets.query.tools.toolbox import Found, Toolbox

_EVIDENCE_WEIGHT = 0.5
_Scores = dict[str, float]


class ToolOptions(Options):
    max_rounds: int = Field(default=4, ge=1, le=20)
    max_rows: int = Field(default=50, ge=1, le=1000)
    max_characters: int = Field(default=8000, ge=500, le=100_000)


class ToolRetriever(Retriever):
    """A language model looks things up by tools, which only read, in rounds; what they showed it is the result.

    An item scores, summed over the calls that showed it, 1 / its place in the call's rows x the call's round / the last
    round with results: first comes what stood high, came up again, and came late, when the model knew what it looked for.
    A relation's row counts for its ends too. Chunks that state a relation of the result score half of its score besides
    their own; those that the model names in its last message come before all others, in its order.
    """

    name: ClassVar[str] = "tool"
    needs: ClassVar[frozenset[Need]] = frozenset(("graph", "texts", "llm"))
    wants: ClassVar[frozenset[Need]] = frozenset(("names",))
    options = ToolOptions
    config: ToolOptions

    def search(self, question: Question, k: int) -> Subgraph:
        """As the base says. LLMError when the model fails; StoreError when the graph store has no query language.

        A question without a visible character is not asked.
        """
        if is_blank(question.text):
            return Subgraph()
        self.graph.query("RETURN 1 AS one")  # without a language, every graph tool would fail
        entity_types, relation_types = self.graph.entity_types(), self.graph.relation_labels()
        toolbox = Toolbox(
            self.graph,
            self.texts,
            self.config.max_rows,
            self.config.max_characters,
            most_frequent(entity_types),
            most_frequent(relation_types),
        )
        messages = opening(question.text, question.entities, entity_types, relation_types)
        last_message = converse(self.llm, toolbox, messages, self.config.max_rounds)
        return self._result(toolbox.found, last_message, k)

    def _result(self, found: Sequence[Found], last_message: str, k: int) -> Subgraph:
        entity_scores, relation_scores, chunk_scores = _scores(found)
        entities: list[Scored[Entity]] = []
        relations: tuple[Scored[Relation], ...] = ()
        if entity_scores:
            among = self.graph.neighbourhood(list(entity_scores), 0, limit=len(entity_scores))
            scored = [(r, relation_scores[r.id]) for r in among.relations if r.id in relation_scores]
            relations = ranked_relations(scored, k)
            known = [Scored(entity, entity_scores[entity.id]) for entity, _ in among.entities]
            entities = sorted(known, key=lambda one: (-one.score, one.record.id))
        return Subgraph(with_ends(entities, relations, k), relations, self._chunks(chunk_scores, relations, last_message, k))

    def _chunks(
        self, scores: _Scores, relations: Sequence[Scored[Relation]], last_message: str, k: int
    ) -> tuple[Scored[Chunk], ...]:
        evidence: _Scores = {}
        for found in relations:
            for chunk_id in found.record.chunk_ids:
                evidence[chunk_id] = max(evidence.get(chunk_id, 0.0), _EVIDENCE_WEIGHT * found.score)
        total = {id: scores.get(id, 0.0) + evidence.get(id, 0.0) for id in (*scores, *evidence)}
        best = max(total.values(), default=0.0)
        total.update((id, best + 1 / place) for place, id in enumerate(_named(total, last_message), 1))
        ids = sorted(total, key=lambda id: (-total[id], id))[: 2 * k]  # some may be gone from the text store
        stored = self.texts.get_chunks(ids)
        return tuple(Scored(stored[id], total[id]) for id in ids if id in stored)[:k]


def _scores(found: Sequence[Found]) -> tuple[_Scores, _Scores, _Scores]:
    """Of entities, relations and chunks by id, as the class says."""
    last = max((one.round for one in found if one.rows), default=1)
    scores: tuple[_Scores, _Scores, _Scores] = {}, {}, {}
    for one in found:
        places: tuple[dict[str, int], dict[str, int], dict[str, int]] = {}, {}, {}
        for place, row in enumerate(one.rows, 1):
            for kind, ids in enumerate(_ids_of(row)):
                for id in ids:
                    places[kind].setdefault(id, place)
        for kind, by_id in enumerate(places):
            for id, place in by_id.items():
                scores[kind][id] = scores[kind].get(id, 0.0) + one.round / last / place
    return scores


def _ids_of(row: Mapping[str, Any]) -> tuple[list[str], list[str], list[str]]:
    """Entities, relations and chunks that a row holds: by its columns, or as whole nodes of the schema."""
    entities = _texts(row.get(name) for name in ("entity_id", "head_id", "tail_id"))
    relations = _texts([row.get("relation_id")])
    chunks = _texts([row.get("chunk_id")])
    for value in row.values():
        if isinstance(value, Mapping) and isinstance(value.get("properties"), Mapping):
            labels = value.get("labels") or ()
            target = entities if "Entity" in labels else chunks if "Chunk" in labels else []
            target.extend(_texts([value["properties"].get("id")]))
    return entities, relations, chunks


def _texts(values: Iterable[Any]) -> list[str]:
    return [value for value in values if isinstance(value, str)]


def _named(ids: Iterable[str], message: str) -> list[str]:
    """The ids that stand in the message, in order of their places; of two at one place the longer one."""
    places: dict[int, str] = {}
    for id in sorted(ids, key=len):
        if id in message and (match := re.search(rf"(?<!\w){re.escape(id)}(?!\w)", message)):
            places[match.start()] = id
    return [places[place] for place in sorted(places)]
