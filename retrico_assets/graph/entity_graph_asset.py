"""What questions need and can be made before the first of them."""

import dagster as dg

from resources.dagster_resources import GraphStoreResource, TextStoreResource
from retrico_assets import report
from retrico_assets.failures import told_plainly
from retrico_assets.graph.entity_graph import entity_graph as made_entity_graph
from retrico_assets.project import BuildLock, ProjectResource


@dg.asset(group_name="graph", deps=["graph"], kinds={"scipy"})
@told_plainly
def entity_graph(
    context: dg.AssetExecutionContext,
    project: ProjectResource,
    graph_store: GraphStoreResource,
    text_store: TextStoreResource,
    build_lock: BuildLock,
) -> dg.MaterializeResult:
    """The graph as one sparse matrix, for strategy "pagerank". Made again only when the graph has changed."""
    watch = report.Stopwatch()
    with graph_store.connect() as graph, text_store.connect() as texts:
        made = made_entity_graph(graph, texts, project.settings.query_cache)
    return dg.MaterializeResult(
        metadata={
            **report.counts(
                entities=len(made.entity_ids),
                titles=made.first_chunk - len(made.entity_ids),
                chunks=len(made.chunk_ids),
                relations=len(made.relation_ids),
                edges=made.transition.nnz // 2,
            ),
            **watch.rates(made.transition.shape[0]),
        }
    )
