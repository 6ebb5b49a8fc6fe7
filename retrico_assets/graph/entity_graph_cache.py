"""Keeps the entity graph between questions, in this process and in a file for others."""

import hashlib
import json
import threading
import zipfile
from pathlib import Path

import numpy as np

from resources.files.replacing import replace_atomically
from resources.graph.base import GraphStore
from resources.texts.base import TextStore
from retrico_assets.graph.entity_graph import EntityGraph, build_entity_graph

_FORMAT = "2"
"""Part of the file's name: raised when what is computed or stored changes."""
_MOST_HELD = 4
_held: dict[str, EntityGraph] = {}
_holding = threading.Lock()


def current_entity_graph(graph: GraphStore, texts: TextStore, cache: Path | None) -> EntityGraph:
    """The entity graph of the graph store as it is now, computed only when the store has changed.

    ``cache`` is the folder of its file; None keeps it in this process only.
    """
    revision = graph.revision()
    with _holding:
        known = _held.get(revision)
        if known is None and cache is not None:
            known = load(cache, revision)
        if known is None:
            known = build_entity_graph(graph, texts, revision)
            if cache is not None:
                save(known, cache)
        if revision not in _held and len(_held) >= _MOST_HELD:
            del _held[next(iter(_held))]
        return _held.setdefault(revision, known)


def save(graph: EntityGraph, folder: Path) -> None:
    """Write the file, whole or not at all, and remove files of earlier revisions."""
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
    """The entity graph of that revision; None when there is no file of it, or a broken one."""
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
