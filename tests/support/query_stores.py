"""The graph stores that need no server of one's own, short stories to fill them with, and what every result must be."""

import hashlib
import math
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path

from resources.graph.base import GraphStore
from resources.records import Chunk, Document, DocumentGraph, Mention, RelationMention, Subgraph
from resources.text.names import identity_key
from resources.texts.base import TextStore
from resources.texts.sqlite import SqliteTextStore
from retrico_assets.graph.identity import entity_id, relation_id, resolve
from tests.support.query_world import empty_graph

GRAPHS = ("memory", "falkordb")
ODD_QUESTIONS = [
    "",
    "   \n\t",
    "?!…",
    "🤔🤷‍♀️",
    "the of and is",
    'Where was "Ana Ruiz" born?! (AND) OR NOT NEAR/3 * ^ : -',
    "Ana's life; C++; 100% & a=b -- '); DROP TABLE chunks",
    "MATCH (n) DETACH DELETE n",
    "東京はどこですか Ana Ruiz",
    "İSTANBUL ılık ISPARTA",
    "שלום مرحبا नमस्ते ภาษาไทย",
    "\0\x1b[31m",
    "Ana Ruiz " * 7000,
]

Fact = tuple[str, str, str, float]


@contextmanager
def opened(kind: str, folder: Path) -> Iterator[tuple[GraphStore, TextStore]]:
    """An empty graph store of that kind and an empty text store, closed again afterwards."""
    with closing(SqliteTextStore(folder / "texts.sqlite")) as texts, empty_graph(kind, folder / "graph") as graph:
        yield graph, texts


def tell(graph: GraphStore, texts: TextStore, facts: Sequence[Fact]) -> None:
    """Write (head, label, tail, score) facts, each a document of one chunk, "<head> <label> <tail>."; its id is that text."""
    documents = [_document(*fact) for fact in facts]
    graph.replace_documents(documents)
    texts.put_documents([one.document for one in documents])
    texts.replace_chunks({one.document.id: one.chunks for one in documents})


def id_of(name: str) -> str:
    return entity_id(identity_key(name), "thing", None, "name")


def fact_id(head: str, label: str, tail: str) -> str:
    return relation_id(id_of(head), label, id_of(tail), None, None)


def names(found: Subgraph) -> list[str]:
    return [one.record.label for one in found.entities]


def triples(found: Subgraph) -> list[tuple[str, str, str]]:
    name = {one.record.id: one.record.label for one in found.entities}
    return [(name[one.record.head_id], one.record.label, name[one.record.tail_id]) for one in found.relations]


def scores(found: Subgraph) -> list[float]:
    return [round(one.score, 6) for one in found.relations]


def check(found: Subgraph, k: int) -> None:
    """What holds for every strategy: ranked, finite, each once, cut at k, ends of relations among the entities."""
    for ranking in (found.entities, found.relations, found.chunks):
        ids = [one.record.id for one in ranking]
        assert len(set(ids)) == len(ids)
        assert all(math.isfinite(one.score) for one in ranking)
        assert all(one.score >= other.score for one, other in pairwise(ranking))
    assert len(found.relations) <= k
    assert len(found.chunks) <= k
    assert len(found.entities) <= k + 2 * len(found.relations)
    ends = {end for one in found.relations for end in (one.record.head_id, one.record.tail_id)}
    assert ends <= {one.record.id for one in found.entities}


def _document(head: str, label: str, tail: str, score: float) -> DocumentGraph:
    text = f"{head} {label} {tail}."
    document = Document(f"doc:{text}", text, text, text, hashlib.sha256(text.encode()).hexdigest())
    chunk = Chunk(text, document.id, 0, text, 0, len(text))
    first = Mention(chunk.id, document.id, 0, len(head), head, "thing", 0.9)
    start = len(text) - 1 - len(tail)
    second = Mention(chunk.id, document.id, start, start + len(tail), tail, "thing", 0.9)
    places = (first.start, first.end, head, "thing", second.start, second.end, tail, "thing")
    resolved = resolve([first, second], [RelationMention(chunk.id, document.id, *places, label, score)])
    return DocumentGraph(document, (chunk,), resolved.mentions, resolved.relations, document.text_hash)
