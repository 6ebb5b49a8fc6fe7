"""Sources become documents, documents become chunks."""

from pathlib import Path

import dagster as dg
import pandas as pd
from pydantic import Field

from resources.dagster_resources import TextStoreResource
from resources.frames import chunks_frame, documents_frame, records
from resources.records import Document
from retrico_assets import report
from retrico_assets.corpus.chunking import chunk_document
from retrico_assets.corpus.gather import Gathered, gather
from retrico_assets.corpus.options import ChunkingOptions, CorpusOptions
from retrico_assets.corpus.reading import InlineText
from retrico_assets.failures import as_dagster_failure
from retrico_assets.frames_io import FRAME
from retrico_assets.progress import reporter
from retrico_assets.project import BuildLock, ProjectResource
from retrico_assets.run_config import RunConfig, fields_of


class InlineTextConfig(dg.Config):
    """A text given in the run's configuration instead of a file."""

    text: str = Field(description="The text itself.")
    source: str | None = Field(default=None, description="What to call it: the document's id depends on it. Default: its hash.")
    title: str | None = Field(default=None, description="Its title. Default: made from the source.")


@fields_of(CorpusOptions, "path", "include", "exclude")
class DocumentsConfig(RunConfig):
    """What to read in this run. Values that are left out are those of `corpus` in project.yaml."""

    texts: list[InlineTextConfig] | None = Field(
        default=None, description="Texts to read beside the folder. They stay until a run names another list; [] removes them."
    )


@fields_of(ChunkingOptions)
class ChunksConfig(RunConfig):
    """How to cut in this run. Values that are left out are those of `corpus.chunking` in project.yaml."""


ALL_READ = dg.AssetCheckSpec("all_documents_read", asset="documents", description="Every file of the corpus could be read.")
OFFSETS_MATCH = dg.AssetCheckSpec(
    "offsets_match", asset="chunks", description="The text of each chunk is the text of its document between its offsets."
)


@dg.asset(group_name="corpus", io_manager_key="frames", dagster_type=FRAME, kinds={"file", "sqlite"}, check_specs=[ALL_READ])
@as_dagster_failure
def documents(
    context: dg.AssetExecutionContext,
    config: DocumentsConfig,
    project: ProjectResource,
    text_store: TextStoreResource,
    build_lock: BuildLock,
) -> dg.MaterializeResult:
    """The texts of the corpus folder and of the run's configuration, decoded and cleaned once.

    Idempotent: only new, changed and removed documents touch the text store. A file that can't be read is reported and
    its stored version kept.
    """
    watch = report.Stopwatch()
    corpus = config.replace_in(project.settings.corpus)
    texts = None if config.texts is None else [InlineText(t.text, t.source, t.title) for t in config.texts]
    with text_store.connect() as store:
        gathered = gather(
            store,
            Path(corpus.path).expanduser() if corpus.path else None,
            corpus.include,
            corpus.exclude,
            texts,
            reporter("documents", context.log.info, "files"),
        )
        touched = {*gathered.new, *gathered.changed}
        written = store.put_documents([d for d in gathered.documents if d.id in touched]) if touched else 0
        written += store.delete_documents(gathered.removed) if gathered.removed else 0
    for problem in gathered.problems:
        (context.log.error if problem.failed else context.log.info)(f"{problem.source}: {problem.state}: {problem.reason}")
    frame = documents_frame(gathered.documents)
    return dg.MaterializeResult(
        value=frame,
        metadata={
            **report.sample(frame.assign(characters=frame["text"].str.len()), ["source", "title", "characters", "text"]),
            **_document_counts(gathered, written),
            **report.listing("problems", {p.source: f"{p.state}: {p.reason}" for p in gathered.problems}),
            **report.listing("skipped_files", gathered.skipped),
            **watch.rates(len(frame)),
        },
        check_results=[
            dg.AssetCheckResult(
                passed=not gathered.failed,
                check_name=ALL_READ.name,
                metadata=report.counts(failed=len(gathered.failed))
                | report.listing("problems", {p.source: p.reason for p in gathered.failed}),
            )
        ],
    )


def _document_counts(gathered: Gathered, written: int) -> dict[str, dg.MetadataValue]:
    return report.counts(
        total=len(gathered.documents),
        new=len(gathered.new),
        changed=len(gathered.changed),
        removed=len(gathered.removed),
        unchanged=len(gathered.unchanged),
        failed=len(gathered.failed),
        skipped=len(gathered.skipped),
        rows_written=written,
    )


@dg.asset(group_name="corpus", io_manager_key="frames", dagster_type=FRAME, kinds={"sqlite"}, check_specs=[OFFSETS_MATCH])
@as_dagster_failure
def chunks(
    context: dg.AssetExecutionContext,
    config: ChunksConfig,
    documents: pd.DataFrame,
    project: ProjectResource,
    text_store: TextStoreResource,
    build_lock: BuildLock,
) -> dg.MaterializeResult:
    """Documents cut into pieces of bounded size, each knowing its place.

    Idempotent: chunk ids follow from the document, the place and the text, and only documents whose chunks differ from
    the stored ones are written.
    """
    watch = report.Stopwatch()
    options = config.replace_in(project.settings.corpus.chunking)
    texts = records(documents, Document)
    cut = {document.id: chunk_document(document, options) for document in texts}
    with text_store.connect() as store:
        stored = store.chunk_ids()
        changed = {d: pieces for d, pieces in cut.items() if stored.get(d, []) != [piece.id for piece in pieces]}
        written = store.replace_chunks(changed) if changed else 0
    pieces = [piece for document in texts for piece in cut[document.id]]
    misplaced = {
        piece.id: f"{document.source} from {piece.start} to {piece.end}"
        for document in texts
        for piece in cut[document.id]
        if document.text[piece.start : piece.end] != piece.text
    }
    frame = chunks_frame(pieces)
    return dg.MaterializeResult(
        value=frame,
        metadata={
            **report.sample(frame, ["document_id", "index", "start", "end", "text"]),
            **report.counts(documents_written=len(changed), rows_written=written),
            **watch.rates(len(frame)),
        },
        check_results=[
            dg.AssetCheckResult(
                passed=not misplaced, check_name=OFFSETS_MATCH.name, metadata=report.listing("misplaced", misplaced)
            )
        ],
    )
