"""PyKEEN as this project uses it: found by name, and without a trace in the user's home."""

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
"""Options of the pipeline that name a part of PyKEEN, and where such names are looked up."""


@cache
def load_pykeen() -> None:
    """Import PyKEEN. Costs seconds; it makes folders when it is imported, which are gone afterwards."""
    if any(name in os.environ for name in _HOMES):
        import pykeen.pipeline
    else:
        with tempfile.TemporaryDirectory() as folder, _environment("PYSTOW_HOME", folder):
            import pykeen.pipeline  # noqa: F401


@contextmanager
def quiet() -> Iterator[None]:
    """Keep what PyKEEN and torch tell developers out of a run's log."""
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
    """The class of PyKEEN that an option such as ``model`` or ``loss`` names. SettingsError, with near names, for none."""
    from importlib import import_module

    load_pykeen()
    module, attribute = _PARTS[option]
    resolver = getattr(import_module(module), attribute)
    try:
        return resolver.lookup(name)
    except (KeyError, TypeError, ValueError):
        known = sorted(resolver.lookup_dict)
        near = difflib.get_close_matches(str(name).lower(), known, 5, 0.5)
        hint = f"near ones are: {', '.join(near)}" if near else f"known are: {', '.join(known)}"
        raise SettingsError(f"PyKEEN has no {option} called {name!r}; {hint}") from None


def check_pipeline(options: Mapping[str, Any], ours: Mapping[str, str]) -> None:
    """SettingsError for options and names that PyKEEN doesn't have, and for those in ``ours``, which says what to use instead."""
    load_pykeen()
    from pykeen.pipeline import pipeline

    known = sorted(set(inspect.signature(pipeline).parameters) - ours.keys())
    for option, value in options.items():
        if option in ours:
            raise SettingsError(f"kg.pipeline sets {option}; {ours[option]}")
        if option not in known:
            near = difflib.get_close_matches(option, known, 3)
            hint = f"did you mean {' or '.join(near)}?" if near else f"known are: {', '.join(known)}"
            raise SettingsError(f"kg.pipeline sets {option!r}, which PyKEEN's pipeline does not have; {hint}")
        if option.endswith("_kwargs") and not isinstance(value, Mapping):
            raise SettingsError(f"kg.pipeline.{option} must be names and values, not {value!r}")
        if option in _PARTS and value is not None:
            find_part(option, value)


def make_factory(triples: np.ndarray, entities: int, relations: int, *, inverse: bool) -> Any:
    """PyKEEN's form of triples (n, 3) of numbers, the numbers standing for names as well."""
    load_pykeen()
    from pykeen.triples import TriplesFactory

    return TriplesFactory(
        np.ascontiguousarray(triples, dtype=np.int64),
        entity_to_id={str(number): number for number in range(entities)},
        relation_to_id={str(number): number for number in range(relations)},
        create_inverse_triples=inverse,
    )


def make_model(options: Mapping[str, Any], factory: Any, seed: int) -> Any:
    """A model with fresh weights, made of those ``options`` of the pipeline that say what it is.

    Training and loading both make it here, so that weights always meet the model that they were trained in.
    """
    from pykeen.losses import loss_resolver
    from pykeen.models import make_model_cls
    from pykeen.regularizers import regularizer_resolver

    arguments = dict(options.get("model_kwargs") or {})
    if options.get("interaction") is not None:
        kind = make_model_cls(options["dimensions"], options["interaction"], options.get("interaction_kwargs"))
    else:
        kind = find_part("model", options["model"])
    if options.get("loss") is not None:
        arguments["loss"] = loss_resolver.make(options["loss"], options.get("loss_kwargs"))
    elif options.get("loss_kwargs"):
        arguments["loss"] = loss_resolver.make(kind.loss_default, options["loss_kwargs"])
    if options.get("regularizer") is not None:
        arguments["regularizer"] = regularizer_resolver.make(options["regularizer"], options.get("regularizer_kwargs"))
    elif options.get("regularizer_kwargs"):
        arguments["regularizer_kwargs"] = options["regularizer_kwargs"]
    with quiet():
        return kind(triples_factory=factory, random_seed=seed, **arguments)


def takes(model: Any, argument: str) -> bool:
    """Whether a model's class has an argument of that name."""
    return argument in inspect.signature(model.__init__).parameters


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]
