"""Assets of the graph: the graph itself, and the matrix of it that PageRank walks."""

from collections import defaultdict

import dagster as dg
import pandas as pd

from resources.dagster_resources import GraphStoreResource, TextStoreResource
from resources.frames import records
from resources.records import Chunk, Document, DocumentGraph, GraphStats, Mention, RelationMention
from retrico_assets import report
from retrico_assets.failures import as_dagster_failure
from retrico_assets.graph.build import document_graphs, update_graph
from retrico_assets.graph.entity_graph_cache import current_entity_graph
from retrico_assets.progress import reporter
from retrico_assets.project import BuildLock, ProjectResource

_COUNTS_MATCH = dg.AssetCheckSpec(
    "counts_match_frames",
    asset="graph",
    description="The graph holds as many documents, chunks, mentions, entities and relations as the frames.",
)
_RELATIONS_KEPT = dg.AssetCheckSpec(
    "relations_kept", asset="graph", description="Where relations were extracted, at least one reached the graph."
)


@dg.asset(group_name="graph", kinds={"graph"}, check_specs=[_COUNTS_MATCH, _RELATIONS_KEPT])
@as_dagster_failure
def graph(
    context: dg.AssetExecutionContext,
    documents: pd.DataFrame,
    chunks: pd.DataFrame,
    entities: pd.DataFrame,
    relations: pd.DataFrame,
    project: ProjectResource,
    graph_store: GraphStoreResource,
    build_lock: BuildLock,
) -> dg.MaterializeResult:
    """Entities, the relations between them, and the chunks that state them, in the graph store.

    Idempotent: a document is replaced only if its part of the graph has changed, whole or not at all. Relations and mentions that
    it no longer holds are removed, as are documents that left the corpus and entities that nothing mentions any more.
    """
    watch = report.Stopwatch()
    graphs, dropped = document_graphs(
        records(documents, Document),
        records(chunks, Chunk),
        records(entities, Mention),
        records(relations, RelationMention),
        project.settings.identity,
    )
    with graph_store.connect() as store:
        replaced, deleted, rows = update_graph(store, graphs, reporter("graph", context.log.info, "documents"))
        stats = store.stats()
    for reason, number in dropped.items():
        context.log.warning(f"Left out {number:,} times: {reason}.")
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": dg.MetadataValue.int(stats.entities),
            **_best_attested(graphs),
            **report.counts(
                documents=stats.documents,
                chunks=stats.chunks,
                mentions=stats.mentions,
                entities=stats.entities,
                relations=stats.relations,
                documents_replaced=replaced,
                documents_deleted=deleted,
                documents_unchanged=len(graphs) - replaced,
                rows_written=rows,
            ),
            **report.listing("left_out", dropped),
            **watch.rates(rows),
        },
        check_results=[_counts_match(stats, graphs), _relations_kept(stats, len(relations), dropped)],
    )


def _best_attested(graphs: list[DocumentGraph]) -> dict[str, dg.MetadataValue]:
    """A sample: the relations that most chunks state, then those with the best score."""
    evidence: defaultdict[tuple[str, str, str], list[float]] = defaultdict(list)
    for document in graphs:
        for r in document.relations:
            evidence[r.head_id, r.label, r.tail_id].append(r.score)
    names = {m.entity_id: m.mention.text for document in graphs for m in document.mentions}
    best = sorted(evidence.items(), key=lambda item: (-len(item[1]), -max(item[1]), item[0]))[: report.SAMPLE_ROWS]
    rows = [
        {"head": names[head], "relation": label, "tail": names[tail], "score": max(scores), "chunks": len(scores)}
        for (head, label, tail), scores in best
    ]
    return {"sample": report.table(rows)} if rows else {}


def _counts_match(stats: GraphStats, graphs: list[DocumentGraph]) -> dg.AssetCheckResult:
    expected = GraphStats(
        documents=len(graphs),
        chunks=sum(len(g.chunks) for g in graphs),
        mentions=sum(len(g.mentions) for g in graphs),
        entities=len({m.entity_id for g in graphs for m in g.mentions}),
        relations=len({r.relation_id for g in graphs for r in g.relations}),
    )
    rows = [
        {"what": name, "graph": getattr(stats, name), "frames": getattr(expected, name)}
        for name in ("documents", "chunks", "mentions", "entities", "relations")
    ]
    return dg.AssetCheckResult(passed=stats == expected, check_name=_COUNTS_MATCH.name, metadata={"counts": report.table(rows)})


def _relations_kept(stats: GraphStats, given: int, dropped: dict[str, int]) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        passed=not given or stats.relations > 0,
        check_name=_RELATIONS_KEPT.name,
        metadata=report.counts(extracted=given, stored=stats.relations) | report.listing("left_out", dropped),
    )


@dg.asset(group_name="graph", deps=["graph"], kinds={"scipy"})
@as_dagster_failure
def entity_graph(
    context: dg.AssetExecutionContext,
    project: ProjectResource,
    graph_store: GraphStoreResource,
    text_store: TextStoreResource,
    build_lock: BuildLock,
) -> dg.MaterializeResult:
    """The graph as one sparse matrix, for strategy "pagerank". Computed again only when the graph has changed."""
    watch = report.Stopwatch()
    with graph_store.connect() as graph, text_store.connect() as texts:
        matrix = current_entity_graph(graph, texts, project.settings.query_cache)
    return dg.MaterializeResult(
        metadata={
            **report.counts(
                entities=len(matrix.entity_ids),
                titles=matrix.first_chunk - len(matrix.entity_ids),
                chunks=len(matrix.chunk_ids),
                relations=len(matrix.relation_ids),
                edges=matrix.transition.nnz // 2,
            ),
            **watch.rates(matrix.transition.shape[0]),
        }
    )
