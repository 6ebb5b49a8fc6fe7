"""Computes what the graph should hold, and brings the graph store up to date."""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from resources.graph.base import GraphStore
from resources.records import Chunk, Document, DocumentGraph, Mention, RelationMention
from retrico_assets.graph.identity import IdentityPolicy, resolve

# Raise it when the same records are to be written in another form, so that every document is written again.
_FORM = 2

_DOCUMENTS_A_BATCH = 50

R = TypeVar("R", Chunk, Mention, RelationMention)


def document_graphs(
    documents: Sequence[Document],
    chunks: Iterable[Chunk],
    mentions: Iterable[Mention],
    relations: Iterable[RelationMention],
    policy: IdentityPolicy,
) -> tuple[list[DocumentGraph], dict[str, int]]:
    """One graph a document, with its entities resolved, and how many records were left out, by reason."""
    chunks_by, mentions_by, relations_by = _by_document(chunks), _by_document(mentions), _by_document(relations)
    graphs, dropped = [], Counter[str]()
    for document in documents:
        resolution = resolve(mentions_by[document.id], relations_by[document.id], policy)
        dropped.update(resolution.dropped)
        pieces = tuple(chunks_by[document.id])
        fingerprint = _fingerprint(document, pieces, resolution.mentions, resolution.relations)
        graphs.append(DocumentGraph(document, pieces, resolution.mentions, resolution.relations, fingerprint))
    return graphs, dict(dropped)


def update_graph(
    store: GraphStore, graphs: Sequence[DocumentGraph], on_progress: Callable[[int, int], None] = lambda done, total: None
) -> tuple[int, int, int]:
    """Write the documents whose graph differs from the stored one, and delete the stored documents that are not among them.

    Each batch is written whole or not at all, and a document's fingerprint is stored with it, so the next update finishes one
    that was killed. Returns (documents replaced, documents deleted, rows written).
    """
    stored = store.document_fingerprints()
    gone = sorted(stored.keys() - {graph.document.id for graph in graphs})
    changed = [graph for graph in graphs if stored.get(graph.document.id) != graph.fingerprint]
    deleted = store.delete_documents(gone) if gone else 0
    rows = 0
    for start in range(0, len(changed), _DOCUMENTS_A_BATCH):
        batch = changed[start : start + _DOCUMENTS_A_BATCH]
        rows += store.replace_documents(batch)
        on_progress(start + len(batch), len(changed))
    return len(changed), deleted, rows


def _by_document(items: Iterable[R]) -> defaultdict[str, list[R]]:
    grouped: defaultdict[str, list[R]] = defaultdict(list)
    for item in items:
        grouped[item.document_id].append(item)
    return grouped


def _fingerprint(document: Document, *parts: Sequence[Any]) -> str:
    digest = hashlib.sha256(f"{_FORM}\n".encode())
    head = [document.id, document.source, document.title, document.text_hash, dict(document.metadata)]
    digest.update(_canonical(head))
    for part in parts:
        digest.update(_canonical(part))
    return digest.hexdigest()


def _canonical(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=_plain).encode("utf-8", "surrogatepass")


def _plain(value: Any) -> Any:
    return [getattr(value, field.name) for field in fields(value)] if is_dataclass(value) else str(value)
