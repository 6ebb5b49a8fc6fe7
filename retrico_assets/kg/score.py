"""A trained KG model at query time: how plausible triples are, and which are missing."""

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
    """A KG model of PyKEEN with its names. Entities go by id, relations by label; what it doesn't know it does not score.

    Scores are 0 to 1: how much more a triple looks like the known ones than like the same with a random entity in it, 0.5
    being the middle (calibration.py). They order triples as the model does; of two relations, or of a head and a tail, they
    are only roughly comparable.
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
        """The model of that folder that counts now; its weights are loaded when it is first asked.

        A process that opened it before gets the same one. NotBuiltError if none is trained yet, StoreError if it can't be read.
        """
        return _opened(trained_version(folder))

    @property
    def card(self) -> Card:
        """What it is; read again each time, as a later run may have found it true of a later revision of the graph."""
        return read_card(self.version)

    @property
    def entity_ids(self) -> tuple[str, ...]:
        return self._numbers.entity_ids

    @property
    def relations(self) -> tuple[str, ...]:
        """The labels that it knows, in alphabetical order."""
        return self._numbers.relations

    def name_of(self, entity_id: str) -> str:
        """The name that an entity it knows had when it was trained."""
        return self._numbers.names[self._entity_of[entity_id]]

    def stale_against(self, revision: str) -> bool:
        """Whether the graph has changed since the model's triples were read from it; never for a model of files."""
        known = self.card.revision
        return known is not None and known != revision

    def unknown(self, entity_ids: Iterable[str]) -> list[str]:
        """Those of the entities that it doesn't know, as those that came after the training; in order, each once."""
        return [id_ for id_ in dict.fromkeys(entity_ids) if id_ not in self._entity_of]

    def caveats(self, revision: str, entities: Mapping[str, str]) -> list[str]:
        """What to know of its scores of these entities (names by id) with a graph of this revision; nothing if all is well."""
        told = []
        if self.stale_against(revision):
            told.append(
                "the KG model is older than the graph: what came since is unknown to it; train it again (`retrico model`)"
            )
        if unknown := [entities[id_] for id_ in self.unknown(entities)]:
            more = f" and {len(unknown) - 10:,} more" if len(unknown) > 10 else ""
            told.append(f"not scored, as the KG model does not know them: {', '.join(unknown[:10])}{more}")
        return told

    def states(self, head: str, relation: str, tail: str) -> bool:
        """Whether the triple is among those that it was made from, for training or evaluation."""
        numbers = self._numbered((head, relation, tail))
        return numbers is not None and bool((self._numbers.triples[:, :3] == numbers).all(axis=1).any())

    def score(self, triples: Sequence[tuple[str, str, str]]) -> list[float | None]:
        """How plausible each (head, relation, tail) is, in one batch; None where it doesn't know an entity or the relation."""
        numbered = [self._numbered(triple) for triple in triples]
        known = [place for place, numbers in enumerate(numbered) if numbers is not None]
        scores: list[float | None] = [None] * len(triples)
        if known:
            raw = raw_scores(self._loaded(), np.array([numbered[place] for place in known]))
            for place, score in zip(known, self._calibrations[0](raw).tolist(), strict=True):
                scores[place] = score
        return scores

    def predict(self, head: str | None, relation: str, tail: str | None, k: int) -> list[tuple[str, str, str, float]]:
        """The ``k`` most plausible completions of a triple with one open end, best first, equals by id.

        Triples that it was made from are left out, and those of an entity with itself. None for an entity or a relation that
        it doesn't know. SettingsError unless one end is given and the other open.
        """
        if (head is None) == (tail is None):
            raise SettingsError(f"a prediction needs a head or a tail, and the other open; got head {head!r} and tail {tail!r}")
        heads = head is None
        entity, label = self._entity_of.get(str(tail if heads else head)), self._relation_of.get(relation)
        if entity is None or label is None or k < 1:
            return []
        raw = raw_scores_of_all(self._loaded(), entity, label, heads=heads)
        known = self._numbers.triples
        given, asked = (2, 0) if heads else (0, 2)
        allowed = np.ones(len(raw), dtype=bool)
        allowed[known[(known[:, given] == entity) & (known[:, 1] == label), asked]] = False
        allowed[entity] = False
        candidates = np.flatnonzero(allowed)
        best = candidates[np.argsort(-raw[candidates], kind="stable")[:k]]
        plausible = self._calibrations[1 if heads else 0](raw[best])
        found = [(self.entity_ids[number], score) for number, score in zip(best.tolist(), plausible.tolist(), strict=True)]
        if heads:
            return [(other, relation, str(tail), score) for other, score in found]
        return [(str(head), relation, other, score) for other, score in found]

    def vectors(self) -> tuple[tuple[str, ...], np.ndarray, tuple[str, ...], np.ndarray]:
        """Entity ids, their vectors (entities, d), relation labels, their vectors (relations, r), float32.

        The first of the representations that the model has of each; complex numbers as pairs of real ones. No columns where
        it has none.
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
    """The KG model of a project, by its data folder; None if none is trained yet."""
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
        found = representations[0](torch.as_tensor(numbers)).cpu()
        if found.is_complex():
            found = torch.view_as_real(found)
        vectors: np.ndarray = found.reshape(len(numbers), -1).float().numpy()
    return vectors
