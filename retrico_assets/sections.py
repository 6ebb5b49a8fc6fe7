"""What project.yaml may say: a class a section. Each value is checked as it is read; nothing is opened."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PositiveInt,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)

from resources.errors import SettingsError
from retrico_assets.query.graph_handle import KnowledgeEntry, check_entries

if TYPE_CHECKING:
    from retrico_assets.communities.detect import Detection

Score = Annotated[float, Field(ge=0, le=1)]
Result = TypeVar("Result")


def _clean_labels(labels: list[str]) -> list[str]:
    labels = [label.strip() for label in labels]
    if "" in labels:
        raise ValueError("a label is blank; remove it")
    return list(dict.fromkeys(labels))


Labels = Annotated[list[str], AfterValidator(_clean_labels)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    def for_run(self, values: Mapping[str, Any]) -> Self:
        """The section with what one run says otherwise: not None, and known here. SettingsError for what the file may not say."""
        said = {name: value for name, value in values.items() if name in type(self).model_fields and value is not None}
        try:
            return type(self).model_validate(self.model_dump() | said)
        except ValidationError as error:
            told = [(".".join(map(str, fault["loc"])), fault["msg"].removeprefix("Value error, ")) for fault in error.errors()]
            raise SettingsError("; ".join(f"{key}: {message}" if key else message for key, message in told)) from None


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
    model: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    api_key: EnvironmentReference | None = None
    timeout: float = Field(default=60, gt=0)
    max_retries: int = Field(default=3, ge=0)
    context_tokens: PositiveInt = 6000
    max_concurrency: PositiveInt = 4
    requests_per_minute: PositiveInt | None = None
    cache: bool = True
    prompt_price: float | None = Field(default=None, ge=0)
    completion_price: float | None = Field(default=None, ge=0)

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

    @model_validator(mode="after")
    def _both_prices_or_none(self) -> "LLMSettings":
        if (self.prompt_price is None) != (self.completion_price is None):
            raise ValueError("prompt_price and completion_price (each for a million tokens) go together; set both or none")
        return self


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


class FusionSettings(_Section):
    method: str = "rrf"
    k: int = 60
    weights: dict[str, float] = {}
    min_sources: int = 2

    @model_validator(mode="after")
    def _can_be_done(self) -> "FusionSettings":
        if self.model_fields_set:  # the defaults are fine, and the query room is not imported for them
            from retrico_assets.query.fuse import Fusion

            _told_here(Fusion, **self.model_dump())
        return self


class RerankerSettings(_Section):
    backend: Literal["cross_encoder", "embedder"]
    model: str | None = None
    top: int = Field(default=30, ge=1, le=1000)
    batch_size: PositiveInt = 32
    device: str = "cpu"

    @model_validator(mode="after")
    def _model_goes_with_a_cross_encoder(self) -> "RerankerSettings":
        if self.backend == "cross_encoder" and not (self.model and self.model.strip()):
            raise ValueError("cross_encoder needs a model: a hub id such as cross-encoder/ms-marco-MiniLM-L6-v2, or a folder")
        if self.backend == "embedder" and self.model is not None:
            raise ValueError("backend embedder takes models.embedder; remove model, or set the backend to cross_encoder")
        return self


class QuerySettings(_Section):
    """How questions are answered unless one says otherwise. None: as the built-in default or each strategy says."""

    strategies: list[str] | None = None
    options: dict[str, dict[str, Any]] = {}
    top_k: int = Field(default=10, ge=1, le=1000)
    hops: int | None = Field(default=None, ge=0, le=10)
    fusion: FusionSettings = FusionSettings()
    reranker: RerankerSettings | None = None
    chunk_source: Literal["all", "head", "tail", "both"] = "all"

    @field_validator("strategies")
    @classmethod
    def _strategies_are_known(cls, names: list[str] | None) -> list[str] | None:
        from retrico_assets.query.retriever import check_strategies

        return names if names is None else list(_told_here(check_strategies, names))

    @field_validator("options")
    @classmethod
    def _options_are_known(cls, options: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        from retrico_assets.query.retriever import check_options

        for name, own in options.items():
            _told_here(check_options, name, own)
        return options

    @model_validator(mode="after")
    def _fusion_goes_with_strategies(self) -> "QuerySettings":
        if self.strategies is not None:
            from retrico_assets.query.fuse import Fusion

            _told_here(Fusion(**self.fusion.model_dump()).check_for, self.strategies)
        return self


def _told_here(check: Callable[..., Result], *values: Any, **named: Any) -> Result:
    """What the query room finds wrong, as pydantic wants it, which adds the key."""
    try:
        return check(*values, **named)
    except SettingsError as error:
        raise ValueError(str(error)) from None


class CommunitySettings(_Section):
    """How communities are detected (communities/detect.py) and summarised (communities/summarise.py)."""

    method: Literal["auto", "louvain", "leiden"] = "auto"
    levels: int = 3
    resolution: float = 1.0
    seed: int = 42
    top_k: int = Field(default=10, ge=1, le=100)
    token_budget: int = Field(default=2000, ge=200)
    token_limit: int | None = Field(default=None, ge=0)

    @property
    def detection(self) -> "Detection":
        from retrico_assets.communities.detect import Detection

        return Detection(self.method, self.levels, self.resolution, self.seed)

    @model_validator(mode="after")
    def _can_be_done(self) -> "CommunitySettings":
        if self.model_fields_set:
            from retrico_assets.communities.partition import chosen_method

            _told_here(chosen_method, _told_here(lambda: self.detection).method)
        return self


class Neo4jSettings(_Section):
    """A Neo4j database that retrieval reads. Without ``uri``, NEO4J_URI counts."""

    uri: str | None = None
    user: str = "neo4j"
    password: EnvironmentReference = EnvironmentReference(env="NEO4J_PASSWORD")
    database: str | None = None

    @field_validator("uri")
    @classmethod
    def _server_without_a_password(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        if parts.scheme not in ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc") or not parts.hostname:
            raise ValueError("it must name a host after bolt:// or neo4j:// (or +s or +ssc, encrypted)")
        if parts.username or parts.password:
            raise ValueError("it holds a user name or password; use user, and password: {env: NAME_OF_A_VARIABLE} instead")
        return value


class RetrievalSettings(_Section):
    """Which graph serves retrieval (query/providers/rule.py), from which sources, and what questions draw on.

    ``sources`` selects among "corpus", "knowledge-tools" and the names of providers; ``graph_providers`` are the providers
    that may serve, one's own as "module:Class". Empty: all.
    """

    sources: list[str] = []
    graph_providers: list[str] = []
    neo4j: Neo4jSettings = Neo4jSettings()
    knowledge: Annotated[list[KnowledgeEntry], AfterValidator(check_entries)] = []


class KGSettings(_Section):
    """The KG model: what it learns from, and how it is trained.

    ``triples`` names a file of three columns or a folder with train.txt, valid.txt and test.txt; without it the graph is
    learned. ``pipeline`` holds any further option of PyKEEN's pipeline, such as {stopper: early, loss: nssa}. ``on_nodes``: the
    entities' vectors are copied onto the graph's nodes too.
    """

    triples: str | None = None
    split: list[float] = [0.8, 0.1, 0.1]
    model: str = Field(default="RotatE", min_length=1)
    embedding_dim: PositiveInt = 128
    epochs: PositiveInt = 100
    batch_size: PositiveInt = 256
    learning_rate: float = Field(default=0.003, gt=0)
    negatives: PositiveInt | None = None
    inverse_triples: bool = False
    pipeline: dict[str, Any] = {}
    seed: int = Field(default=42, ge=0, lt=2**32)
    device: str = "cpu"
    on_nodes: bool = False

    @field_validator("split")
    @classmethod
    def _split_is_one(cls, shares: list[float]) -> list[float]:
        from retrico_assets.kg.triples import check_ratios

        _told_here(check_ratios, shares)
        return shares


class ProjectSettings(_Section):
    """A whole project. Paths are absolute once it is loaded."""

    data: str = "data"
    identity: Literal["name", "name_and_type"] = "name"
    corpus: CorpusSettings = CorpusSettings()
    labels: LabelSettings = LabelSettings()
    models: ModelSettings = ModelSettings()
    stores: StoreSettings = StoreSettings()
    kg: KGSettings = KGSettings()
    query: QuerySettings = QuerySettings()
    retrieval: RetrievalSettings = RetrievalSettings()
    communities: CommunitySettings = CommunitySettings()

    @property
    def data_folder(self) -> Path:
        return Path(self.data)

    @property
    def query_cache(self) -> Path:
        """What strategies keep between processes."""
        return self.data_folder / "query_cache"

    @model_validator(mode="after")
    def _relations_have_a_model(self) -> "ProjectSettings":
        if self.labels.relations and self.models.relations is None:
            raise ValueError("labels.relations is set but models.relations is null; name a model or empty the labels")
        return self
