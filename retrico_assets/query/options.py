"""Options of questions: strategies, fusion, reranking."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, create_model, model_validator
from pydantic.fields import FieldInfo

from resources.errors import SettingsError
from resources.models.sections import RerankerModel
from resources.option_fields import optional
from resources.options import Options, as_value_error

FusionMethod = Literal["rrf", "weighted", "union", "intersection"]
ChunkSource = Literal["all", "head", "tail", "both"]
Weight = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class FusionOptions(Options):
    """How the rankings of several strategies become one.

    The score of an item, where w is the weight of a strategy (1 unless given) and rank is the item's place in its ranking,
    from 1:

    * ``rrf``: the sum of w / (k + rank), reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009)
    * ``weighted``: the sum of w / rank
    * ``union``: the maximum of w / rank
    * ``intersection``: as ``rrf``, for items that at least ``min_sources`` strategies found (all that did not fail, if fewer)
    """

    method: FusionMethod = Field(default="rrf", description="How the rankings of several strategies become one.")
    k: int = Field(
        default=60, ge=0, description="The constant of rrf and intersection: the smaller, the more the first ranks count."
    )
    weights: dict[str, Weight] = Field(
        default={}, description="How much each strategy counts. A strategy that is not listed counts 1."
    )
    min_sources: int = Field(default=2, ge=1, description="How many strategies must find an item, with intersection.")

    def check_for(self, strategies: Sequence[str]) -> None:
        """Check that these strategies can find something together.

        Raises:
            SettingsError: an intersection needs more strategies than there are.
        """
        if self.method == "intersection" and 1 < len(strategies) < self.min_sources:
            raise SettingsError(
                f"fusion.min_sources is {self.min_sources}, but there are only {len(strategies)} strategies "
                f"({', '.join(strategies)}). Lower it, or add strategies."
            )


class QueryOptions(Options):
    """How questions are answered. The names of strategies and their options are checked by ``plan.check_query``."""

    strategies: list[str] | None = Field(
        default=None, description="Retrieval strategies; the results of several are fused. Default: pagerank."
    )
    options: dict[str, dict[str, Any]] = Field(
        default={}, description="Options of strategies by strategy, such as {entity: {hops: 3}}."
    )
    top_k: int = Field(default=10, ge=1, le=1000, description="How many entities, relations and chunks to keep.")
    hops: int | None = Field(
        default=None, ge=0, le=10, description="How many relations to follow, for every strategy that follows relations."
    )
    fusion: FusionOptions = Field(default=FusionOptions(), description="How the results of several strategies become one.")
    reranker: RerankerModel | None = Field(default=None, description="A model that puts the best chunks in order. Default: none.")
    chunk_source: ChunkSource = Field(
        default="all",
        description="Which chunks are evidence: all that were found, or only those that mention the head, the tail, or either "
        "end (both) of a relation that was found.",
    )

    @model_validator(mode="after")
    def _fusion_goes_with_strategies(self) -> "QueryOptions":
        if self.strategies is not None:
            as_value_error(self.fusion.check_for, self.strategies)
        return self


class _QuestionExtras(Options):
    active_after: str | None = Field(
        default=None, description="Only relations that held on or after this date, such as 1905-01-01."
    )
    active_before: str | None = Field(default=None, description="Only relations that held on or before this date.")
    rerank: bool | None = Field(
        default=None, description="Whether the project's reranker orders the chunks. Default: if there is one."
    )


_SAME_AS: dict[str, FieldInfo] = {
    **{name: QueryOptions.model_fields[name] for name in ("strategies", "options", "top_k", "hops", "chunk_source")},
    "fusion": FusionOptions.model_fields["method"],
    "rrf_k": FusionOptions.model_fields["k"],
    "weights": FusionOptions.model_fields["weights"],
    "min_sources": FusionOptions.model_fields["min_sources"],
}

_optional_fields: dict[str, Any] = {
    name: (optional(field), Field(default=None, description=field.description)) for name, field in _SAME_AS.items()
}

QuestionOptions = create_model("QuestionOptions", __base__=_QuestionExtras, **_optional_fields)
QuestionOptions.__doc__ = "What one question sets itself. None means: as project.yaml says."
