"""Stores and models as Dagster resources: typed configuration, and nothing open before it is asked for.

A step opens what it needs with ``with store.connect() as ...``, so that a connection lives exactly as long as its user,
whatever ends the step. Loaded models are shared inside a process by the models themselves.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import Field

from resources.graph.base import GraphStore
from resources.models.base import EntityExtractor, RelationExtractor
from resources.models.embedders.sentence_transformer import Embedder, SentenceTransformerEmbedder
from resources.models.gliner.extractors import GlinerEntityExtractor, GlinerRelationExtractor
from resources.models.llm.client import ChatModel, LLMOptions
from resources.models.rerankers.cross_encoder import CrossEncoderReranker, EmbedderReranker, Reranker
from resources.store_sections import GraphStoreBackend, TextStoreBackend, VectorStoreBackend
from resources.texts.base import TextStore
from resources.vectors.base import VectorStore


class GraphStoreResource(dg.ConfigurableResource):
    """The graph store: a backend, its options, and the folder of its files."""

    backend: str
    options: dict[str, Any] = Field(default={}, description="The backend's own options.")
    folder: str

    def connect(self) -> GraphStore:
        """Open the store, to be closed after use."""
        section = GraphStoreBackend.parse({"backend": self.backend, **self.options}, "stores.graph")
        return section.open(Path(self.folder))


class VectorStoreResource(dg.ConfigurableResource):
    """The vector store: a backend, its options, and the folder of its files."""

    backend: str
    options: dict[str, Any] = Field(default={}, description="The backend's own options.")
    folder: str

    def connect(self) -> VectorStore:
        """Open the store, to be closed after use."""
        section = VectorStoreBackend.parse({"backend": self.backend, **self.options}, "stores.vectors")
        return section.open(Path(self.folder))


class TextStoreResource(dg.ConfigurableResource):
    """The text store: a backend, its options, and the folder of its files."""

    backend: str
    options: dict[str, Any] = Field(default={}, description="The backend's own options.")
    folder: str

    def connect(self) -> TextStore:
        """Open the store, to be closed after use."""
        section = TextStoreBackend.parse({"backend": self.backend, **self.options}, "stores.texts")
        return section.open(Path(self.folder))


class ModelsResource(dg.ConfigurableResource):
    """The models of the project. Secrets are names of environment variables, never values."""

    entity_labels: list[str]
    relation_labels: list[str]
    entities: dict[str, Any]
    relations: dict[str, Any] | None = None
    embedding: dict[str, Any]
    chat: dict[str, Any] | None = Field(default=None, description="LLMOptions of the chat model.")
    chat_cache: str | None = Field(default=None, description="The file that keeps replies of the chat model.")
    reranking: dict[str, Any] | None = None

    def entity_extractor(self, labels: Sequence[str] | None = None, threshold: float | None = None) -> EntityExtractor:
        """The entity extractor, with other labels or another threshold for one run if given."""
        options = self.entities | ({} if threshold is None else {"threshold": threshold})
        return GlinerEntityExtractor(labels=labels or self.entity_labels, **options)

    def relation_extractor(
        self,
        labels: Sequence[str] | None = None,
        entity_labels: Sequence[str] | None = None,
        threshold: float | None = None,
        relation_threshold: float | None = None,
    ) -> RelationExtractor | None:
        """The relation extractor, with other labels or thresholds for one run if given; None if no relations are asked for."""
        labels = self.relation_labels if labels is None else labels
        if self.relations is None or not labels:
            return None
        options = dict(self.relations)
        # What both read the text with is said once, for the entities: otherwise one pass could not serve both.
        options["flat_ner"] = self.entities["flat_ner"]
        options["threshold"] = self.entities["threshold"] if threshold is None else threshold
        options.setdefault("window_words", self.entities.get("window_words"))
        if relation_threshold is not None:
            options["relation_threshold"] = relation_threshold
        return GlinerRelationExtractor(entity_labels=entity_labels or self.entity_labels, relation_labels=labels, **options)

    def embedder(self) -> Embedder:
        return SentenceTransformerEmbedder(**self.embedding)

    @property
    def context_tokens(self) -> int:
        """Tokens of evidence that the chat model is shown."""
        return int((self.chat or {}).get("context_tokens", LLMOptions.model_fields["context_tokens"].default))

    def llm(self) -> ChatModel | None:
        """The chat model, to be closed after use; None if the project names none."""
        return ChatModel(LLMOptions.parse(self.chat, "models.llm"), self.chat_cache) if self.chat else None

    def reranker(self) -> Reranker | None:
        """What puts the best chunks in order; None if the project names none."""
        if self.reranking is None:
            return None
        if self.reranking["backend"] == "embedder":
            return EmbedderReranker(self.embedder())
        return CrossEncoderReranker(**{name: value for name, value in self.reranking.items() if name != "backend"})
