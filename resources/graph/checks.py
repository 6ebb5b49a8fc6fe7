"""Checks of what is to be written, whatever the backend, and how it is cut into batches."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from resources.errors import StoreError
from resources.graph.encoding import edge_type
from resources.records import DocumentGraph

_LONGEST_ID = 500
_CONTROL = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


def check_documents(documents: Sequence[DocumentGraph]) -> None:
    """Check documents before anything of them is written.

    Ids must be usable (``is_id``), ids of documents and chunks unique; mentions and relations must lie in chunks of their
    document and have finite scores; a relation needs a label, and its document must mention both its ends.

    Raises:
        StoreError: names the first row that breaks a rule.
    """
    _check_unique("document", (graph.document.id for graph in documents))
    _check_unique("chunk", (chunk.id for graph in documents for chunk in graph.chunks))
    for graph in documents:
        _check_document(graph)


def _check_unique(kind: str, ids: Iterable[str]) -> None:
    seen: set[str] = set()
    for row, id_ in enumerate(ids):
        _check_id(kind, row, id_)
        if id_ in seen:
            raise StoreError(f"The {kind} id {id_!r} comes twice, again in row {row}. Ids must be unique over all documents.")
        seen.add(id_)


def is_id(id_: Any) -> bool:
    """Whether this can be an id. Indexes of databases ignore outer blanks and control characters, and miss very long texts."""
    return isinstance(id_, str) and id_ == id_.strip() and 0 < len(id_) <= _LONGEST_ID and not _CONTROL.search(id_)


def _check_id(kind: str, row: int, id_: Any) -> None:
    if not is_id(id_):
        raise StoreError(
            f"Row {row} of the {kind}s has the id {id_!r:.100}. An id is text of 1 to {_LONGEST_ID} characters, without"
            " blanks around it and without control characters. Give the row such an id."
        )


def _check_document(graph: DocumentGraph) -> None:
    where = f"Document {graph.document.id!r}"
    chunk_ids = {chunk.id for chunk in graph.chunks}
    if not isinstance(graph.fingerprint, str) or not graph.fingerprint:
        raise StoreError(f"{where} has no fingerprint. Set one that identifies its content.")
    for chunk in graph.chunks:
        if chunk.document_id != graph.document.id:
            raise StoreError(
                f"{where} has chunk {chunk.id!r}, whose document_id is {chunk.document_id!r}. They must be the same."
            )
    entity_ids: set[str] = set()
    for row, resolved in enumerate(graph.mentions):
        if resolved.entity_id not in entity_ids:
            _check_id("entity mention", row, resolved.entity_id)
            entity_ids.add(resolved.entity_id)
        _check_evidence("mention", row, where, resolved.mention.chunk_id, chunk_ids, resolved.mention.score)
    for row, relation in enumerate(graph.relations):
        _check_id("relation", row, relation.relation_id)
        edge_type(relation.label)
        _check_evidence("relation", row, where, relation.chunk_id, chunk_ids, relation.score)
        for end in (relation.head_id, relation.tail_id):
            if end not in entity_ids:
                raise StoreError(
                    f"{where}: relation {row} ({relation.label!r}) has the end {end!r}, which no mention of the document names."
                    " Leave the relation out, or add the mention."
                )


def _check_evidence(kind: str, row: int, where: str, chunk_id: str, chunk_ids: set[str], score: float) -> None:
    if chunk_id not in chunk_ids:
        raise StoreError(f"{where}: {kind} {row} is in chunk {chunk_id!r}, which the document does not have.")
    if not isinstance(score, int | float) or not math.isfinite(score):
        raise StoreError(f"{where}: {kind} {row} has the score {score!r}. A score must be a finite number.")


def row_count(graph: DocumentGraph) -> int:
    """How many rows a document is: itself, its chunks, mentions and relation evidence."""
    return 1 + len(graph.chunks) + len(graph.mentions) + len(graph.relations)


def batches(documents: Sequence[DocumentGraph], rows: int) -> Iterator[list[DocumentGraph]]:
    """Cut into runs of whole documents, each of at most ``rows`` rows, or of one larger document."""
    batch: list[DocumentGraph] = []
    size = 0
    for graph in documents:
        if batch and size + row_count(graph) > rows:
            yield batch
            batch, size = [], 0
        batch.append(graph)
        size += row_count(graph)
    if batch:
        yield batch
