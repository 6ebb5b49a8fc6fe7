"""Keeps an EntityGraph on disk, for the next process that asks about the same graph."""

import hashlib
import json
import zipfile
from pathlib import Path

import numpy as np

from resources.files.replacing import replace_atomically
from retrico_assets.graph.entity_graph import EntityGraph

_FORMAT = "1"
"""Part of the file's name: raised when what is computed or stored changes."""


def save(graph: EntityGraph, folder: Path) -> None:
    """Write it whole or not at all, and remove those of earlier revisions."""
    folder.mkdir(parents=True, exist_ok=True)
    file = _file(folder, graph.revision)
    texts = {
        "revision": graph.revision,
        "entity_ids": graph.entity_ids,
        "chunk_ids": graph.chunk_ids,
        "relation_ids": graph.relation_ids,
        "names": graph.names,
    }
    with replace_atomically(file) as temporary, temporary.open("wb") as stream:
        np.savez(
            stream,
            texts=np.frombuffer(json.dumps(texts).encode(), np.uint8),
            frequency=graph.frequency,
            ends=graph.ends,
            data=graph.transition.data,
            indices=graph.transition.indices,
            indptr=graph.transition.indptr,
        )
    for old in folder.glob("entity_graph-*.npz"):
        if old != file:
            old.unlink(missing_ok=True)


def load(folder: Path, revision: str) -> EntityGraph | None:
    """The one of that revision; None if there is none, or none that can be read: then it is made again."""
    from scipy.sparse import csr_array

    try:
        with np.load(_file(folder, revision), allow_pickle=False) as parts:
            texts = json.loads(parts["texts"].tobytes())
            nodes = len(parts["indptr"]) - 1
            transition = csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=(nodes, nodes))
            ids = (texts["entity_ids"], texts["chunk_ids"], texts["relation_ids"])
            known = EntityGraph(texts["revision"], *ids, texts["names"], parts["frequency"], parts["ends"], transition)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    return known if known.revision == revision else None


def _file(folder: Path, revision: str) -> Path:
    return folder / f"entity_graph-{_FORMAT}-{hashlib.sha256(revision.encode()).hexdigest()[:16]}.npz"
