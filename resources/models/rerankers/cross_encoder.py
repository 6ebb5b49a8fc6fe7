"""Reranks with a cross-encoder, which reads question and text together."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from resources.errors import ExtractionError
from resources.models.loading import load_model
from resources.models.rerankers.base import Reranker
from resources.models.rerankers.options import CrossEncoderOptions
from resources.text.characters import storable

_SETTING = "query.reranker.model in project.yaml"
_REMEDY = (
    "Set it to a folder with a cross-encoder or to the id of one on Hugging Face, such as cross-encoder/ms-marco-MiniLM-L6-v2."
)


class CrossEncoderReranker(Reranker):
    """A sentence-transformers CrossEncoder, loaded by its first use and shared inside the process.

    Slow and good: some milliseconds a text on a CPU. Of a text that is longer than the model reads, the beginning counts.
    """

    options = CrossEncoderOptions
    requires = ("sentence_transformers",)

    def __init__(self, options: CrossEncoderOptions) -> None:
        self._settings = options

    @property
    def name(self) -> str:
        model = self._settings.model
        return Path(model).name if Path(model).is_dir() else model

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        if not texts:
            return []
        encoder = load_model(_open, self._settings.model, self._settings.device, _SETTING, _REMEDY)
        pairs = [(storable(question, "?"), storable(text, "?")) for text in texts]
        # predict() sorts by length itself, so that a batch holds little padding.
        scores = np.asarray(encoder.predict(pairs, batch_size=self._settings.batch_size, show_progress_bar=False), np.float64)
        if scores.shape != (len(texts),):
            raise ExtractionError(f"{self.name!r} gives {scores.shape[-1]} scores for each text: it is a classifier. {_REMEDY}")
        if not np.isfinite(scores).all():
            raise ExtractionError(f"{self.name!r} gives scores that are not numbers: its weights are damaged. {_REMEDY}")
        return [float(score) for score in scores]


def _open(model: str, device: str, local_files_only: bool) -> Any:
    from sentence_transformers import CrossEncoder

    encoder = CrossEncoder(model, device=device, local_files_only=local_files_only)
    # Or "[SEP]" in a text would be the token that separates it from the question.
    encoder.tokenizer.split_special_tokens = True
    return encoder
