"""Training of a KG model by PyKEEN's pipeline."""

import gc
import json
import math
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from resources.errors import SettingsError
from retrico_assets.kg import model_folder
from retrico_assets.kg.calibration import Calibration, calibrate
from retrico_assets.kg.model_folder import Card, Numbers
from retrico_assets.kg.options import TrainingOptions
from retrico_assets.kg.pipeline import model_fingerprint, pipeline_arguments, training_loop
from retrico_assets.kg.pykeen import load_pykeen, make_factory, make_model, quiet
from retrico_assets.kg.raw_scores import raw_scores
from retrico_assets.kg.triples import SPLITS, TEST, TRAIN, VALIDATION, fingerprint

MRR = "inverse_harmonic_mean_rank"
_METRICS = {"mrr": MRR, "hits_at_1": "hits_at_1", "hits_at_3": "hits_at_3", "hits_at_10": "hits_at_10"}
_MODEL_ARGUMENTS = (
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
"""Arguments of the pipeline that say what the model is: ``make_model`` takes them, so the pipeline is not given them."""
_BEST, _CHECKPOINTS = "best.pt", "checkpoints"
_MAX_SCORES_PER_BATCH = 32_000_000
_CALIBRATION_TRIPLES = 2000


def train_model(
    frame: pd.DataFrame,
    options: TrainingOptions,
    folder: Path,
    *,
    revision: str | None = None,
    no_evaluation: str | None = None,
    on_epoch: Callable[[int, int, float], None] = lambda epoch, epochs, loss: None,
) -> Path:
    """Train on a divided frame of triples and publish the result as the model of ``folder``. Returns its version's folder.

    On one machine, CPU and number of threads the same frame and options give the same model. Call it under
    ``model_folder.training_lock``. If the training fails, the earlier model stays.

    Raises:
        SettingsError: PyKEEN refuses the options, or the training diverges.
    """
    arguments = pipeline_arguments(options)
    numbers = number(frame)
    working = model_folder.working_folder(folder)
    started = time.monotonic()
    try:
        result = _run(numbers, arguments, options, working, on_epoch, evaluated=no_evaluation is None)
        card = _card(result, frame, numbers, arguments, options, revision, no_evaluation, time.monotonic() - started)
        model_folder.write_weights(working, result.model)
        shutil.rmtree(working / _CHECKPOINTS, ignore_errors=True)
        metrics = {} if no_evaluation else _finite_metrics(result.metric_results)
        return model_folder.publish(folder, working, card, numbers, metrics)
    finally:
        shutil.rmtree(working, ignore_errors=True)


def _card(
    result: Any,
    frame: pd.DataFrame,
    numbers: Numbers,
    arguments: Mapping[str, Any],
    options: TrainingOptions,
    revision: str | None,
    no_evaluation: str | None,
    seconds: float,
) -> Card:
    losses = tuple(float(loss) for loss in result.losses)
    metrics = {} if no_evaluation else _finite_metrics(result.metric_results)
    stopper = result.stopper
    validation = tuple(float(value) for value in getattr(stopper, "results", ()))
    triples_fingerprint = fingerprint(frame)
    tails, heads = _calibrations(result.model, numbers, options.seed)
    return Card(
        model=type(result.model).__name__,
        fingerprint=model_fingerprint(options, triples_fingerprint),
        triples_fingerprint=triples_fingerprint,
        options=json.loads(json.dumps(arguments, default=str)),
        inverse_triples=options.inverse_triples,
        seed=options.seed,
        device=str(result.model.device),
        counts={
            "entities": len(numbers.entity_ids),
            "relations": len(numbers.relations),
            **{split: int((numbers.triples[:, 3] == place).sum()) for place, split in enumerate(SPLITS)},
            "parameters": int(result.model.num_parameters),
            "epochs": len(losses),
        },
        seconds=round(seconds, 2),
        losses=losses,
        tail_calibration=tails,
        head_calibration=heads,
        revision=revision,
        metrics={name: metrics[f"both.realistic.{metric}"] for name, metric in _METRICS.items()} if metrics else {},
        no_evaluation=no_evaluation,
        validation=tuple((place * stopper.frequency, value) for place, value in enumerate(validation, 1)),
        validation_metric=stopper.metric if validation else "",
        best_epoch=getattr(stopper, "best_epoch", None),
    )


def number(frame: pd.DataFrame) -> Numbers:
    """Give entities and relations numbers, in alphabetical order of their ids and labels."""
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
    arguments: dict[str, Any],
    options: TrainingOptions,
    working: Path,
    on_epoch: Callable[[int, int, float], None],
    *,
    evaluated: bool,
) -> Any:
    """Run PyKEEN's pipeline and return its result."""
    load_pykeen()
    from pykeen.pipeline import pipeline
    from pykeen.training.training_loop import NonFiniteLossError

    parts = {split: numbers.triples[numbers.triples[:, 3] == place, :3] for place, split in enumerate(SPLITS)}
    if not len(parts[TRAIN]):
        raise SettingsError("There are no train triples. Build the graph first, or name a file in kg.triples.")
    sizes = len(numbers.entity_ids), len(numbers.relations)
    training = make_factory(parts[TRAIN], *sizes, inverse=options.inverse_triples)
    validation, testing = (make_factory(parts[s], *sizes, inverse=False) if len(parts[s]) else None for s in (VALIDATION, TEST))
    testing = testing or validation  # a folder without test.txt
    if not evaluated:  # the pipeline insists on test triples; one is enough where the metrics are not used
        validation, testing = None, make_factory(parts[TRAIN][:1], *sizes, inverse=False)
    rest = {name: value for name, value in arguments.items() if name not in _MODEL_ARGUMENTS}
    training_kwargs = {**rest.pop("training_kwargs")}
    # Where a model normalises by batch, PyKEEN drops a last batch that is not full, even if it is the only one.
    training_kwargs["batch_size"] = min(training_kwargs["batch_size"], _instances(parts[TRAIN], arguments, options))
    training_kwargs["callbacks"] = _listener(on_epoch, training_kwargs["num_epochs"], working / _BEST)
    # PyKEEN makes this folder even if it saves nothing there, by default in the home folder. Named checkpoints survive a kill.
    kept = working.parent if training_kwargs.get("checkpoint_name") else working
    training_kwargs.setdefault("checkpoint_directory", str(kept / _CHECKPOINTS))
    if rest.get("stopper"):
        rest = _with_stopper(rest, working, validation is not None)
    evaluation_kwargs = {"batch_size": _evaluation_batch(numbers, arguments), **(rest.pop("evaluation_kwargs", None) or {})}
    try:
        model = make_model(arguments, training, options.seed)
        with quiet(), _frozen_garbage_collector():
            return pipeline(
                **rest,
                model=model,
                training=training,
                validation=validation,
                testing=testing,
                training_kwargs=training_kwargs,
                evaluation_kwargs=evaluation_kwargs,
                random_seed=options.seed,
                device=options.device,
                use_tqdm=False,
            )
    except (TypeError, ValueError, KeyError, NotImplementedError, RuntimeError) as error:
        if isinstance(error, NonFiniteLossError):
            raise SettingsError(
                f"The training of {options.model} diverged: its loss is not a number. "
                f"kg.learning_rate is {options.learning_rate}. Lower it."
            ) from error
        reason = f"{type(error).__name__}: {error}"
        raise SettingsError(
            f"PyKEEN can't train {options.model} with these options ({reason}). Correct the section kg in project.yaml."
        ) from error


@contextmanager
def _frozen_garbage_collector() -> Iterator[None]:
    """Keep what is loaded now out of garbage collection: PyKEEN collects after every epoch, at some cost."""
    import torch._dynamo  # noqa: F401  (optimizers import it when they are made)

    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _with_stopper(options: dict[str, Any], working: Path, has_validation: bool) -> dict[str, Any]:
    """Arguments for early stopping, by default on the validation MRR; none of them if there are no validation triples."""
    rest = {name: value for name, value in options.items() if name not in ("stopper", "stopper_kwargs")}
    if not has_validation:
        return rest
    stopper_arguments = {
        "metric": f"both.realistic.{MRR}",
        "larger_is_better": True,
        "best_model_path": working / _BEST,
        **(options.get("stopper_kwargs") or {}),
    }
    return {**rest, "stopper": options["stopper"], "stopper_kwargs": stopper_arguments}


def _instances(train: np.ndarray, arguments: Mapping[str, Any], options: TrainingOptions) -> int:
    """Training instances of an epoch: triples, or with lcwa pairs of an entity and a relation; twice with inverse triples."""
    if training_loop(arguments) == "slcwa":
        return len(train) * (2 if options.inverse_triples else 1)
    ends = ([0, 1], [2, 1]) if options.inverse_triples else ([0, 1],)
    return sum(len(np.unique(train[:, pair], axis=0)) for pair in ends)


def _listener(on_epoch: Callable[[int, int, float], None], epochs: int, best: Path) -> Any:
    import torch
    from pykeen.training.callbacks import TrainingCallback

    class Listener(TrainingCallback):  # type: ignore[misc]
        def post_epoch(self, epoch: int, epoch_loss: float, **kwargs: Any) -> None:
            on_epoch(epoch, epochs, epoch_loss)

        def post_train(self, losses: list[float], **kwargs: Any) -> None:
            # PyKEEN restores the best weights only if it stops early, not if it runs through all epochs.
            if best.exists():
                self.model.load_state_dict(torch.load(best, weights_only=True))

    return Listener()


def _evaluation_batch(numbers: Numbers, arguments: Mapping[str, Any]) -> int:
    """Triples to evaluate at once: each is scored against all entities, and some models make a vector for each pair."""
    dimension = arguments["model_kwargs"].get("embedding_dim") or 128
    return max(1, min(256, _MAX_SCORES_PER_BATCH // (2 * max(1, len(numbers.entity_ids)) * int(dimension))))


def _finite_metrics(results: Any) -> dict[str, float]:
    """Every metric by "side.type.name", without those that are not finite, as happens with few triples."""
    return {name: float(value) for name, value in results.to_flat_dict().items() if math.isfinite(value)}


def _calibrations(model: Any, numbers: Numbers, seed: int) -> tuple[Calibration, Calibration]:
    """Calibrate the scores of tails and of heads, on validation and test triples if there are any, else on train triples."""
    random = np.random.default_rng(seed)
    held_out = numbers.triples[numbers.triples[:, 3] > 0, :3]
    true = held_out if len(held_out) else numbers.triples[:, :3]
    true = true[random.permutation(len(true))[:_CALIBRATION_TRIPLES]]
    known = {tuple(row) for row in numbers.triples[:, :3].tolist()}
    calibrations = []
    for column, heads in ((2, False), (0, True)):
        corrupted = np.tile(true, (max(1, min(10, 1000 // len(true))), 1))
        corrupted[:, column] = random.integers(0, len(numbers.entity_ids), len(corrupted))
        corrupted = corrupted[[tuple(row) not in known for row in corrupted.tolist()]]
        calibrations.append(calibrate(raw_scores(model, true, heads=heads), raw_scores(model, corrupted, heads=heads)))
    return calibrations[0], calibrations[1]
