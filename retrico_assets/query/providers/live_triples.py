"""Triples that agents add while they work (``kg_add_triple``), and the provider "knowledge-tools" that serves them.

They live in this process, in the KnowledgeTools instance that took them, and go with it.
"""

import re
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

from resources.errors import SettingsError
from resources.records import Entity, Relation, Scored, Subgraph
from resources.text.characters import is_blank, storable
from resources.text.names import identity_key
from retrico_assets.graph.identity import entity_id, relation_id
from retrico_assets.query.providers.base import GraphProvider
from retrico_assets.query.providers.options import ProjectFacts
from retrico_assets.query.question.question import Question
from retrico_assets.query.sources import Sources

Triple = tuple[str, str, str]
"""Subject, predicate, object."""

KG_ADD_TRIPLE: Mapping[str, Any] = {
    "type": "function",
    "function": {
        "name": "kg_add_triple",
        "description": "Remember one fact as a triple. It can be found at once, as long as this process runs.",
        "parameters": {
            "type": "object",
            "properties": {
                "subject": {"type": "string", "description": "What the fact is about, by name."},
                "predicate": {"type": "string", "description": "The relation, such as 'works at'."},
                "object": {"type": "string", "description": "What the subject is related to, by name."},
            },
            "required": ["subject", "predicate", "object"],
            "additionalProperties": False,
        },
    },
}
"""The tool as a chat model is told of it; its function is ``KnowledgeTools.kg_add_triple``, or the module's."""

_instances: "weakref.WeakSet[KnowledgeTools]" = weakref.WeakSet()
_instances_lock = threading.Lock()


class KnowledgeTools:
    """A bag of live triples, each once. Safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._triples: dict[Triple, None] = {}
        with _instances_lock:
            _instances.add(self)

    def kg_add_triple(self, subject: str, predicate: str, object: str) -> str:
        """Remember a triple; says what was remembered. SettingsError for a part that is no text, or that says nothing."""
        triple = (
            _checked("subject", subject, names_entity=True),
            _checked("predicate", predicate, names_entity=False),
            _checked("object", object, names_entity=True),
        )
        with self._lock:
            self._triples[triple] = None
        return f"remembered: {' | '.join(triple)}"

    def triples(self) -> tuple[Triple, ...]:
        """The triples in the order in which they came."""
        with self._lock:
            return tuple(self._triples)

    def tools(self) -> tuple[tuple[Mapping[str, Any], Callable[..., str]], ...]:
        """(definition, function) of each tool, ready to be offered to a chat model."""
        return ((KG_ADD_TRIPLE, self.kg_add_triple),)


_of_the_process: KnowledgeTools | None = None


def process_tools() -> KnowledgeTools:
    """The instance that lives as long as the process."""
    global _of_the_process
    with _instances_lock:
        found = _of_the_process
    if found is None:
        made = KnowledgeTools()
        with _instances_lock:
            found = _of_the_process = _of_the_process or made
    return found


def kg_add_triple(subject: str, predicate: str, object: str) -> str:
    """``KnowledgeTools.kg_add_triple`` of the instance that lives as long as the process."""
    return process_tools().kg_add_triple(subject, predicate, object)


def live_triples() -> tuple[Triple, ...]:
    """What all instances that are alive hold now, each triple once, sorted."""
    with _instances_lock:
        instances = list(_instances)
    return tuple(sorted({triple for tools in instances for triple in tools.triples()}))


def query_tokens(text: str) -> list[str]:
    """Lower case, split on everything that is not a-z or 0-9 (so of İstanbul remain i and stanbul, of 東京 nothing)."""
    return [token for token in re.split(r"[^a-z0-9]+", text.lower()) if token]


class KnowledgeToolsProvider(GraphProvider):
    """Serves the very triples that tools write, as they are when a question is asked.

    Claims when the project has no folder of documents, or when the selected sources name it. A triple scores the share of
    the question's tokens that it has; equal scores are ordered by the share of its own tokens that the question has, then
    by their words.
    """

    name: ClassVar[str] = "knowledge-tools"
    is_default: ClassVar[bool] = True

    @classmethod
    def claims(cls, project: ProjectFacts) -> bool:
        return not project.has_corpus or cls.name in project.retrieval.sources

    @classmethod
    def open(cls, project: ProjectFacts, sources: Sources) -> Self:
        return cls(sources)

    def rank(self, question: Question, k: int) -> Subgraph:
        asked = set(query_tokens(question.text))
        if not asked:
            return Subgraph()
        found = []
        for triple in live_triples():
            said = set(query_tokens(" ".join(triple)))
            common = len(asked & said)
            if common:
                found.append((common / len(asked), common / len(said), triple))
        found.sort(key=lambda hit: (-hit[0], -hit[1], hit[2]))
        return _subgraph([(triple, score) for score, _, triple in found], k)


def _subgraph(ranked: list[tuple[Triple, float]], k: int) -> Subgraph:
    """Triples as relations between entities whose ids are those that a build would give to the names."""
    relations: dict[str, Scored[Relation]] = {}
    entities: dict[str, Scored[Entity]] = {}
    for (subject, predicate, object_), score in ranked:
        head, tail = _entity(subject), _entity(object_)
        id = relation_id(head.id, predicate, tail.id, None, None)
        if id in relations:  # other spellings of the same names
            continue
        if len(relations) == k:
            break
        relations[id] = Scored(Relation(id, head.id, predicate, tail.id, 1.0, ()), score)
        for entity in (head, tail):
            entities.setdefault(entity.id, Scored(entity, score))
    return Subgraph(tuple(entities.values()), tuple(relations.values()))


def _entity(name: str) -> Entity:
    key = identity_key(name)
    return Entity(entity_id(key, "", None, "name"), name, key, "")


def _checked(part: str, value: Any, *, names_entity: bool) -> str:
    if not isinstance(value, str):
        raise SettingsError(f"kg_add_triple: {part} must be text, got {type(value).__name__} {value!r:.80}")
    text = storable(value).strip()
    if is_blank(text):
        raise SettingsError(f"kg_add_triple: {part} is blank. Give it a name.")
    if names_entity and not identity_key(text):
        raise SettingsError(f"kg_add_triple: {part} {text!r:.80} has no letter or digit, so it names nothing; give a name")
    return text
