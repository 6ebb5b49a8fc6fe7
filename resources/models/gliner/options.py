"""Options of the GLiNER extractors."""

from typing import Annotated

from pydantic import Field, PositiveInt

from resources.models.folders import ModelName
from resources.options import Options

Threshold = Annotated[float, Field(ge=0, lt=1)]
"""A score that results must exceed; none exceeds 1."""


class GlinerOptions(Options):
    """What both extractors take."""

    model: ModelName = Field(description="Folder or Hugging Face id (owner/name) of a GLiNER checkpoint.")
    batch_size: PositiveInt = Field(default=8, description="Windows of text in one forward pass.")
    labels_per_pass: PositiveInt = Field(
        default=8, description="Labels in one prompt. More labels are spread over several passes."
    )
    device: str = Field(default="cpu", min_length=1, description='Device as torch names it, such as "cpu" or "cuda:0".')


class GlinerEntityOptions(GlinerOptions):
    """Entities by GLiNER."""

    model: ModelName = Field(
        default="urchade/gliner_multi-v2.1", description="Folder or Hugging Face id (owner/name) of any GLiNER checkpoint."
    )
    threshold: Threshold = Field(default=0.5, description="Least score of an entity.")
    flat_ner: bool = Field(
        default=True, description="Keep only the best of overlapping entities. false: one may lie inside another."
    )
    window_words: PositiveInt | None = Field(
        default=None,
        description="Words up to which whole sentences share a window; 1 reads each sentence alone, which suits small models. "
        "Default: a third of what the model reads.",
    )


class GlinerRelationOptions(GlinerOptions):
    """Relations by GLiNER. Where GLiNER extracts the entities too, ``threshold`` and ``flat_ner`` are taken from there."""

    model: ModelName = Field(
        default="knowledgator/gliner-relex-large-v0.5",
        description="Folder or Hugging Face id (owner/name) of a GLiNER checkpoint with a relation layer (relex).",
    )
    relation_threshold: Threshold = Field(default=0.55, description="Least score of a relation.")
    max_entities: int = Field(
        default=30,
        ge=2,
        description="Entities of a window between which relations are scored: the best ones, every ordered pair.",
    )
    window_words: PositiveInt | None = Field(
        default=None, description="Words up to which whole sentences share a window. Default: as for the entities."
    )
