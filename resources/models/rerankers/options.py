"""Options of the rerankers."""

from pydantic import Field, PositiveInt

from resources.models.folders import ModelName
from resources.options import Options


class CrossEncoderOptions(Options):
    """A sentence-transformers cross-encoder."""

    model: ModelName = Field(
        description="Folder or Hugging Face id (owner/name) of a cross-encoder, such as cross-encoder/ms-marco-MiniLM-L6-v2."
    )
    batch_size: PositiveInt = Field(default=32, description="Pairs of question and text in one forward pass.")
    device: str = Field(default="cpu", min_length=1, description='Device as torch names it, such as "cpu" or "cuda:0".')
