"""Options of the corpus: where documents come from and how they are cut into chunks."""

from typing import Literal

from pydantic import Field, PositiveInt, model_validator

from resources.options import Options


class ChunkingOptions(Options):
    method: Literal["sentence", "paragraph", "fixed", "page"] = "sentence"
    size: PositiveInt = 1200
    overlap: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _overlap_below_size(self) -> "ChunkingOptions":
        if self.overlap >= self.size:
            raise ValueError(f"overlap ({self.overlap}) must be smaller than size ({self.size})")
        if self.overlap and self.method != "fixed":
            raise ValueError(f"overlap goes with method fixed, not with {self.method}; set it to 0")
        return self


class CorpusOptions(Options):
    path: str | None = "corpus"
    include: list[str] = ["**/*.txt", "**/*.md"]
    exclude: list[str] = []
    chunking: ChunkingOptions = ChunkingOptions()
    settle_seconds: float = Field(default=10.0, ge=0)
