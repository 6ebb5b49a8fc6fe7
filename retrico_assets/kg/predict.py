"""Questions to a KG model by name: how plausible is a triple, and which are missing."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from resources.errors import SettingsError
from resources.graph.base import GraphStore
from resources.text.names import identity_key
from retrico_assets.kg.score import KGModel

_NEAR = 5
_MOST_STATED = 100_000


@dataclass(frozen=True)
class Prediction:
    """A triple with its plausibility from 0 to 1. ``stated``: it is in the graph, or among those that the model is made from."""

    head_id: str
    head: str
    relation: str
    tail_id: str
    tail: str
    score: float
    stated: bool


def complete(
    model: KGModel,
    relation: str,
    head: str | None = None,
    tail: str | None = None,
    *,
    graph: GraphStore | None = None,
    top: int = 10,
    threshold: float = 0.0,
) -> list[Prediction]:
    """The ``top`` most plausible triples of at least ``threshold`` with this relation and end that are not stated yet.

    With both ends it is that one triple, whatever its score. Entities go by name, in any spelling of the same identity key, or
    by id. ``graph`` says what is stated besides the model's own triples. SettingsError, with near names, for what the model
    doesn't know, and with the ids for a name that several entities have.
    """
    if head is None and tail is None:
        raise SettingsError("a prediction needs --head or --tail, or both to score one triple")
    if top < 1 or not 0 <= threshold <= 1:
        raise SettingsError(f"top is {top} and threshold {threshold}; top must be 1 or more, threshold from 0 to 1")
    label = find_relation(model, relation)
    head_id = None if head is None else find_entity(model, head)
    tail_id = None if tail is None else find_entity(model, tail)
    stated = _stated(graph, label, head_id, tail_id)
    if head_id is not None and tail_id is not None:
        score = model.score([(head_id, label, tail_id)])[0]
        assert score is not None
        known = (head_id, tail_id) in stated or model.states(head_id, label, tail_id)
        return [Prediction(head_id, model.name_of(head_id), label, tail_id, model.name_of(tail_id), score, known)]
    found = model.predict(head_id, label, tail_id, top + len(stated))
    kept = [(h, t, score) for h, _, t, score in found if score >= threshold and (h, t) not in stated][:top]
    return [Prediction(h, model.name_of(h), label, t, model.name_of(t), score, False) for h, t, score in kept]


def find_entity(model: KGModel, name: str) -> str:
    """The id of the entity of that id or name."""
    if not model.unknown([name]):
        return name
    key = identity_key(name)
    keys = [(identity_key(model.name_of(id_)), id_) for id_ in model.entity_ids]
    fitting = [id_ for other, id_ in keys if other == key and key]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        listed = "; ".join(f"{id_} ({model.name_of(id_)})" for id_ in fitting)
        raise SettingsError(f"the KG model knows {len(fitting)} entities called {name!r}; give the id of one: {listed}")
    names = {other: model.name_of(id_) for other, id_ in keys}
    raise SettingsError(f"the KG model knows no entity {name!r} ({_near(key, names)}); one that is new needs a new training")


def find_relation(model: KGModel, label: str) -> str:
    """The label as the model knows it."""
    if label in model.relations:
        return label
    key = identity_key(label)
    known = {identity_key(other): other for other in model.relations}
    fitting = [other for other in model.relations if identity_key(other) == key and key]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise SettingsError(f"the KG model knows several relations like {label!r}; give one of: {', '.join(map(repr, fitting))}")
    raise SettingsError(f"the KG model knows no relation {label!r} ({_near(key, known)})")


def _near(key: str, names: Mapping[str, str]) -> str:
    near: Sequence[str] = difflib.get_close_matches(key, list(names), _NEAR, 0.6)
    if near:
        return f"near ones are: {', '.join(names[other] for other in near)}"
    shown = sorted(names.values())[: 2 * _NEAR]
    more = f" and {len(names) - len(shown):,} more" if len(names) > len(shown) else ""
    return f"it knows {', '.join(shown)}{more}"


def _stated(graph: GraphStore | None, label: str, head_id: str | None, tail_id: str | None) -> set[tuple[str, str]]:
    if graph is None:
        return set()
    heads, tails = ([id_] if id_ is not None else None for id_ in (head_id, tail_id))
    found = graph.find_relations(head_ids=heads, tail_ids=tails, labels=[label], limit=_MOST_STATED)
    return {(relation.head_id, relation.tail_id) for relation in found}
