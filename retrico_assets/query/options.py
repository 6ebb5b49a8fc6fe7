"""Options of questions: strategies, fusion, reranking."""

from typing import Any, Literal

from pydantic import Field, PositiveInt, field_validator, model_validator

from resources.options import Options, as_value_error


class FusionOptions(Options):
    method: str = "rrf"
    k: int = 60
    weights: dict[str, float] = {}
    min_sources: int = 2

    @model_validator(mode="after")
    def _can_be_done(self) -> "FusionOptions":
        if self.model_fields_set:  # the defaults are fine, and the query room is not imported for them
            from retrico_assets.query.retrievers.fusion import Fusion

            as_value_error(Fusion, **self.model_dump())
        return self


class RerankerOptions(Options):
    backend: Literal["cross_encoder", "embedder"]
    model: str | None = None
    top: int = Field(default=30, ge=1, le=1000)
    batch_size: PositiveInt = 32
    device: str = "cpu"

    @model_validator(mode="after")
    def _model_goes_with_a_cross_encoder(self) -> "RerankerOptions":
        if self.backend == "cross_encoder" and not (self.model and self.model.strip()):
            raise ValueError("cross_encoder needs a model: a hub id such as cross-encoder/ms-marco-MiniLM-L6-v2, or a folder")
        if self.backend == "embedder" and self.model is not None:
            raise ValueError("backend embedder takes models.embedder; remove model, or set the backend to cross_encoder")
        return self


class QueryOptions(Options):
    """How questions are answered unless one says otherwise. None: as the built-in default or each strategy says."""

    strategies: list[str] | None = None
    options: dict[str, dict[str, Any]] = {}
    top_k: int = Field(default=10, ge=1, le=1000)
    hops: int | None = Field(default=None, ge=0, le=10)
    fusion: FusionOptions = FusionOptions()
    reranker: RerankerOptions | None = None
    chunk_source: Literal["all", "head", "tail", "both"] = "all"

    @field_validator("strategies")
    @classmethod
    def _strategies_are_known(cls, names: list[str] | None) -> list[str] | None:
        from retrico_assets.query.retrievers.base import check_strategies

        return names if names is None else list(as_value_error(check_strategies, names))

    @field_validator("options")
    @classmethod
    def _options_are_known(cls, options: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        from retrico_assets.query.retrievers.base import check_options

        for name, own in options.items():
            as_value_error(check_options, name, own)
        return options

    @model_validator(mode="after")
    def _fusion_goes_with_strategies(self) -> "QueryOptions":
        if self.strategies is not None:
            from retrico_assets.query.retrievers.fusion import Fusion

            as_value_error(Fusion(**self.fusion.model_dump()).check_for, self.strategies)
        return self
