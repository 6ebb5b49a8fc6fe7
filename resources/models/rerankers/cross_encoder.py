"""Models that say how well a text answers a question, so that a short ranking can be put in a better order."""

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from resources.errors import ExtractionError, SettingsError
from resources.models.embedders.sentence_transformer import Embedder
from resources.models.loading import hide_loading_bars

_SETTING = "query.reranker.model in project.yaml"
_REMEDY = "Name a hub id (such as cross-encoder/ms-marco-MiniLM-L6-v2) or a folder with a cross-encoder."
_loaded: dict[tuple[str, str | None], Any] = {}
_loading = threading.Lock()


class Reranker(ABC):
    """What compares a question with texts."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What a result says of it: the model's name. Known without loading the model."""

    @abstractmethod
    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """How well each text answers, in their order: finite, larger is better. RetricoError if the model can't say."""


class CrossEncoderReranker(Reranker):
    """A sentence-transformers CrossEncoder by hub id or folder, loaded by the first use and shared inside the process.

    Question and text are read together, which is slow and good: some milliseconds a text on a CPU. Of a text that is longer
    than the model reads, the beginning counts. ``device`` None takes the best there is.
    """

    def __init__(self, model: str, *, device: str | None = None, batch_size: int = 32) -> None:
        if not model.strip():
            raise SettingsError(f"{_SETTING} is empty. {_REMEDY}")
        if batch_size < 1:
            raise SettingsError(f"query.reranker.batch_size in project.yaml is {batch_size}; it must be 1 or more")
        self._model = model
        self._device = device
        self._batch_size = batch_size

    @property
    def name(self) -> str:
        return Path(self._model).name if Path(self._model).is_dir() else self._model

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        if not texts:
            return []
        pairs = [(_encodable(question), _encodable(text)) for text in texts]
        # predict() sorts by length itself, so that a batch holds little padding.
        found = np.asarray(self._encoder().predict(pairs, batch_size=self._batch_size, show_progress_bar=False), np.float64)
        if found.shape != (len(texts),):
            raise ExtractionError(f"{self.name!r} gives {found.shape[-1]} scores a text: it is a classifier. {_REMEDY}")
        if not np.isfinite(found).all():
            raise ExtractionError(f"{self.name!r} gives scores that are no numbers: its weights are damaged. {_REMEDY}")
        return [float(score) for score in found]

    def _encoder(self) -> Any:
        folder = Path(self._model)
        key = (str(folder.resolve()) if folder.is_dir() else self._model, self._device)
        with _loading:
            if key not in _loaded:
                _loaded[key] = _load(*key)
            return _loaded[key]


class EmbedderReranker(Reranker):
    """Cosine similarity of the question and each text: no model beside the embedder, and no more than the embedder knows."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def name(self) -> str:
        return self._embedder.name

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        if not texts:
            return []
        vectors = self._embedder.embed([question, *texts])
        return [float(score) for score in vectors[1:] @ vectors[0]]


def _load(model: str, device: str | None) -> Any:
    is_folder = Path(model).is_dir()
    if not is_folder and (model.startswith((".", "/", "~")) or model.count("/") != 1):
        raise ExtractionError(f"{_SETTING} is {model!r}: there is no such folder, and no hub id looks so. {_REMEDY}")
    os.environ.setdefault("HF_HUB_ETAG_TIMEOUT", "5")
    try:
        from sentence_transformers import CrossEncoder

        hide_loading_bars()
        try:  # a model in the hub's cache is taken from there: no network, and no change between two questions
            encoder = CrossEncoder(model, device=device, local_files_only=True)
        except OSError:
            if is_folder:
                raise
            encoder = CrossEncoder(model, device=device)
        encoder.tokenizer.split_special_tokens = True  # or "[SEP]" in a text would be the token that parts it from the question
    except Exception as error:  # whatever torch, transformers and the hub raise: a user can change the setting
        where = "the folder can't be loaded" if is_folder else "it is in no local cache and the hub did not give it"
        reason = (str(error).strip().splitlines() or [""])[0]
        raise ExtractionError(f"{_SETTING} is {model!r}: {where} ({type(error).__name__}: {reason:.200}). {_REMEDY}") from error
    return encoder


def _encodable(text: str) -> str:
    """Lone surrogates, which no tokenizer takes, as question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")
