"""The whole graph as one sparse matrix, for walks over all of it: entities, titles and chunks, and the edges between them."""

import re
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from resources.graph.base import GraphStore
from resources.text.names import identity_key
from resources.texts.base import TextStore

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_TITLE_WEIGHT = 2.0
_REMARK = re.compile(r"\s*[(（][^()（）]*[)）]\s*$")


@dataclass(frozen=True)
class EntityGraph:
    """Nodes are numbered: entities, then titles that are no entity's name, then chunks.

    ``transition`` is column-stochastic (nodes, nodes): a walker on node j goes to node i with transition[i, j].
    ``frequency`` (entities and titles) counts the documents that mention the node. ``names`` are nodes by identity key: of
    an entity, or of a document's title. ``ends`` (relations, 2) are the nodes of each relation's head and tail.
    """

    revision: str
    entity_ids: list[str]
    chunk_ids: list[str]
    relation_ids: list[str]
    names: dict[str, list[int]]
    frequency: np.ndarray
    ends: np.ndarray
    transition: "csr_array"

    @cached_property
    def entity_number(self) -> dict[str, int]:
        return {id_: number for number, id_ in enumerate(self.entity_ids)}

    @cached_property
    def relation_number(self) -> dict[str, int]:
        """Row of ``ends`` by relation id."""
        return {id_: number for number, id_ in enumerate(self.relation_ids)}

    @cached_property
    def chunk_number(self) -> dict[str, int]:
        """Node by chunk id."""
        return {id_: number for number, id_ in enumerate(self.chunk_ids, self.first_chunk)}

    @property
    def first_chunk(self) -> int:
        return len(self.frequency)

    def walk(self, seeds: np.ndarray, damping: float, steps: int) -> np.ndarray:
        """Personalised PageRank (Haveliwala, WWW 2002) by power iteration.

        ``seeds`` (nodes,) sum to 1. Each step computes share = damping * transition @ share + (1 - damping) * seeds; the result
        is the share of time (nodes,) that a walker spends on each node.
        """
        share = seeds
        for _ in range(steps):
            share = damping * (self.transition @ share) + (1 - damping) * seeds
        return share


def title_keys(title: str) -> list[str]:
    """The identity keys of a title: in full, and without the remark in brackets that tells namesakes apart."""
    keys = [identity_key(title), identity_key(_REMARK.sub("", title))]
    return [key for key in dict.fromkeys(keys) if key]


def build_entity_graph(graph: GraphStore, texts: TextStore, revision: str) -> EntityGraph:
    """Read the whole graph, in a handful of streams, and compute the matrix.

    Weights of edges, with N chunks in all and n documents that mention a name:

    - entity - chunk that mentions it: log(1 + N / n);
    - title - chunk of its document: 2 log(1 + N / n), or log(1 + N / n) for a title without its remark in brackets. The nodes are
      the entities of that name where there are any;
    - head - tail of a relation: its score.
    """
    chunks = texts.chunk_ids()
    edges = _Edges({id_: document for document, ids in chunks.items() for id_ in ids})
    names: dict[str, list[int]] = defaultdict(list)
    entity_ids = []
    for entity in graph.entities():
        names[entity.key].append(edges.add_name())
        entity_ids.append(entity.id)
    number = {id_: node for node, id_ in enumerate(entity_ids)}
    for entity_id, chunk_id, _ in graph.mention_counts():
        if entity_id in number:
            edges.add(number[entity_id], chunk_id, 1.0)
    for document, title in texts.document_titles().items():
        for place, key in enumerate(title_keys(title)):
            if key not in names:
                names[key].append(edges.add_name())
            for node in names[key]:
                for chunk_id in chunks.get(document, ()):
                    edges.add(node, chunk_id, 1.0 if place else _TITLE_WEIGHT)
    relations = [(r.id, number[r.head_id], number[r.tail_id], max(r.score, 0.0)) for r in graph.relations()]
    frequency = edges.frequency()
    rows, columns, weights = edges.weighted(frequency, len(chunks))
    heads_tails = np.array([r[1:3] for r in relations], np.int64).reshape(-1, 2)
    return EntityGraph(
        revision,
        entity_ids,
        list(edges.chunk_number),
        [r[0] for r in relations],
        dict(names),
        frequency,
        heads_tails,
        _transition(
            np.concatenate([rows, heads_tails[:, 0]]),
            np.concatenate([columns, heads_tails[:, 1]]),
            np.concatenate([weights, np.array([r[3] for r in relations], np.float64)]),
            len(frequency) + len(edges.chunk_number),
        ),
    )


@dataclass
class _Edges:
    """Edges between names (entities and titles) and chunks."""

    document_of: dict[str, str]
    names: int = 0
    factor: dict[tuple[int, int], float] = field(default_factory=dict)

    @cached_property
    def chunk_number(self) -> dict[str, int]:
        return {id_: number for number, id_ in enumerate(self.document_of)}

    def add_name(self) -> int:
        self.names += 1
        return self.names - 1

    def add(self, name: int, chunk_id: str, factor: float) -> None:
        chunk = self.chunk_number.get(chunk_id)
        if chunk is not None:
            self.factor[name, chunk] = max(self.factor.get((name, chunk), 0.0), factor)

    def frequency(self) -> np.ndarray:
        """Documents that mention each name (names,)."""
        documents = list(self.document_of.values())
        pairs = {(name, documents[chunk]) for name, chunk in self.factor}
        return np.bincount([name for name, _ in pairs], minlength=self.names).astype(np.float64)

    def weighted(self, frequency: np.ndarray, documents: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Name nodes, chunk nodes and weights of the edges, three arrays of one length."""
        pairs = np.array(list(self.factor), np.int64).reshape(-1, 2)
        factor = np.fromiter(self.factor.values(), np.float64, len(self.factor))
        rarity = np.log1p(documents / np.maximum(frequency, 1.0))
        return pairs[:, 0], pairs[:, 1] + self.names, factor * rarity[pairs[:, 0]]


def _transition(rows: np.ndarray, columns: np.ndarray, weights: np.ndarray, nodes: int) -> "csr_array":
    """The column-stochastic matrix (nodes, nodes) of undirected, weighted edges."""
    from scipy.sparse import coo_array, csr_array, diags_array

    # Every edge in both directions; then each column is divided by its sum.
    both = (np.concatenate([rows, columns]), np.concatenate([columns, rows]))
    adjacency = csr_array(coo_array((np.concatenate([weights, weights]), both), shape=(nodes, nodes)))
    total = np.asarray(adjacency.sum(axis=0)).ravel()
    return csr_array(adjacency @ diags_array(1.0 / np.where(total > 0, total, 1.0)))
