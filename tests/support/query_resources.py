"""The job ``query`` on stores that a test keeps open."""

import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import dagster as dg

from resources.errors import StoreError
from retrico_assets.project import ProjectResource
from tests.support.query_world import World

QUESTION = "Where was Albert Einstein born?"


class Given:
    """A store resource that hands out a store of the test."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def connect(self) -> Any:
        return nullcontext(self._store)


class Unreachable:
    """A store resource that can't connect."""

    def connect(self) -> Any:
        raise StoreError("the store at redis://u:CANARY@h can't be reached; start it")


class Models:
    """A models resource with an embedder, and perhaps a language model and a reranker."""

    context_tokens = 3000

    def __init__(self, embedder: Any, llm: Any = None, reranker: Any = None) -> None:
        self._embedder = embedder
        self._llm = llm
        self._reranker = reranker

    def entity_extractor(self) -> Any:
        return None

    def embedder(self) -> Any:
        return self._embedder

    def llm(self) -> Any:
        return self._llm

    def reranker(self) -> Any:
        if isinstance(self._reranker, Exception):
            raise self._reranker
        return self._reranker


def run_query(
    world: World,
    job: dg.JobDefinition,
    project: ProjectResource | None = None,
    *,
    llm: Any = None,
    reranker: Any = None,
    question: str = QUESTION,
    stores: dict[str, Any] | None = None,
    **config: Any,
) -> dg.ExecuteInProcessResult:
    """Run the job in this process. ``stores`` replace resources; ``config`` are fields of QueryConfig."""
    resources = {
        "project": project or empty_project(),
        "graph_store": Given(world.graph),
        "text_store": Given(world.texts),
        "vector_store": Given(world.vectors),
        "models": Models(world.embedder, llm, reranker),
    } | (stores or {})
    resolved = dg.Definitions(jobs=[job], resources=resources).resolve_job_def(job.name)
    return resolved.execute_in_process({"ops": {"parse_question": {"config": {"question": question, **config}}}})


def empty_project() -> ProjectResource:
    """A project without settings."""
    file = Path(tempfile.mkdtemp(prefix="retrico-test-")) / "project.yaml"
    file.write_text("{}")
    return ProjectResource(file=str(file))


def metadata(run: dg.ExecuteInProcessResult, node: str) -> dict[str, Any]:
    """What an op shows, as plain values."""
    outputs = [event for event in run.all_events if event.event_type_value == "STEP_OUTPUT" and event.node_name == node]
    return {name: entry.value for event in outputs for name, entry in event.event_specific_data.metadata.items()}
