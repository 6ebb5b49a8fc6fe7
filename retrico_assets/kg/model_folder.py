"""A trained KG model on disk: a folder of versions, and a file that names the current one.

``current.json``                the name of the current version; replaced atomically, after the version is complete
``<name>/card.json``            the model card: options, counts, metrics, training curve, calibration, source of the triples
``<name>/metrics.json``         every metric that PyKEEN measures, by its full name
``<name>/entities.json``        [id, name] of each entity, in the order of the model's numbers
``<name>/relations.json``       label of each relation, in the order of the model's numbers
``<name>/triples.npy``          head, relation, tail and split (0 train, 1 validation, 2 test) as numbers, int32 (n, 4)
``<name>/weights.pt``           the model's tensors by name

A version is written under a temporary name and renamed when it is complete, so that a killed training leaves the earlier
model in place. The earlier version is kept until the next training, for readers that have it open.
"""

import json
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from resources.errors import NotBuiltError, StoreError
from resources.files.locking import locked
from resources.files.replacing import replace_atomically, sync
from retrico_assets.kg.calibration import Calibration

FORMAT = 1
MODEL_FOLDER = "kg_model"
"""In the data folder of a project."""

_CURRENT = "current.json"
_TEMPORARY = ".training-"


@dataclass(frozen=True)
class Card:
    """The model card. ``fingerprint`` identifies triples and options together, ``revision`` the state of the graph.

    ``metrics`` are mrr, hits_at_1, hits_at_3 and hits_at_10 (realistic ranks, known triples filtered out, both sides); they are
    empty where ``no_evaluation`` gives a reason. ``losses`` are by epoch, ``validation`` holds (epoch, value) of
    ``validation_metric``.
    """

    model: str
    fingerprint: str
    triples_fingerprint: str
    options: Mapping[str, Any]
    inverse_triples: bool
    seed: int
    device: str
    counts: Mapping[str, int]
    seconds: float
    losses: tuple[float, ...]
    tail_calibration: Calibration
    head_calibration: Calibration
    revision: str | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    no_evaluation: str | None = None
    validation: tuple[tuple[int, float], ...] = ()
    validation_metric: str = ""
    best_epoch: int | None = None
    format: int = FORMAT


@dataclass(frozen=True)
class Numbers:
    """What numbers in a model mean: ids and names of entities, labels of relations, and the triples (n, 4) of the model."""

    entity_ids: tuple[str, ...]
    names: tuple[str, ...]
    relations: tuple[str, ...]
    triples: np.ndarray


@contextmanager
def training_lock(folder: Path, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
    """Let one training run at a time; a second one calls ``on_wait`` and waits. Removes what killed trainings left behind."""
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "training.lock", on_wait=on_wait):
        for left in folder.glob(f"{_TEMPORARY}*"):
            shutil.rmtree(left, ignore_errors=True)
        yield


def working_folder(folder: Path) -> Path:
    """Make a temporary folder for a training, in the file system of the model folder."""
    made = folder / f"{_TEMPORARY}{uuid.uuid4().hex}"
    made.mkdir(parents=True)
    return made


def publish(folder: Path, working: Path, card: Card, numbers: Numbers, metrics: Mapping[str, float]) -> Path:
    """Turn a working folder, which has weights.pt already, into the current version. Returns its folder."""
    _write_json(working / "card.json", asdict(card))
    _write_json(working / "metrics.json", metrics)
    _write_json(working / "entities.json", list(zip(numbers.entity_ids, numbers.names, strict=True)))
    _write_json(working / "relations.json", list(numbers.relations))
    np.save(working / "triples.npy", numbers.triples.astype(np.int32))
    (working / "best.pt").unlink(missing_ok=True)
    for name in ("triples.npy", "weights.pt"):
        sync(working / name)
    before = _readable_current_version(folder)
    version = folder / f"{card.fingerprint}-{uuid.uuid4().hex[:8]}"
    working.rename(version)
    with replace_atomically(folder / _CURRENT) as temporary:
        _write_json(temporary, {"version": version.name})
    for other in folder.iterdir():
        if other.is_dir() and other not in (version, before):
            shutil.rmtree(other, ignore_errors=True)
    return version


def current_version(folder: Path) -> Path | None:
    """The folder of the current version; None if no training has ended yet."""
    try:
        name = json.loads((folder / _CURRENT).read_text(encoding="utf-8"))["version"]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{folder / _CURRENT} can't be read ({error}). Delete it and train again (`retrico model`).") from error
    return folder / str(name)


def _readable_current_version(folder: Path) -> Path | None:
    """The current version; None if none is known, because ``current.json`` is missing or damaged."""
    try:
        return current_version(folder)
    except StoreError:
        return None


def trained_version(folder: Path) -> Path:
    """The folder of the current version.

    Raises:
        NotBuiltError: no KG model is trained yet.
    """
    version = current_version(folder)
    if version is None:
        raise NotBuiltError(f"No KG model is trained yet ({folder} is empty). Train one with `retrico model`.")
    return version


def read_card(version: Path) -> Card:
    """Read the model card of a version.

    Raises:
        StoreError: the card is missing, damaged, or of another format.
    """
    content = _read_json(version / "card.json")
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise StoreError(f"The KG model in {version} has another format than {FORMAT}. Train it again (`retrico model`).")
    try:
        parts = {name: Calibration(**content[name]) for name in ("tail_calibration", "head_calibration")}
        series = {"losses": tuple(content["losses"]), "validation": tuple((e, v) for e, v in content["validation"])}
        return Card(**{**content, **parts, **series})
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(version / "card.json", error) from error


def read_numbers(version: Path) -> Numbers:
    """Read entities, relations and triples of a version.

    Raises:
        StoreError: a file is missing or damaged.
    """
    entities = _read_json(version / "entities.json")
    relations = _read_json(version / "relations.json")
    if not _is_list_of(entities, lambda row: isinstance(row, list) and [type(part) for part in row] == [str, str]):
        raise _damaged(version / "entities.json", ValueError("not a list of ids and names"))
    if not _is_list_of(relations, lambda row: isinstance(row, str)):
        raise _damaged(version / "relations.json", ValueError("not a list of labels"))
    try:
        triples = np.load(version / "triples.npy", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise _damaged(version / "triples.npy", error) from error
    return Numbers(tuple(id_ for id_, _ in entities), tuple(name for _, name in entities), tuple(relations), triples)


def write_weights(working: Path, model: Any) -> None:
    """Write the tensors of a PyKEEN model into a working folder."""
    import torch

    torch.save({name: tensor.cpu() for name, tensor in model.state_dict().items()}, working / "weights.pt")


def read_weights(version: Path, model: Any) -> None:
    """Load the weights into a model that was made with the same options.

    Raises:
        StoreError: the weights can't be read or don't fit.
    """
    import torch

    path = version / "weights.pt"
    try:
        model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    except Exception as error:  # torch raises OSError, RuntimeError and the errors of pickle and zipfile
        raise _damaged(path, error) from error


def set_revision(version: Path, revision: str | None) -> None:
    """Record that the graph of this revision has the triples that the model learned from."""
    card = read_card(version)
    if card.revision != revision:
        with replace_atomically(version / "card.json") as temporary:
            _write_json(temporary, asdict(replace(card, revision=revision)))


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _damaged(path, error) from error


def _is_list_of(value: Any, is_valid: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(is_valid(item) for item in value)


def _damaged(path: Path, error: Exception) -> StoreError:
    return StoreError(f"The KG model file {path} can't be read ({error}). Train again with `retrico model --retrain`.")


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False), encoding="utf-8", errors="surrogatepass")
    sync(path)
