"""Options of communities: how they are detected and summarised."""

from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator

from resources.options import Options, as_value_error

if TYPE_CHECKING:
    from retrico_assets.communities.detect import Detection


class CommunityOptions(Options):
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
    def _can_be_done(self) -> "CommunityOptions":
        if self.model_fields_set:
            from retrico_assets.communities.partition import chosen_method

            as_value_error(chosen_method, as_value_error(lambda: self.detection).method)
        return self
