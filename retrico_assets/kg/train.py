"""Training of a KG model by PyKEEN's pipeline."""

import gc
import hashlib
import json
import math
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from resources.errors import SettingsError
from retrico_assets.kg import model_folder
from retrico_assets.kg.calibration import Calibration, calibrate
from retrico_assets.kg.model_folder import Card, Numbers
from retrico_assets.kg.pykeen import check_pipeline, find_part, load_pykeen, make_factory, make_model, quiet, takes
from retrico_assets.kg.raw_scores import raw_scores
from retrico_assets.kg.triples import SPLITS, TEST, TRAIN, VALIDATION, fingerprint

MRR = "inverse_harmonic_mean_rank"
_MEASURED = {"mrr": MRR, "hits_at_1": "hits_at_1", "hits_at_3": "hits_at_3", "hits_at_10": "hits_at_10"}
_SIDES = ("both", "head", "tail")
_WHAT_IT_IS = (
    "model",
    "model_kwargs",
    "interaction",
    "interaction_kwargs",
    "dimensions",
    "loss",
    "loss_kwargs",
    "regularizer",
    "regularizer_kwargs",
)
_OURS = {
    **dict.fromkeys(("training", "validation", "testing", "dataset", "dataset_kwargs"), "what is learned is kg.triples"),
    "model": "use kg.model",
    "epochs": "use kg.epochs",
    "random_seed": "use kg.seed",
    "device": "use kg.device",
    "use_tqdm": "progress is in the run's log",
    "use_testing_data": "the test triples are always used",
    "metadata": "nothing would read it",
}
_BEST, _CHECKPOINTS = "best.pt", "checkpoints"
_SCORES_AT_ONCE = 32_000_000
_CALIBRATED_ON = 2000


@dataclass(frozen=True)
class TrainingPlan:
    """What to train. ``pipeline`` holds further options of PyKEEN's pipeline by their names there.

    ``embedding_dim`` None leaves the model's own, as for those that have no such argument; ``negatives`` None leaves the
    sampler's own number of corrupted triples for each true one.
    """

    model: str = "RotatE"
    embedding_dim: int | None = 128
    epochs: int = 100
    batch_size: int = 256
    learning_rate: float = 0.003
    negatives: int | None = None
    inverse_triples: bool = False
    pipeline: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 42
    device: str = "cpu"

    def fingerprint_for(self, triples: str) -> str:
        """What identifies a model: these settings, and triples of that fingerprint. 16 hex digits."""
        settings = {name: getattr(self, name) for name in self.__dataclass_fields__}
        text = json.dumps({**settings, "triples": triples}, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def options(self) -> dict[str, Any]:
        """Options of PyKEEN's pipeline. SettingsError for what it does not know."""
        check_pipeline(self.pipeline, _OURS)
        options: dict[str, Any] = {n: dict(v) if isinstance(v, Mapping) else v for n, v in self.pipeline.items()}
        model_kwargs = options.setdefault("model_kwargs", {})
        if options.get("interaction") is None:
            options["model"] = self.model
            if self.embedding_dim is not None and takes(find_part("model", self.model), "embedding_dim"):
                model_kwargs.setdefault("embedding_dim", self.embedding_dim)
        else:
            options.setdefault("dimensions", self.embedding_dim)
        options.setdefault("optimizer_kwargs", {}).setdefault("lr", self.learning_rate)
        training = options.setdefault("training_kwargs", {})
        training.setdefault("num_epochs", self.epochs)
        training.setdefault("batch_size", self.batch_size)
        training.setdefault("pin_memory", self.device != "cpu")
        for name in ("num_epochs", "batch_size"):
            if not isinstance(training[name], int) or training[name] < 1:
                raise SettingsError(
                    f"kg.pipeline.training_kwargs.{name} is {training[name]!r}; it must be a whole number above 0"
                )
        if self.negatives is not None:
            if str(options.get("training_loop") or "slcwa").lower() != "slcwa":
                raise SettingsError("kg.negatives goes with training_loop slcwa: lcwa takes all other entities; remove negatives")
            options.setdefault("negative_sampler_kwargs", {}).setdefault("num_negs_per_pos", self.negatives)
        return options


def train_model(
    frame: pd.DataFrame,
    plan: TrainingPlan,
    folder: Path,
    *,
    revision: str | None = None,
    no_evaluation: str | None = None,
    on_epoch: Callable[[int, int, float], None] = lambda epoch, epochs, loss: None,
) -> Path:
    """Train on a divided frame of triples and make the result the model of ``folder``. Returns its version's folder.

    On one machine, CPU and number of threads the same frame and plan give the same model. Called under
    ``model_folder.training_lock``. SettingsError for settings that PyKEEN refuses and for a training that diverges; the
    model before then stays.
    """
    options = plan.options()
    numbers = number(frame)
    working = model_folder.working_folder(folder)
    started = time.monotonic()
    try:
        result = _run(numbers, options, plan, working, on_epoch, evaluated=no_evaluation is None)
        losses = tuple(float(loss) for loss in result.losses)
        tails, heads = _calibrations(result.model, numbers, plan.seed)
        measured = {} if no_evaluation else _flat(result.metric_results)
        stopper = result.stopper
        values = tuple(float(value) for value in getattr(stopper, "results", ()))
        triples = fingerprint(frame)
        card = Card(
            model=type(result.model).__name__,
            fingerprint=plan.fingerprint_for(triples),
            triples_fingerprint=triples,
            options=json.loads(json.dumps(options, default=str)),
            inverse_triples=plan.inverse_triples,
            seed=plan.seed,
            device=str(result.model.device),
            counts={
                "entities": len(numbers.entity_ids),
                "relations": len(numbers.relations),
                **{split: int((numbers.triples[:, 3] == place).sum()) for place, split in enumerate(SPLITS)},
                "parameters": int(result.model.num_parameters),
                "epochs": len(losses),
            },
            seconds=round(time.monotonic() - started, 2),
            losses=losses,
            tail_calibration=tails,
            head_calibration=heads,
            revision=revision,
            metrics={name: measured[f"both.realistic.{metric}"] for name, metric in _MEASURED.items() if measured},
            no_evaluation=no_evaluation,
            validation=tuple((place * stopper.frequency, value) for place, value in enumerate(values, 1)),
            validation_metric=stopper.metric if values else "",
            best_epoch=getattr(stopper, "best_epoch", None),
        )
        model_folder.write_weights(working, result.model)
        shutil.rmtree(working / _CHECKPOINTS, ignore_errors=True)
        return model_folder.publish(folder, working, card, numbers, measured)
    finally:
        shutil.rmtree(working, ignore_errors=True)


def number(frame: pd.DataFrame) -> Numbers:
    """Entities and relations by number, in alphabetical order of their ids and labels."""
    names = dict(zip(frame["tail_id"], frame["tail"], strict=True)) | dict(zip(frame["head_id"], frame["head"], strict=True))
    entity_ids, relations = sorted(names), sorted(set(frame["relation"]))
    entity_of = {id_: place for place, id_ in enumerate(entity_ids)}
    relation_of = {label: place for place, label in enumerate(relations)}
    split_of = {split: place for place, split in enumerate(SPLITS)}
    columns = [
        frame["head_id"].map(entity_of),
        frame["relation"].map(relation_of),
        frame["tail_id"].map(entity_of),
        frame["split"].map(split_of),
    ]
    triples = np.column_stack([column.to_numpy(np.int32) for column in columns])
    return Numbers(tuple(entity_ids), tuple(names[id_] for id_ in entity_ids), tuple(relations), triples)


def _run(
    numbers: Numbers,
    options: dict[str, Any],
    plan: TrainingPlan,
    working: Path,
    on_epoch: Callable[[int, int, float], None],
    *,
    evaluated: bool,
) -> Any:
    """PyKEEN's result."""
    load_pykeen()
    from pykeen.pipeline import pipeline
    from pykeen.training.training_loop import NonFiniteLossError

    parts = {split: numbers.triples[numbers.triples[:, 3] == place, :3] for place, split in enumerate(SPLITS)}
    if not len(parts[TRAIN]):
        raise SettingsError("there are no triples to train on")
    sizes = len(numbers.entity_ids), len(numbers.relations)
    training = make_factory(parts[TRAIN], *sizes, inverse=plan.inverse_triples)
    validation, testing = (make_factory(parts[s], *sizes, inverse=False) if len(parts[s]) else None for s in (VALIDATION, TEST))
    testing = testing or validation  # a folder without test.txt
    if not evaluated:  # the pipeline insists on a test; for one whose figures nobody sees a single triple is enough
        validation, testing = None, make_factory(parts[TRAIN][:1], *sizes, inverse=False)
    rest = {name: value for name, value in options.items() if name not in _WHAT_IT_IS}
    training_kwargs = {**rest.pop("training_kwargs")}
    # PyKEEN leaves out a last batch that is not full where a model normalises by batch, be it the only one.
    training_kwargs["batch_size"] = min(training_kwargs["batch_size"], _instances(parts[TRAIN], options, plan))
    training_kwargs["callbacks"] = _listener(on_epoch, training_kwargs["num_epochs"], working / _BEST)
    # PyKEEN makes this folder even if it saves nothing there, by default in the user's home. Named ones outlast a kill.
    kept = working.parent if training_kwargs.get("checkpoint_name") else working
    training_kwargs.setdefault("checkpoint_directory", str(kept / _CHECKPOINTS))
    if rest.get("stopper"):
        rest = _with_stopper(rest, working, validation is not None)
    evaluation_kwargs = {"batch_size": _batch(numbers, options), **(rest.pop("evaluation_kwargs", None) or {})}
    try:
        model = make_model(options, training, plan.seed)
        with quiet(), _few_objects_to_look_through():
            return pipeline(
                **rest,
                model=model,
                training=training,
                validation=validation,
                testing=testing,
                training_kwargs=training_kwargs,
                evaluation_kwargs=evaluation_kwargs,
                random_seed=plan.seed,
                device=plan.device,
                use_tqdm=False,
            )
    except (TypeError, ValueError, KeyError, NotImplementedError, RuntimeError) as error:
        if isinstance(error, NonFiniteLossError):
            raise SettingsError(f"the training of {plan.model} diverged: its loss is no number; lower learning_rate") from error
        what = f"{type(error).__name__}: {error}"
        raise SettingsError(f"PyKEEN can't train {plan.model} with these settings ({what}); see kg in project.yaml") from error


@contextmanager
def _few_objects_to_look_through() -> Iterator[None]:
    """PyKEEN collects garbage after every epoch, which costs more than many an epoch while all modules are looked through."""
    import torch._dynamo  # noqa: F401  (optimizers import it when they are made)

    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _with_stopper(options: dict[str, Any], working: Path, has_validation: bool) -> dict[str, Any]:
    """Early stopping, by the validation's MRR unless told otherwise, best weights in ``working``; none if not validated."""
    rest = {name: value for name, value in options.items() if name not in ("stopper", "stopper_kwargs")}
    if not has_validation:
        return rest
    chosen = {
        "metric": f"both.realistic.{MRR}",
        "larger_is_better": True,
        "best_model_path": working / _BEST,
        **(options.get("stopper_kwargs") or {}),
    }
    return {**rest, "stopper": options["stopper"], "stopper_kwargs": chosen}


def _instances(train: np.ndarray, options: Mapping[str, Any], plan: TrainingPlan) -> int:
    """What an epoch goes through: triples, or with lcwa pairs of an entity and a relation, in both directions if asked."""
    if str(options.get("training_loop") or "slcwa").lower() == "slcwa":
        return len(train) * (2 if plan.inverse_triples else 1)
    ends = ([0, 1], [2, 1]) if plan.inverse_triples else ([0, 1],)
    return sum(len(np.unique(train[:, pair], axis=0)) for pair in ends)


def _listener(on_epoch: Callable[[int, int, float], None], epochs: int, best: Path) -> Any:
    import torch
    from pykeen.training.callbacks import TrainingCallback

    class Listener(TrainingCallback):  # type: ignore[misc]
        def post_epoch(self, epoch: int, epoch_loss: float, **kwargs: Any) -> None:
            on_epoch(epoch, epochs, epoch_loss)

        def post_train(self, losses: list[float], **kwargs: Any) -> None:
            # PyKEEN goes back to the best weights only where it stops early, and not where the epochs are used up.
            if best.exists():
                self.model.load_state_dict(torch.load(best, weights_only=True))

    return Listener()


def _batch(numbers: Numbers, options: Mapping[str, Any]) -> int:
    """Triples to evaluate at once: each is scored against all entities, some models making a vector for each pair."""
    dimension = options["model_kwargs"].get("embedding_dim") or 128
    return max(1, min(256, _SCORES_AT_ONCE // (2 * max(1, len(numbers.entity_ids)) * int(dimension))))


def _flat(results: Any) -> dict[str, float]:
    """Every metric as "side.type.name", without those that are not a number for so few triples."""
    return {name: float(value) for name, value in results.to_flat_dict().items() if math.isfinite(value)}


def _calibrations(model: Any, numbers: Numbers, seed: int) -> tuple[Calibration, Calibration]:
    """How to read the model's scores of tails and of heads: on held-out triples if there are any, else on those of train."""
    random = np.random.default_rng(seed)
    held_out = numbers.triples[numbers.triples[:, 3] > 0, :3]
    true = held_out if len(held_out) else numbers.triples[:, :3]
    true = true[random.permutation(len(true))[:_CALIBRATED_ON]]
    known = {tuple(row) for row in numbers.triples[:, :3].tolist()}
    found = []
    for column, heads in ((2, False), (0, True)):
        corrupted = np.tile(true, (max(1, min(10, 1000 // len(true))), 1))
        corrupted[:, column] = random.integers(0, len(numbers.entity_ids), len(corrupted))
        corrupted = corrupted[[tuple(row) not in known for row in corrupted.tolist()]]
        found.append(calibrate(raw_scores(model, true, heads=heads), raw_scores(model, corrupted, heads=heads)))
    return found[0], found[1]
