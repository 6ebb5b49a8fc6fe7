"""Options of the corpus: where documents come from and how they are cut into chunks."""

from typing import Literal

from pydantic import Field, model_validator

from resources.options import Options, ProjectPath


class ChunkingOptions(Options):
    """How documents are cut into chunks. Sizes count characters (code points).

    A sentence longer than ``size`` is cut at white space, and where there is none, at ``size``.
    """

    method: Literal["sentence", "paragraph", "fixed", "page"] = Field(
        default="sentence",
        description=(
            "How to cut: sentence (as many whole sentences as fit), paragraph (between blank lines), page (between form feeds, "
            'numbered in the chunk\'s metadata) or fixed (at "size"). Longer paragraphs and pages are cut at sentences.'
        ),
    )
    size: int = Field(default=1200, ge=1, description="Characters of the longest chunk.")
    overlap: int = Field(
        default=0, ge=0, description="Characters that neighbouring chunks share. Only method fixed can have an overlap."
    )

    @model_validator(mode="after")
    def _check_overlap(self) -> "ChunkingOptions":
        if self.overlap >= self.size:
            raise ValueError(f"overlap ({self.overlap}) must be smaller than size ({self.size}).")
        if self.overlap and self.method != "fixed":
            raise ValueError(f"overlap is {self.overlap}, but only method fixed has one, not {self.method}. Set it to 0.")
        return self


class CorpusOptions(Options):
    """Where documents come from."""

    path: ProjectPath | None = Field(
        default="corpus", validate_default=True, description="The folder that holds the documents, relative to project.yaml."
    )
    include: list[str] = Field(
        default=["**/*.txt", "**/*.md"], description="Patterns of the files to read, relative to the folder."
    )
    exclude: list[str] = Field(default=[], description="Patterns of files and folders to leave out.")
    chunking: ChunkingOptions = Field(default=ChunkingOptions(), description="How documents are cut into chunks.")
    settle_seconds: float = Field(
        default=10.0, ge=0, description="Seconds that a file must stay the same before the sensor starts a build for it."
    )
