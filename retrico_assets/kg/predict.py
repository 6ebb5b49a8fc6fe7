"""Predictions of a KG model by name: how plausible a triple is, and which triples are missing."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from resources.errors import SettingsError
from resources.graph.base import GraphStore
from resources.text.names import identity_key
from retrico_assets.kg.score import KGModel

_SIMILAR_NAMES = 5
_MAX_STATED = 100_000


@dataclass(frozen=True)
class Prediction:
    """A triple with its plausibility from 0 to 1. ``stated``: it is in the graph or among the triples the model learned from."""

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
    """Predict the ``top`` most plausible triples with this relation and end that are not stated yet.

    With both ends given, the result is that one triple, whatever its score. An entity is given by id or by name, in any spelling
    with the same identity key. Triples of ``graph`` count as stated, besides those that the model learned from. Predictions have
    a score of at least ``threshold``.

    Raises:
        SettingsError: the model doesn't know a name (the message lists similar ones), or several entities have it (the message
            lists their ids).
    """
    if head is None and tail is None:
        raise SettingsError("Neither a head nor a tail is given. Give one to predict the other, or both to score that triple.")
    if top < 1:
        raise SettingsError(f"top is {top}. It must be 1 or greater.")
    if not 0 <= threshold <= 1:
        raise SettingsError(f"threshold is {threshold}. It must be between 0 and 1.")
    label = find_relation(model, relation)
    head_id = None if head is None else find_entity(model, head)
    tail_id = None if tail is None else find_entity(model, tail)
    stated = _stated(graph, label, head_id, tail_id)
    if head_id is not None and tail_id is not None:
        score = model.score([(head_id, label, tail_id)])[0]
        assert score is not None
        known = (head_id, tail_id) in stated or model.states(head_id, label, tail_id)
        return [Prediction(head_id, model.name_of(head_id), label, tail_id, model.name_of(tail_id), score, known)]
    candidates = model.predict(head_id, label, tail_id, top + len(stated))
    kept = [(h, t, score) for h, _, t, score in candidates if score >= threshold and (h, t) not in stated][:top]
    return [Prediction(h, model.name_of(h), label, t, model.name_of(t), score, False) for h, t, score in kept]


def find_entity(model: KGModel, name: str) -> str:
    """The id of the entity with this id or name.

    Raises:
        SettingsError: no entity has the name, or several do.
    """
    if not model.unknown([name]):
        return name
    key = identity_key(name)
    keys = [(identity_key(model.name_of(id_)), id_) for id_ in model.entity_ids]
    matches = [id_ for other, id_ in keys if other == key and key]
    if len(matches) == 1:
        return matches[0]
    if matches:
        listed = "; ".join(f"{id_} ({model.name_of(id_)})" for id_ in matches)
        raise SettingsError(f"{name!r} is the name of {len(matches)} entities of the KG model. Give the id of one: {listed}.")
    names = {other: model.name_of(id_) for other, id_ in keys}
    raise SettingsError(
        f"The KG model doesn't know the entity {name!r}. {_similar(key, names)} "
        "If the entity is new, train again with `retrico model`."
    )


def find_relation(model: KGModel, label: str) -> str:
    """The label of a relation as the model has it.

    Raises:
        SettingsError: no relation has the label, or several match it.
    """
    if label in model.relations:
        return label
    key = identity_key(label)
    known = {identity_key(other): other for other in model.relations}
    matches = [other for other in model.relations if identity_key(other) == key and key]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise SettingsError(f"{label!r} matches several relations. Give one of: {', '.join(map(repr, matches))}.")
    raise SettingsError(f"The KG model doesn't know the relation {label!r}. {_similar(key, known)}")


def _similar(key: str, names: Mapping[str, str]) -> str:
    similar: Sequence[str] = difflib.get_close_matches(key, list(names), _SIMILAR_NAMES, 0.6)
    if similar:
        return f"Similar names: {', '.join(names[other] for other in similar)}."
    shown = sorted(names.values())[: 2 * _SIMILAR_NAMES]
    more = f" and {len(names) - len(shown):,} more" if len(names) > len(shown) else ""
    return f"Known names: {', '.join(shown)}{more}."


def _stated(graph: GraphStore | None, label: str, head_id: str | None, tail_id: str | None) -> set[tuple[str, str]]:
    if graph is None:
        return set()
    heads, tails = ([id_] if id_ is not None else None for id_ in (head_id, tail_id))
    relations = graph.find_relations(head_ids=heads, tail_ids=tails, labels=[label], limit=_MAX_STATED)
    return {(relation.head_id, relation.tail_id) for relation in relations}
