"""From training options to the arguments of PyKEEN's pipeline."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from resources.errors import SettingsError
from retrico_assets.kg.options import TrainingOptions
from retrico_assets.kg.pykeen import check_pipeline, find_part, takes_argument

_SET_ELSEWHERE = {
    **dict.fromkeys(("training", "validation", "testing", "dataset", "dataset_kwargs"), "Set kg.triples instead."),
    "model": "Set kg.model instead.",
    "epochs": "Set kg.epochs instead.",
    "random_seed": "Set kg.seed instead.",
    "device": "Set kg.device instead.",
    "use_tqdm": "Remove it: progress is in the log of the run.",
    "use_testing_data": "Remove it: the test triples are always used.",
    "metadata": "Remove it: nothing reads it.",
}


def model_fingerprint(options: TrainingOptions, triples_fingerprint: str) -> str:
    """Identify a model by its training options and the fingerprint of its triples. 16 hex digits."""
    values = options.model_dump(include=set(TrainingOptions.model_fields))
    text = json.dumps({**values, "triples": triples_fingerprint}, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def pipeline_arguments(options: TrainingOptions) -> dict[str, Any]:
    """The arguments of PyKEEN's pipeline.

    Raises:
        SettingsError: ``pipeline`` names something that PyKEEN doesn't have, or a value is out of range.
    """
    check_pipeline(options.pipeline, _SET_ELSEWHERE)
    arguments: dict[str, Any] = {
        name: dict(value) if isinstance(value, Mapping) else value for name, value in options.pipeline.items()
    }
    _add_model(arguments, options)
    arguments.setdefault("optimizer_kwargs", {}).setdefault("lr", options.learning_rate)
    _add_training(arguments, options)
    if options.negatives is not None:
        if training_loop(arguments) != "slcwa":
            raise SettingsError(
                f"kg.negatives is {options.negatives}, but the training loop lcwa compares with all other entities. "
                "Remove kg.negatives, or use the training loop slcwa."
            )
        arguments.setdefault("negative_sampler_kwargs", {}).setdefault("num_negs_per_pos", options.negatives)
    return arguments


def training_loop(arguments: Mapping[str, Any]) -> str:
    """The name of the training loop, in lower case."""
    return str(arguments.get("training_loop") or "slcwa").lower()


def _add_model(arguments: dict[str, Any], options: TrainingOptions) -> None:
    model_arguments = arguments.setdefault("model_kwargs", {})
    if arguments.get("interaction") is not None:
        arguments.setdefault("dimensions", options.embedding_dim)
        return
    arguments["model"] = options.model
    if options.embedding_dim is not None and takes_argument(find_part("model", options.model), "embedding_dim"):
        model_arguments.setdefault("embedding_dim", options.embedding_dim)


def _add_training(arguments: dict[str, Any], options: TrainingOptions) -> None:
    training = arguments.setdefault("training_kwargs", {})
    training.setdefault("num_epochs", options.epochs)
    training.setdefault("batch_size", options.batch_size)
    training.setdefault("pin_memory", options.device != "cpu")
    for name in ("num_epochs", "batch_size"):
        if not isinstance(training[name], int) or training[name] < 1:
            raise SettingsError(
                f"kg.pipeline.training_kwargs.{name} is {training[name]!r}. It must be a whole number greater than 0."
            )
