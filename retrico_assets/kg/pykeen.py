"""PyKEEN as this project uses it: parts by name, and no files in the user's home folder."""

import difflib
import inspect
import logging
import os
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from resources.errors import SettingsError

_HOMES = ("PYKEEN_HOME", "PYSTOW_HOME")

_PARTS = {
    "model": ("pykeen.models", "model_resolver"),
    "interaction": ("pykeen.nn.modules", "interaction_resolver"),
    "loss": ("pykeen.losses", "loss_resolver"),
    "regularizer": ("pykeen.regularizers", "regularizer_resolver"),
    "optimizer": ("pykeen.optimizers", "optimizer_resolver"),
    "lr_scheduler": ("pykeen.lr_schedulers", "lr_scheduler_resolver"),
    "training_loop": ("pykeen.training", "training_loop_resolver"),
    "negative_sampler": ("pykeen.sampling", "negative_sampler_resolver"),
    "stopper": ("pykeen.stoppers", "stopper_resolver"),
    "evaluator": ("pykeen.evaluation", "evaluator_resolver"),
}
"""Arguments of the pipeline that name a part of PyKEEN: the module and the resolver that knows the names."""


@cache
def load_pykeen() -> None:
    """Import PyKEEN, which takes seconds. The folders that it makes on import are temporary here."""
    if any(name in os.environ for name in _HOMES):
        import pykeen.pipeline
    else:
        with tempfile.TemporaryDirectory() as folder, _environment("PYSTOW_HOME", folder):
            import pykeen.pipeline  # noqa: F401


@contextmanager
def quiet() -> Iterator[None]:
    """Keep messages of PyKEEN and torch for their developers out of the log."""
    loggers = [logging.getLogger(name) for name in ("pykeen", "torch_max_mem", "torch_max_mem.api")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def find_part(option: str, name: Any) -> Any:
    """Find the PyKEEN class that an argument such as ``model`` or ``loss`` names.

    Raises:
        SettingsError: PyKEEN has no such class. The message lists similar names.
    """
    from importlib import import_module

    load_pykeen()
    module, attribute = _PARTS[option]
    resolver = getattr(import_module(module), attribute)
    try:
        return resolver.lookup(name)
    except (KeyError, TypeError, ValueError):
        known = sorted(resolver.lookup_dict)
        similar = difflib.get_close_matches(str(name).lower(), known, 5, 0.5)
        hint = f"Similar names: {', '.join(similar)}." if similar else f"Known names: {', '.join(known)}."
        raise SettingsError(f"kg: PyKEEN has no {option} named {name!r}. {hint}") from None


def check_pipeline(arguments: Mapping[str, Any], set_elsewhere: Mapping[str, str]) -> None:
    """Check arguments of PyKEEN's pipeline.

    Raises:
        SettingsError: PyKEEN doesn't have an argument or a name, or an argument is in ``set_elsewhere``, which holds remedies.
    """
    load_pykeen()
    from pykeen.pipeline import pipeline

    known = sorted(set(inspect.signature(pipeline).parameters) - set_elsewhere.keys())
    for name, value in arguments.items():
        if name in set_elsewhere:
            raise SettingsError(f"kg.pipeline sets {name}. {set_elsewhere[name]}")
        if name not in known:
            similar = difflib.get_close_matches(name, known, 3)
            hint = f"Did you mean {' or '.join(similar)}?" if similar else f"Known arguments: {', '.join(known)}."
            raise SettingsError(f"kg.pipeline sets {name!r}, which PyKEEN's pipeline doesn't have. {hint}")
        if name.endswith("_kwargs") and not isinstance(value, Mapping):
            raise SettingsError(f"kg.pipeline.{name} is {value!r}. It must be names and values.")
        if name in _PARTS and value is not None:
            find_part(name, value)


def make_factory(triples: np.ndarray, entities: int, relations: int, *, inverse: bool) -> Any:
    """Make PyKEEN's triples factory from triples (n, 3) of numbers; the numbers also serve as names."""
    load_pykeen()
    from pykeen.triples import TriplesFactory

    return TriplesFactory(
        np.ascontiguousarray(triples, dtype=np.int64),
        entity_to_id={str(number): number for number in range(entities)},
        relation_to_id={str(number): number for number in range(relations)},
        create_inverse_triples=inverse,
    )


def make_model(arguments: Mapping[str, Any], factory: Any, seed: int) -> Any:
    """Make a model with fresh weights from those pipeline arguments that define a model.

    Training and loading both use this function, so that weights always fit the model they are loaded into.
    """
    from pykeen.losses import loss_resolver
    from pykeen.models import make_model_cls
    from pykeen.regularizers import regularizer_resolver

    model_arguments = dict(arguments.get("model_kwargs") or {})
    if arguments.get("interaction") is not None:
        model_class = make_model_cls(arguments["dimensions"], arguments["interaction"], arguments.get("interaction_kwargs"))
    else:
        model_class = find_part("model", arguments["model"])
    if arguments.get("loss") is not None:
        model_arguments["loss"] = loss_resolver.make(arguments["loss"], arguments.get("loss_kwargs"))
    elif arguments.get("loss_kwargs"):
        model_arguments["loss"] = loss_resolver.make(model_class.loss_default, arguments["loss_kwargs"])
    if arguments.get("regularizer") is not None:
        model_arguments["regularizer"] = regularizer_resolver.make(arguments["regularizer"], arguments.get("regularizer_kwargs"))
    elif arguments.get("regularizer_kwargs"):
        model_arguments["regularizer_kwargs"] = arguments["regularizer_kwargs"]
    with quiet():
        return model_class(triples_factory=factory, random_seed=seed, **model_arguments)


def takes_argument(model: Any, argument: str) -> bool:
    """Whether the constructor of a model's class has this argument."""
    return argument in inspect.signature(model.__init__).parameters


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]
