"""A trained KG model at query time: scores triples and predicts missing ones."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from resources.errors import SettingsError
from retrico_assets.kg.model_folder import (
    MODEL_FOLDER,
    Card,
    Numbers,
    current_version,
    read_card,
    read_numbers,
    read_weights,
    trained_version,
)
from retrico_assets.kg.pykeen import load_pykeen, make_factory, make_model
from retrico_assets.kg.raw_scores import raw_scores, raw_scores_of_all


class KGModel:
    """A PyKEEN model with names. Entities are given by id, relations by label; unknown ones are not scored.

    A score is a plausibility from 0 to 1: 0.5 means that the triple is as likely a true one as one with a random entity
    (calibration.py). Scores order triples as the model does. Scores of different relations, or of heads and tails, are only
    roughly comparable.
    """

    def __init__(self, version: Path) -> None:
        self.version = version
        card = read_card(version)
        self._calibrations = card.tail_calibration, card.head_calibration
        self._numbers = read_numbers(version)
        self._entity_of = {id_: number for number, id_ in enumerate(self._numbers.entity_ids)}
        self._relation_of = {label: number for number, label in enumerate(self._numbers.relations)}
        self._model: Any = None

    @classmethod
    def open(cls, folder: Path) -> "KGModel":
        """Open the current model of a folder; its weights are loaded on first use. One process shares one instance.

        Raises:
            NotBuiltError: no model is trained yet.
            StoreError: the model can't be read.
        """
        return _opened(trained_version(folder))

    @property
    def card(self) -> Card:
        """The model card. It is read each time, since a later run may record a later revision of the graph."""
        return read_card(self.version)

    @property
    def entity_ids(self) -> tuple[str, ...]:
        """Ids of the known entities, in alphabetical order."""
        return self._numbers.entity_ids

    @property
    def relations(self) -> tuple[str, ...]:
        """Labels of the known relations, in alphabetical order."""
        return self._numbers.relations

    def name_of(self, entity_id: str) -> str:
        """The name that a known entity had when the model was trained."""
        return self._numbers.names[self._entity_of[entity_id]]

    def stale_against(self, revision: str) -> bool:
        """Whether the graph has changed since the triples were read from it. False for a model trained on files."""
        known = self.card.revision
        return known is not None and known != revision

    def unknown(self, entity_ids: Iterable[str]) -> list[str]:
        """The entities that the model doesn't know, such as those added after the training; in order, each once."""
        return [id_ for id_ in dict.fromkeys(entity_ids) if id_ not in self._entity_of]

    def caveats(self, revision: str, entities: Mapping[str, str]) -> list[str]:
        """Warnings about scores of these entities (names by id) in a graph of this revision."""
        warnings = []
        if self.stale_against(revision):
            warnings.append("The KG model is older than the graph. Train it again with `retrico model`.")
        if unknown := [entities[id_] for id_ in self.unknown(entities)]:
            more = f" and {len(unknown) - 10:,} more" if len(unknown) > 10 else ""
            warnings.append(f"The KG model doesn't know these entities, so they have no score: {', '.join(unknown[:10])}{more}.")
        return warnings

    def states(self, head: str, relation: str, tail: str) -> bool:
        """Whether the triple is one of the train, validation or test triples."""
        numbers = self._numbered((head, relation, tail))
        return numbers is not None and bool((self._numbers.triples[:, :3] == numbers).all(axis=1).any())

    def score(self, triples: Sequence[tuple[str, str, str]]) -> list[float | None]:
        """Score (head, relation, tail) triples in one batch; None where an entity or the relation is unknown."""
        numbered = [self._numbered(triple) for triple in triples]
        known = [place for place, numbers in enumerate(numbered) if numbers is not None]
        scores: list[float | None] = [None] * len(triples)
        if known:
            raw = raw_scores(self._loaded(), np.array([numbered[place] for place in known]))
            for place, score in zip(known, self._calibrations[0](raw).tolist(), strict=True):
                scores[place] = score
        return scores

    def predict(self, head: str | None, relation: str, tail: str | None, k: int) -> list[tuple[str, str, str, float]]:
        """The ``k`` most plausible completions of a triple whose head or tail is None, best first, equal scores by id.

        Known triples and triples of an entity with itself are left out. Empty for an unknown entity or relation.

        Raises:
            SettingsError: both ends are given, or neither.
        """
        if (head is None) == (tail is None):
            raise SettingsError(f"The head is {head!r} and the tail {tail!r}. Give one of them and leave the other open.")
        heads = head is None
        entity, label = self._entity_of.get(str(tail if heads else head)), self._relation_of.get(relation)
        if entity is None or label is None or k < 1:
            return []
        raw = raw_scores_of_all(self._loaded(), entity, label, heads=heads)
        known = self._numbers.triples
        given, predicted = (2, 0) if heads else (0, 2)
        allowed = np.ones(len(raw), dtype=bool)
        allowed[known[(known[:, given] == entity) & (known[:, 1] == label), predicted]] = False
        allowed[entity] = False
        candidates = np.flatnonzero(allowed)
        best = candidates[np.argsort(-raw[candidates], kind="stable")[:k]]
        plausible = self._calibrations[1 if heads else 0](raw[best])
        completions = [(self.entity_ids[number], score) for number, score in zip(best.tolist(), plausible.tolist(), strict=True)]
        if heads:
            return [(other, relation, str(tail), score) for other, score in completions]
        return [(str(head), relation, other, score) for other, score in completions]

    def vectors(self) -> tuple[tuple[str, ...], np.ndarray, tuple[str, ...], np.ndarray]:
        """Entity ids, their vectors (entities, d), relation labels, and their vectors (relations, r), float32.

        They are the model's first representation of each, complex numbers as pairs of real ones; without columns if it has none.
        """
        model = self._loaded()
        relations = np.arange(len(self.relations)) * (2 if model.use_inverse_triples else 1)
        entities = _real(model.entity_representations, np.arange(len(self.entity_ids)))
        return self.entity_ids, entities, self.relations, _real(model.relation_representations, relations)

    def _numbered(self, triple: tuple[str, str, str]) -> tuple[int, int, int] | None:
        head, relation, tail = triple
        numbers = self._entity_of.get(head), self._relation_of.get(relation), self._entity_of.get(tail)
        return None if None in numbers else numbers  # type: ignore[return-value]

    def _loaded(self) -> Any:
        if self._model is None:
            card = self.card
            load_pykeen()
            model = make_model(card.options, _factory(card, self._numbers), card.seed)
            read_weights(self.version, model)
            model.eval()
            self._model = model
        return self._model


def trained_model(data_folder: Path) -> KGModel | None:
    """The KG model in a project's data folder; None if no model is trained yet."""
    folder = data_folder / MODEL_FOLDER
    return None if current_version(folder) is None else KGModel.open(folder)


@lru_cache(maxsize=4)
def _opened(version: Path) -> KGModel:
    return KGModel(version)


def _factory(card: Card, numbers: Numbers) -> Any:
    train = numbers.triples[numbers.triples[:, 3] == 0, :3]
    return make_factory(train, len(numbers.entity_ids), len(numbers.relations), inverse=card.inverse_triples)


def _real(representations: Any, numbers: np.ndarray) -> np.ndarray:
    import torch

    if not len(representations):
        return np.empty((len(numbers), 0), np.float32)
    with torch.inference_mode():
        tensor = representations[0](torch.as_tensor(numbers)).cpu()
        if tensor.is_complex():
            tensor = torch.view_as_real(tensor)
        vectors: np.ndarray = tensor.reshape(len(numbers), -1).float().numpy()
    return vectors
