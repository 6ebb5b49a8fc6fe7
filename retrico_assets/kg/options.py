"""Options of KG models: what a model learns from and how it is trained."""

import math
from typing import Any

from pydantic import Field, PositiveInt, field_validator

from resources.options import Options, ProjectPath


class TrainingOptions(Options):
    """How a model is trained. The same triples and the same values give the same model."""

    model: str = Field(
        default="RotatE", min_length=1, description="A model of PyKEEN, such as RotatE, ComplEx, TransE, DistMult or TuckER."
    )
    embedding_dim: PositiveInt | None = Field(
        default=128, description="The dimension of the vectors. Models without this argument keep their own."
    )
    epochs: PositiveInt = Field(default=100, description="Largest number of passes over the train triples.")
    batch_size: PositiveInt = Field(default=256, description="Triples per training step.")
    learning_rate: float = Field(default=0.003, gt=0, description="The step size of the optimizer.")
    negatives: PositiveInt | None = Field(
        default=None, description="Corrupted triples per true triple. Without it the sampler of PyKEEN decides."
    )
    inverse_triples: bool = Field(default=False, description="Whether to learn the inverse of each relation too.")
    pipeline: dict[str, Any] = Field(default={}, description='More options of PyKEEN\'s pipeline, such as {"stopper": "early"}.')
    seed: int = Field(
        default=42, ge=0, lt=2**32, description="Seed of the split and of the training. The same seed gives the same model."
    )
    device: str = Field(default="cpu", description="The device that trains, such as cpu or cuda.")


class KGOptions(TrainingOptions):
    """The section ``kg`` of project.yaml."""

    triples: ProjectPath | None = Field(
        default=None,
        description="A file with three columns, or a folder with train.txt, valid.txt and test.txt. Default: the graph.",
    )
    split: list[float] = Field(
        default=[0.8, 0.1, 0.1], description="The shares of the triples for training, validation and test. They add up to 1."
    )
    on_nodes: bool = Field(
        default=False, description="Whether to copy the vectors of entities to the nodes of the graph (property kg_embedding)."
    )

    @field_validator("split")
    @classmethod
    def _shares_are_a_whole(cls, shares: list[float]) -> list[float]:
        if len(shares) != 3 or not all(math.isfinite(share) and 0 <= share <= 1 for share in shares):
            raise ValueError(f"{shares} must be three shares between 0 and 1: training, validation and test.")
        if abs(sum(shares) - 1) >= 1e-6:
            raise ValueError(f"{shares} must add up to 1.")
        if not shares[0]:
            raise ValueError(f"{shares} leaves nothing for training. The first share must be greater than 0.")
        return shares
