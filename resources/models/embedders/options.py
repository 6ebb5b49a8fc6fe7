"""Options of the embedders."""

from pydantic import Field, PositiveInt

from resources.models.folders import SentenceTransformerName
from resources.options import Options


class SentenceTransformerOptions(Options):
    """A sentence-transformers model."""

    model: SentenceTransformerName = Field(
        default="all-MiniLM-L6-v2",
        description="Folder or Hugging Face id of a sentence-transformers model. The owner sentence-transformers is optional.",
    )
    batch_size: PositiveInt = Field(default=32, description="Texts in one forward pass.")
    device: str = Field(default="cpu", min_length=1, description='Device as torch names it, such as "cpu" or "cuda:0".')
