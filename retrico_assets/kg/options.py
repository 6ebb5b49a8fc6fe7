"""Options of KG models: what one learns from and how it is trained."""

from typing import Any

from pydantic import Field, PositiveInt, field_validator

from resources.options import Options, as_value_error


class KGOptions(Options):
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

        as_value_error(check_ratios, shares)
        return shares
