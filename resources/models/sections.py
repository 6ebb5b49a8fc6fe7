"""The sections of project.yaml that name a model: ``{backend: gliner, model: ..., threshold: ...}``.

``backend`` is a plug-in or "module:Class"; the other keys are the plug-in's own options. Folders of models are relative to
``context={"folder": ...}`` of ``model_validate``.
"""

from pydantic import Field

from resources.errors import SettingsError
from resources.models.base import ExtractorBackend
from resources.models.embedders.base import Embedder
from resources.models.rerankers.base import Reranker
from resources.options import Options
from resources.plugins import Backend


class EntityModel(Backend):
    """``models.entities``: what extracts entities."""

    kind = "extractors"
    base = ExtractorBackend

    backend: str = Field(default="gliner", min_length=1, description='Extractor of entities: a plug-in or "module:Class".')

    @classmethod
    def options_class(cls, plugin_class: type[ExtractorBackend]) -> type[Options]:
        """The options of this section."""
        if plugin_class.entity_options is None:
            raise SettingsError("This backend does not extract entities. Name another one.")
        return plugin_class.entity_options


class RelationModel(Backend):
    """``models.relations``: what extracts relations."""

    kind = "extractors"
    base = ExtractorBackend

    backend: str = Field(default="gliner", min_length=1, description='Extractor of relations: a plug-in or "module:Class".')

    @classmethod
    def options_class(cls, plugin_class: type[ExtractorBackend]) -> type[Options]:
        """The options of this section."""
        if plugin_class.relation_options is None:
            raise SettingsError("This backend does not extract relations. Name another one.")
        return plugin_class.relation_options


class EmbedderModel(Backend):
    """``models.embedder``: what turns texts into vectors."""

    kind = "embedders"
    base = Embedder

    backend: str = Field(default="sentence_transformer", min_length=1, description='Embedder: a plug-in or "module:Class".')


RERANKED = 30
"""How many chunks a reranker reads by default."""


class RerankerModel(Backend):
    """``query.reranker``: what puts the best chunks into order."""

    kind = "rerankers"
    base = Reranker

    top: int = Field(default=RERANKED, ge=1, le=1000, description="How many of the best chunks it reads.")
