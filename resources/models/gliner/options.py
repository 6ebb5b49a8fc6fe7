"""Options of the GLiNER extractors."""

from typing import Literal

from pydantic import PositiveInt

from resources.options import Options, Score


class GlinerEntityOptions(Options):
    backend: Literal["gliner"] = "gliner"
    model: str = "urchade/gliner_multi-v2.1"
    threshold: Score = 0.5
    flat_ner: bool = True
    batch_size: PositiveInt = 8
    labels_per_pass: PositiveInt = 8
    window_words: PositiveInt | None = None
    device: str = "cpu"


class GlinerRelationOptions(Options):
    backend: Literal["gliner"] = "gliner"
    model: str = "knowledgator/gliner-relex-large-v0.5"
    relation_threshold: Score = 0.55
    batch_size: PositiveInt = 8
    labels_per_pass: PositiveInt = 8
    max_entities: PositiveInt = 30
    window_words: PositiveInt | None = None
    device: str = "cpu"
