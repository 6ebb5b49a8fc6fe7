"""The project as Dagster resources: its settings, its one-build-at-a-time lock, and its stores and models."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg

from resources.dagster_resources import GraphStoreResource, ModelsResource, TextStoreResource, VectorStoreResource
from resources.files.locking import lock_holder, locked
from resources.plugins import Backend
from retrico_assets.frames_io import FrameIOManager
from retrico_assets.progress import reporter
from retrico_assets.settings import ProjectSettings, load_settings


class ProjectResource(dg.ConfigurableResource):
    """The project file, read again in each process."""

    file: str

    @property
    def settings(self) -> ProjectSettings:
        return load_settings(self.file)


class BuildLock(dg.ConfigurableResource):
    """Lets one build of a project write at a time, from the start of its run to its end; another one waits.

    A lock of the operating system on a file, because it ends with its process: a killed build blocks nobody, which a
    slot of a Dagster pool would.
    """

    folder: str

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator["BuildLock"]:
        with held_build_lock(Path(self.folder), context.run_id, context.log or dg.get_dagster_logger()):
            yield self


_HELD: set[tuple[Path, str | None]] = set()


@contextmanager
def held_build_lock(folder: Path, run_id: str | None, log: logging.Logger) -> Iterator[None]:
    """Hold the build lock of that data folder for a while, or go on if this run holds it already.

    For a step that writes after others that take long and write nothing: as a resource the lock would be held all that time.
    """
    key = folder.absolute(), run_id
    if key in _HELD:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    report = reporter("waiting for a build", log.info, "builds")
    waited = False

    def on_wait() -> None:
        nonlocal waited
        waited = True
        log.info(_waiting_message(folder / "build.lock"))
        report(0, 1)

    with locked(folder / "build.lock", on_wait=on_wait):
        if waited:
            report(1, 1)
        _HELD.add(key)
        try:
            yield
        finally:
            _HELD.discard(key)


def _waiting_message(lock: Path) -> str:
    holder = lock_holder(lock)
    process = "" if holder is None else f" (process {holder})"
    return f"Another build of this project is running{process}. Waiting for it to end."


def project_resources(file: Path, settings: ProjectSettings) -> dict[str, Any]:
    """All resources of a project, by the keys that assets and ops ask for."""
    data = settings.data_folder
    models, stores = settings.models, settings.stores
    return {
        "project": ProjectResource(file=str(file)),
        "build_lock": BuildLock(folder=str(data)),
        "frames": FrameIOManager(folder=str(data / "frames")),
        "graph_store": GraphStoreResource(**_choice(stores.graph), folder=str(data / "graph")),
        "vector_store": VectorStoreResource(**_choice(stores.vectors), folder=str(data / "vectors")),
        "text_store": TextStoreResource(**_choice(stores.texts), folder=str(data / "texts")),
        "models": ModelsResource(
            entity_labels=settings.labels.entities,
            relation_labels=settings.labels.relations,
            entities=models.entities.as_config(),
            relations=models.relations.as_config() if models.relations else None,
            embedding=models.embedder.as_config(),
            chat=models.llm.model_dump(exclude_none=True) if models.llm else None,
            chat_cache=str(data / "llm_cache.db") if models.llm and models.llm.cache else None,
            reranking=settings.query.reranker.as_config() if settings.query.reranker else None,
        ),
    }


def _choice(section: Backend) -> dict[str, Any]:
    return {"backend": section.backend, "options": section.changed_options()}
