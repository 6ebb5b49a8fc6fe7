"""Models by few words."""

from typing import Any

from resources.models.embedders.options import SentenceTransformerOptions
from resources.models.embedders.sentence_transformer import SentenceTransformerEmbedder
from resources.models.gliner.extractors import GlinerEntityExtractor, GlinerRelationExtractor
from resources.models.gliner.options import GlinerEntityOptions, GlinerRelationOptions
from resources.models.rerankers.cross_encoder import CrossEncoderReranker
from resources.models.rerankers.options import CrossEncoderOptions


def entity_extractor(model: str, labels: list[str], **options: Any) -> GlinerEntityExtractor:
    return GlinerEntityExtractor(GlinerEntityOptions.parse({"model": model, **options}, "models.entities"), labels)


def relation_extractor(model: str, labels: list[str], relations: list[str], **options: Any) -> GlinerRelationExtractor:
    """A relation extractor beside an entity extractor of the same model; options that both have go to both."""
    shared = {name: options.pop(name) for name in ("threshold", "flat_ner") if name in options}
    entity_options = GlinerEntityOptions.parse({"model": model, **shared}, "models.entities")
    return GlinerRelationExtractor(
        GlinerRelationOptions.parse({"model": model, **options}, "models.relations"), labels, relations, entity_options
    )


def sentence_embedder(model: str = "all-MiniLM-L6-v2", **options: Any) -> SentenceTransformerEmbedder:
    return SentenceTransformerEmbedder(SentenceTransformerOptions.parse({"model": model, **options}, "models.embedder"))


def cross_encoder(model: str, **options: Any) -> CrossEncoderReranker:
    return CrossEncoderReranker(CrossEncoderOptions.parse({"model": model, **options}, "query.reranker"))
