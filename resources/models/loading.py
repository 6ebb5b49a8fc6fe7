"""Loads models: once a process, from a folder, the local cache of Hugging Face, or its hub."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from resources.errors import ExtractionError

HUB_TIMEOUT_SECONDS = 5
"""A hub that can't be reached is reported within seconds, not after the retries of each file."""

Model = TypeVar("Model")

_loaded: dict[tuple[Callable[..., Any], str, str], Any] = {}
_loading = threading.Lock()


def load_model(open_model: Callable[[str, str, bool], Model], model: str, device: str, setting: str, remedy: str) -> Model:
    """Load a model, or return it if this process has loaded it before.

    ``open_model`` is a module's function, called as ``open_model(model, device, local_files_only)``. A model that is in the
    local cache is taken from there: no network, and no change of the model between two builds. ``setting`` is the key of
    project.yaml and ``remedy`` the advice for the error's message.

    Raises:
        ExtractionError: the model can't be loaded. The message names the setting, the cause and the remedy.
    """
    key = open_model, model, device
    with _loading:
        if key not in _loaded:
            try:
                _loaded[key] = _open(open_model, model, device)
            except Exception as error:  # whatever torch, transformers and the hub raise: a user can change the setting
                raise ExtractionError(f"{setting} is {model!r}. {_cause(model, error)} {remedy}") from error
        return _loaded[key]


def _open(open_model: Callable[[str, str, bool], Model], model: str, device: str) -> Model:
    os.environ.setdefault("HF_HUB_ETAG_TIMEOUT", str(HUB_TIMEOUT_SECONDS))
    _hide_loading_bars()
    try:
        return open_model(model, device, True)
    except OSError:
        if Path(model).is_dir():
            raise
    from huggingface_hub import HfApi

    HfApi().model_info(model, timeout=HUB_TIMEOUT_SECONDS)
    return open_model(model, device, False)


def _hide_loading_bars() -> None:
    """Reading weights from disk takes a moment, and its bar would break into the bars of a build."""
    from transformers.utils import logging

    logging.disable_progress_bar()


def _cause(model: str, error: Exception) -> str:
    lines = str(error).strip().splitlines()
    reason = f"{type(error).__name__}: {lines[0]:.200}" if lines else type(error).__name__
    if Path(model).is_dir():
        return f"The folder could not be loaded ({reason})."
    return f"It is not in the local cache and could not be downloaded from Hugging Face ({reason})."
