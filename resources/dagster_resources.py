"""Stores and models as Dagster resources: typed configuration, and nothing open before it is asked for.

A step opens what it needs with ``with store.connect() as ...``, so that a connection lives exactly as long as its user,
whatever ends the step. Loaded models are shared inside a process by the models themselves.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import Field

from resources.errors import SettingsError
from resources.graph.base import GraphStore
from resources.models.base import EntityExtractor, RelationExtractor
from resources.models.embedders.base import Embedder
from resources.models.llm.client import ChatModel, LLMOptions
from resources.models.rerankers.base import Reranker
from resources.models.sections import EmbedderModel, EntityModel, RelationModel, RerankerModel
from resources.options import Options
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
    """The models of the project. Each section names a backend and its options, as project.yaml does: see models/sections.py.

    Secrets are names of environment variables, never values.
    """

    entity_labels: list[str]
    relation_labels: list[str]
    entities: dict[str, Any] = Field(description="What extracts entities: a backend and its options.")
    relations: dict[str, Any] | None = Field(None, description="What extracts relations: a backend and its options.")
    embedding: dict[str, Any] = Field(description="What turns texts into vectors: a backend and its options.")
    chat: dict[str, Any] | None = Field(default=None, description="LLMOptions of the chat model.")
    chat_cache: str | None = Field(default=None, description="The file that keeps replies of the chat model.")
    reranking: dict[str, Any] | None = Field(None, description="What puts chunks into order: a backend and its options.")

    def entity_extractor(self, labels: Sequence[str] | None = None, changes: Mapping[str, Any] | None = None) -> EntityExtractor:
        """The entity extractor of the project, or of one run with other labels or ``changes`` of options (None: unchanged).

        Raises:
            SettingsError: a label or an option is wrong, or the backend does not have that option.
        """
        section = EntityModel.parse(self.entities, "models.entities")
        options = _changed(section, changes or {}, "models.entities")
        return section.plugin_class.entity_extractor(options, labels or self.entity_labels)

    def relation_extractor(
        self,
        labels: Sequence[str] | None = None,
        changes: Mapping[str, Any] | None = None,
        entity_labels: Sequence[str] | None = None,
        entity_changes: Mapping[str, Any] | None = None,
    ) -> RelationExtractor | None:
        """The relation extractor, as ``entity_extractor``; None if the project has no relation labels.

        ``entity_labels`` and ``entity_changes`` are those of the entities' extractor in this run.
        """
        labels = self.relation_labels if labels is None else labels
        if self.relations is None or not labels:
            return None
        section = RelationModel.parse(self.relations, "models.relations")
        options = _changed(section, changes or {}, "models.relations")
        entities = EntityModel.parse(self.entities, "models.entities")
        entity_options = None
        if entities.plugin_class is section.plugin_class:
            entity_options = _changed(entities, entity_changes or {}, "models.entities")
        return section.plugin_class.relation_extractor(options, entity_labels or self.entity_labels, labels, entity_options)

    def embedder(self) -> Embedder:
        """The embedder of the project."""
        section = EmbedderModel.parse(self.embedding, "models.embedder")
        return section.plugin_class(section.options)

    @property
    def context_tokens(self) -> int:
        """Tokens of evidence that the chat model is shown."""
        return int((self.chat or {}).get("context_tokens", LLMOptions.model_fields["context_tokens"].default))

    def llm(self) -> ChatModel | None:
        """The chat model, to be closed after use; None if the project names none."""
        return ChatModel(LLMOptions.parse(self.chat, "models.llm"), self.chat_cache) if self.chat else None

    def reranker(self) -> Reranker | None:
        """The reranker of the project; None if it names none."""
        if self.reranking is None:
            return None
        section = RerankerModel.parse(self.reranking, "query.reranker")
        return section.plugin_class.create(section.options, self.embedder())


def _changed(section: EntityModel | RelationModel, changes: Mapping[str, Any], where: str) -> Options:
    options: Options = section.options
    for name, value in changes.items():
        if value is not None and name not in type(options).model_fields:
            raise SettingsError(f"{name} is {value}, but {where} has the backend {section.backend!r}, which has no such option.")
    return options.replace(changes, where)
