"""A question and its answer in plain Python. The job ``query`` runs the same steps."""

from collections.abc import Callable, Sequence
from pathlib import Path

from resources.graph.base import GraphStore
from resources.models.base import EntityExtractor
from resources.models.embedders.base import Embedder
from resources.models.llm.client import ChatModel
from resources.models.rerankers.base import Reranker
from resources.models.sections import RERANKED
from resources.texts.base import TextStore
from resources.vectors.base import VectorStore
from retrico_assets.query.answering.evidence import QueryResult
from retrico_assets.query.answering.reason import TOKEN_BUDGET
from retrico_assets.query.options import ChunkSource, FusionOptions, QueryOptions
from retrico_assets.query.plan import DEFAULT_STRATEGIES, OptionLayer, StrategyOptions, make_plan
from retrico_assets.query.session import QuerySession
from retrico_assets.query.sources import TripleScorer
from retrico_assets.query.state import QueryState
from retrico_assets.query.steps import STEPS, AnyStep, run_steps


def answer(
    question: str,
    *,
    graph: GraphStore,
    texts: TextStore,
    vectors: VectorStore | None = None,
    embedder: Embedder | None = None,
    extractor: EntityExtractor | None = None,
    llm: ChatModel | None = None,
    kg: TripleScorer | None = None,
    cache: Path | None = None,
    reranker: Reranker | None = None,
    strategies: Sequence[str] = DEFAULT_STRATEGIES,
    options: StrategyOptions | None = None,
    fusion: FusionOptions | None = None,
    top_k: int = 10,
    hops: int | None = None,
    rerank_top: int = RERANKED,
    chunk_source: ChunkSource = "all",
    token_budget: int = TOKEN_BUDGET,
    on_text: Callable[[str], None] | None = None,
    steps: Sequence[AnyStep] = STEPS,
) -> QueryResult:
    """Answer a question from the stores that a build has filled.

    Each strategy finds ``top_k`` entities, relations and chunks. The rankings of several strategies are fused, and
    ``reranker`` (if there is one) puts the best ``rerank_top`` chunks in order. ``llm`` (if there is one) writes an answer
    from the chunks, and ``on_text`` gets its pieces as they are written. A strategy or a step that fails is reported in the
    result, and the others still answer.

    Args:
        question: the question as it was written; any text.
        options: options by strategy. ``hops`` goes to every strategy that has such an option and does not set it there.
        chunk_source: whose chunks are evidence; see QueryOptions.
        cache: a folder for what strategies keep between processes.
        steps: the steps to run, for a query with steps of your own.

    Raises:
        SettingsError: a strategy or an option is unknown, out of range, or without effect.
        GraphCapabilityError: strategy "graph" is selected, and no graph provider serves.
    """
    query = QueryOptions.parse(
        {
            "strategies": strategies,
            "fusion": fusion or FusionOptions(),
            "top_k": top_k,
            "hops": hops,
            "chunk_source": chunk_source,
        }
    )
    own = OptionLayer({"hops": hops}, options or {})
    plan = make_plan(query, own, reranked=rerank_top if reranker else 0, token_budget=token_budget)
    given = {
        "graph": graph,
        "texts": texts,
        "vectors": vectors,
        "embedder": embedder,
        "extractor": extractor,
        "llm": llm,
        "kg": kg,
        "reranker": reranker,
    }
    with QuerySession(given=given, cache=cache, on_text=on_text) as session:
        return run_steps(steps, QueryState.begin(question, plan), session).result()
