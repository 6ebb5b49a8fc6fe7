"""Chunks and entities become vectors."""

import dagster as dg
import pandas as pd
from pydantic import Field

from resources.dagster_resources import GraphStoreResource, ModelsResource, VectorStoreResource
from resources.frames import records
from resources.records import Chunk
from retrico_assets import report
from retrico_assets.embeddings.sync import CHUNK_INDEX, ENTITY_INDEX, RELATION_INDEX, SyncReport, relation_texts, sync_index
from retrico_assets.failures import as_dagster_failure
from retrico_assets.progress import reporter
from retrico_assets.project import BuildLock


class EmbeddingsConfig(dg.Config):
    """How to treat the index in this run."""

    rebuild: bool = Field(
        default=False, description="Throw the index away and embed everything again, as after a change of the embedding model."
    )


@dg.asset(group_name="embeddings", kinds={"faiss"})
@as_dagster_failure
def chunk_embeddings(
    context: dg.AssetExecutionContext,
    config: EmbeddingsConfig,
    chunks: pd.DataFrame,
    vector_store: VectorStoreResource,
    models: ModelsResource,
    build_lock: BuildLock,
) -> dg.MaterializeResult:
    """A vector of each chunk's text. Idempotent: only texts that are new are embedded, and vectors of gone chunks deleted."""
    texts = {chunk.id: chunk.text for chunk in records(chunks, Chunk)}
    return _embed(context, config, CHUNK_INDEX, texts, vector_store, models)


@dg.asset(group_name="embeddings", kinds={"faiss"}, deps=["graph"])
@as_dagster_failure
def entity_embeddings(
    context: dg.AssetExecutionContext,
    config: EmbeddingsConfig,
    graph_store: GraphStoreResource,
    vector_store: VectorStoreResource,
    models: ModelsResource,
    build_lock: BuildLock,
) -> dg.MaterializeResult:
    """A vector of each entity's name. Idempotent: only entities that are new or renamed are embedded, gone ones deleted."""
    with graph_store.connect() as graph:
        texts = {entity.id: entity.label for entity in graph.entities()}
    return _embed(context, config, ENTITY_INDEX, texts, vector_store, models)


@dg.asset(group_name="embeddings", kinds={"faiss"}, deps=["graph"])
@as_dagster_failure
def relation_embeddings(
    context: dg.AssetExecutionContext,
    config: EmbeddingsConfig,
    graph_store: GraphStoreResource,
    vector_store: VectorStoreResource,
    models: ModelsResource,
    build_lock: BuildLock,
) -> dg.MaterializeResult:
    """A vector of each relation, read as a sentence: "Ana works at Kestrel". Idempotent as the others."""
    with graph_store.connect() as graph:
        texts = relation_texts(graph)
    return _embed(context, config, RELATION_INDEX, texts, vector_store, models)


def _embed(
    context: dg.AssetExecutionContext,
    config: EmbeddingsConfig,
    index: str,
    texts: dict[str, str],
    vector_store: VectorStoreResource,
    models: ModelsResource,
) -> dg.MaterializeResult:
    watch = report.Stopwatch()
    embedder = models.embedder()
    with vector_store.connect() as vectors:
        if config.rebuild:
            vectors.drop_index(index)
        result = sync_index(vectors, index, embedder, texts, reporter(index, context.log.info, "texts"))
    return dg.MaterializeResult(metadata=_metadata(result, texts, embedder.name) | watch.rates(result.embedded))


def _metadata(result: SyncReport, texts: dict[str, str], model: str) -> dict[str, dg.MetadataValue]:
    frame = pd.DataFrame({"id": list(texts), "text": list(texts.values())}, dtype="str")
    return {
        **report.sample(frame, ["id", "text"]),
        **report.counts(**result.counts()),
        "model": dg.MetadataValue.text(model),
    }
