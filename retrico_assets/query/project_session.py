"""A query session whose sources are opened from a project's Dagster resources."""

from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

from resources.dagster_resources import GraphStoreResource, ModelsResource, TextStoreResource, VectorStoreResource
from resources.models.llm.client import ChatModel
from retrico_assets.kg.score import trained_model
from retrico_assets.query.providers.options import ProjectFacts
from retrico_assets.query.session import QuerySession


def project_session(
    graph_store: GraphStoreResource,
    text_store: TextStoreResource,
    vector_store: VectorStoreResource,
    models: ModelsResource,
    *,
    data_folder: Path,
    cache: Path,
    project: ProjectFacts,
    warn: Callable[[str], None],
    on_text: Callable[[str], None] | None = None,
) -> QuerySession:
    """A session on the project's stores and models. Nothing is open yet."""

    def open_llm(stack: ExitStack) -> ChatModel | None:
        llm = models.llm()
        return llm and stack.enter_context(closing(llm))

    openers = {
        "graph": lambda stack: stack.enter_context(graph_store.connect()),
        "texts": lambda stack: stack.enter_context(text_store.connect()),
        "vectors": lambda stack: stack.enter_context(vector_store.connect()),
        "embedder": lambda stack: models.embedder(),
        "llm": open_llm,
        "kg": lambda stack: trained_model(data_folder),
        "extractor": lambda stack: models.entity_extractor(),
        "reranker": lambda stack: models.reranker(),
    }
    return QuerySession(openers, cache=cache, project=project, on_text=on_text, warn=warn)
