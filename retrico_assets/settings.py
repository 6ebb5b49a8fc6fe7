"""The settings of a project, composed of the options of its parts, and how project.yaml is read. Nothing is opened here."""

import os
import sys
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from pydantic import Field, ValidationError, field_validator, model_validator

from resources.errors import SettingsError
from resources.models.llm.options import LLMOptions
from resources.models.sections import EmbedderModel, EntityModel, RelationModel
from resources.options import Options, ProjectPath, faults
from resources.store_sections import StoreOptions
from retrico_assets.communities.options import CommunityOptions
from retrico_assets.corpus.options import CorpusOptions
from retrico_assets.extraction.options import LabelOptions
from retrico_assets.graph.identity import IdentityPolicy
from retrico_assets.kg.options import KGOptions
from retrico_assets.query.options import QueryOptions
from retrico_assets.query.plan import check_query
from retrico_assets.query.providers.options import ProjectFacts, RetrievalOptions
from retrico_assets.yaml_file import read_yaml

DEFAULT_FILES = ("project.yaml", "configs/project.yaml")


class ModelsSection(Options):
    entities: EntityModel = Field(default_factory=lambda: EntityModel.of("gliner"), description="What extracts entities.")
    relations: RelationModel | None = Field(
        default_factory=lambda: RelationModel.of("gliner"), description="What extracts relations; null if nothing does."
    )
    embedder: EmbedderModel = Field(
        default_factory=lambda: EmbedderModel.of("sentence_transformer"), description="What turns texts into vectors."
    )
    llm: LLMOptions | None = None


class ProjectSettings(Options):
    """A whole project. Paths are absolute once it is loaded."""

    data: ProjectPath = Field(
        default="data",
        validate_default=True,
        description="The folder of everything that is made: stores, frames, caches, models.",
    )
    identity: IdentityPolicy = Field(
        default="name", description="What makes two mentions one entity: the same name, or the same name and type."
    )
    corpus: CorpusOptions = Field(default={}, validate_default=True, description="The documents.")
    labels: LabelOptions = Field(default=LabelOptions(), description="What is extracted.")
    models: ModelsSection = Field(default=ModelsSection(), description="The models.")
    stores: StoreOptions = Field(default={}, validate_default=True, description="The stores.")
    kg: KGOptions = Field(default=KGOptions(), description="The KG model.")
    query: QueryOptions = Field(default=QueryOptions(), description="How questions are answered.")
    retrieval: RetrievalOptions = Field(
        default=RetrievalOptions(), description="Which graph serves retrieval, and what questions draw on."
    )
    communities: CommunityOptions = Field(default=CommunityOptions(), description="The communities of the graph.")

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

    @field_validator("data")
    @classmethod
    def _data_is_a_folder_of_its_own(cls, folder: str) -> str:
        if Path(folder) == Path(folder).parent:
            raise ValueError(f"{folder} is the root folder. Choose a folder of the project.")
        return folder

    @model_validator(mode="after")
    def _relations_have_a_model(self) -> "ProjectSettings":
        if self.labels.relations and self.models.relations is None:
            raise ValueError("labels.relations is set, but models.relations is null. Name a model or empty the labels.")
        return self


def project_file(path: str | os.PathLike[str] | None = None) -> Path:
    """Find the project file: the one given, else ``RETRICO_PROJECT``, else ./project.yaml or ./configs/project.yaml.

    Raises:
        SettingsError: there is none.
    """
    named = path or os.environ.get("RETRICO_PROJECT")
    if named:
        file = Path(os.path.expanduser(named)).resolve()
        if not file.is_file():
            raise SettingsError(f"The project file {file} does not exist. Check --project or RETRICO_PROJECT.")
        return file
    for name in DEFAULT_FILES:
        if Path(name).is_file():
            return Path(name).resolve()
    raise SettingsError(
        f"There is no project file: neither {' nor '.join(DEFAULT_FILES)} exists in {Path.cwd()}. "
        "Use --project FILE, set RETRICO_PROJECT, or make a project with `retrico init`."
    )


def load_settings(path: str | os.PathLike[str] | None = None) -> ProjectSettings:
    """Read and check a project file. The folder of the file is added to ``sys.path``, so that it can hold plug-ins.

    Raises:
        SettingsError: the file can't be read, or a value is wrong. The message names the file, the key and what to do; it
            never contains a secret.
    """
    file = project_file(path)
    return _load(file, file.stat().st_mtime_ns)


@lru_cache(maxsize=16)
def _load(file: Path, _modified: int) -> ProjectSettings:
    content = read_yaml(file)
    if content is None:
        content = {}
    if not isinstance(content, dict):
        raise SettingsError(f"{file} is not a project: the top level must be keys and values.")
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    try:
        # Relative folders, those of models too, start from the folder of the file.
        settings = ProjectSettings.model_validate(content, context={"folder": file.parent})
    except ValidationError as error:
        raise SettingsError("\n".join(f"{file}: {fault}" for fault in faults(error, ProjectSettings))) from None
    try:
        check_query(settings.query)
    except SettingsError as error:
        raise SettingsError(f"{file}: {error}") from None
    if settings.models.llm and find_spec("openai") is None:
        raise SettingsError(f"{file}: models.llm needs the package openai. Install it.")
    return settings
