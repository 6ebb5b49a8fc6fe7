"""Options of the embedders."""

from typing import Literal

from pydantic import PositiveInt

from resources.options import Options


class SentenceTransformerOptions(Options):
    backend: Literal["sentence_transformer"] = "sentence_transformer"
    model: str = "all-MiniLM-L6-v2"
    batch_size: PositiveInt = 32
    device: str = "cpu"
