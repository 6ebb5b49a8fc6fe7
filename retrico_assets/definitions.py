"""Everything that Dagster loads. The project file is checked here, so that a mistake in it shows when definitions load."""

import dagster as dg

from retrico_assets.communities.assets import communities, community_embeddings, community_report, community_summaries
from retrico_assets.corpus.assets import chunks, documents
from retrico_assets.corpus.sensor import corpus_sensor
from retrico_assets.embeddings.assets import chunk_embeddings, entity_embeddings, relation_embeddings
from retrico_assets.evaluation.assets import retrieval_report
from retrico_assets.extraction.assets import entities, relations
from retrico_assets.graph.assets import entity_graph, graph
from retrico_assets.kg.assets import kg_embeddings, kg_model, kg_triples
from retrico_assets.project import project_resources
from retrico_assets.query.job import query_job
from retrico_assets.query.providers.rule import check_retrieval
from retrico_assets.settings import load_settings, project_file

_file = project_file()
_settings = load_settings(_file)
check_retrieval(_settings.retrieval_facts, _settings.query.strategies, _file)

build_job = dg.define_asset_job(
    "build",
    selection=dg.AssetSelection.groups("corpus", "extraction", "graph", "embeddings"),
    description="Bring everything that is made from the corpus up to date. What has not changed is not done again.",
)

communities_job = dg.define_asset_job(
    "detect_communities",
    selection=dg.AssetSelection.groups("communities"),
    description="Find the communities of the graph, with titles, summaries, vectors and a report. What has not changed is left.",
)

train_kg_model_job = dg.define_asset_job(
    "train_kg_model",
    selection=dg.AssetSelection.groups("kg"),
    description="Learn the graph's relations: how plausible each is, and which are missing.",
)

evaluate_job = dg.define_asset_job(
    "evaluate",
    selection=dg.AssetSelection.assets(retrieval_report),
    description="Measure how well each strategy finds the documents that questions need.",
)

nightly_build = dg.ScheduleDefinition(
    name="nightly_build",
    job=build_job,
    cron_schedule="0 2 * * *",
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description="A build every night at two, for changes that the sensor can't see.",
)

defs = dg.Definitions(
    assets=[
        documents,
        chunks,
        entities,
        relations,
        graph,
        entity_graph,
        chunk_embeddings,
        entity_embeddings,
        relation_embeddings,
        communities,
        community_summaries,
        community_embeddings,
        community_report,
        kg_triples,
        kg_model,
        kg_embeddings,
        retrieval_report,
    ],
    jobs=[build_job, query_job, communities_job, train_kg_model_job, evaluate_job],
    sensors=[corpus_sensor],
    schedules=[nightly_build],
    resources=project_resources(_file, _settings),
    # In one process the models are loaded once a run and not once a step.
    executor=dg.in_process_executor,
)
