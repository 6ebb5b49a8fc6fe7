"""Options of communities: how they are detected and summarised."""

from importlib.util import find_spec
from typing import Literal, cast

from pydantic import Field, field_validator

from resources.options import Options

Method = Literal["louvain", "leiden"]


class CommunityOptions(Options):
    """How communities are detected (communities/detect.py) and summarised (communities/summarise.py)."""

    method: Literal["auto", "louvain", "leiden"] = Field(
        default="auto", description="How to detect. auto is leiden if graspologic-native is installed, else louvain."
    )
    levels: int = Field(default=3, ge=1, le=10, description="Largest number of levels. Level 0 is the finest.")
    resolution: float = Field(
        default=1.0, gt=0, allow_inf_nan=False, description="A greater value gives more and smaller communities."
    )
    seed: int = Field(default=42, ge=0, le=2**32 - 1, description="Seed of the random order in which the method visits entities.")
    top_k: int = Field(
        default=10, ge=1, le=100, description="How many of the best-connected members represent a community in its summary."
    )
    token_budget: int = Field(default=2000, ge=200, description="Largest number of tokens of a community's content in a prompt.")
    token_limit: int | None = Field(
        default=None,
        ge=0,
        description="Largest number of tokens for all requests and replies of a run. With 0, all summaries are extractive.",
    )

    @field_validator("method")
    @classmethod
    def _method_is_installed(cls, method: str) -> str:
        if method == "leiden" and find_spec("graspologic_native") is None:
            raise ValueError("leiden needs the package graspologic-native. Install it, or set the method to louvain.")
        return method

    @property
    def detection_method(self) -> Method:
        """The method to use: for "auto", leiden if graspologic-native is installed, else louvain."""
        if self.method == "auto":
            return "louvain" if find_spec("graspologic_native") is None else "leiden"
        return cast(Method, self.method)
