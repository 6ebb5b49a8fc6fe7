"""Graph store on made data: 200 documents, 2,000 chunks, 20,000 mentions, 5,000 entities, 8,000 relations.

``python bench/graph.py`` prints a table. CPU seconds are those of this process and of the database server together.
"""

import random
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from falkordb import Graph

from resources.graph.checks import row_count
from resources.graph.falkordb.embedded import embedded_status, open_embedded, stop_embedded
from resources.graph.falkordb.store import FalkorDBGraphStore
from resources.graph.fulltext import search_text
from resources.records import Chunk, Document, DocumentGraph, Mention, ResolvedMention, ResolvedRelation

DOCUMENTS, CHUNKS_EACH, MENTIONS_EACH, ENTITIES, RELATIONS_EACH = 200, 10, 10, 5_000, 4
RUNS = 5
WORDS = [f"word{n}" for n in range(2_000)]
TYPES = ["person", "organization", "location", "date", "product"]
LABELS = ["works at", "born in", "located in", "founded", "part of"]
_NAMESPACE = uuid.UUID(int=7)


def made_documents(seed: int = 0) -> list[DocumentGraph]:
    """Documents of the stated shape; some entities are far more frequent than others, and every one comes at least once."""
    chance = random.Random(seed)
    rest = list(range(ENTITIES))
    chance.shuffle(rest)
    return [_made_document(chance, n, rest) for n in range(DOCUMENTS)]


def _made_document(chance: random.Random, number: int, rest: list[int]) -> DocumentGraph:
    document_id = _id("document", number)
    chunks, mentions, relations = [], [], []
    for index in range(CHUNKS_EACH):
        text = " ".join(chance.choices(WORDS, k=80))
        chunk_id = _id("chunk", document_id, index)
        chunks.append(Chunk(chunk_id, document_id, index, text, index * 600, index * 600 + len(text)))
        here = [rest.pop() if rest and n < 3 else int(ENTITIES * chance.random() ** 3) for n in range(MENTIONS_EACH)]
        for place, entity in enumerate(here):
            name = f"Entity number {entity}"
            mention = Mention(chunk_id, document_id, place * 30, place * 30 + len(name), name, TYPES[entity % 5], chance.random())
            mentions.append(ResolvedMention(_id("entity", entity), name.casefold(), mention))
        for n in range(RELATIONS_EACH):
            head, tail, label = _id("entity", here[n]), _id("entity", here[n + 1]), chance.choice(LABELS)
            relations.append(ResolvedRelation(_id(head, label, tail), head, label, tail, chunk_id, chance.random()))
    document = Document(document_id, f"{number}.txt", f"Document {number}", "", _id("hash", number))
    return DocumentGraph(document, tuple(chunks), tuple(mentions), tuple(relations), _id("fingerprint", number))


def _id(*parts: object) -> str:
    return str(uuid.uuid5(_NAMESPACE, repr(parts)))


def run() -> list[tuple[str, str, str]]:
    """Figures of writing and reading, each with its budget."""
    documents = made_documents()
    rows = sum(map(row_count, documents))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            with open_embedded(folder) as store:
                ours, bare = _write_seconds(store, folder, documents)
                wall = ours[1]
                figures = [
                    ("rows written per CPU second", f"{rows / ours[0]:,.0f}", ">= 15,000"),
                    ("of a bare batched client", f"{bare[0] / ours[0]:.2f}", ">= 0.80"),
                    ("rows written per second of wall clock", f"{rows / wall:,.0f}", ""),
                ]
                return figures + _read_figures(store, documents)
        finally:
            stop_embedded(folder)


def _write_seconds(
    store: FalkorDBGraphStore, folder: Path, documents: list[DocumentGraph]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Median CPU and wall seconds of this store and of a bare client, in turns on one server."""
    pid = embedded_status(folder).pid
    assert pid is not None
    ours, bare = [], []
    for _ in range(RUNS):
        store.query("MATCH (n) DETACH DELETE n", read_only=False)
        with _measured(pid, bare):
            write_bare(Graph(store._transport.connected(), "retrico"), documents)
        store.query("MATCH (n) DETACH DELETE n", read_only=False)
        with _measured(pid, ours):
            store.replace_documents(documents)
    return tuple(map(statistics.median, zip(*ours, strict=True))), tuple(map(statistics.median, zip(*bare, strict=True)))


@contextmanager
def _measured(pid: int, into: list[tuple[float, float]]) -> Iterator[None]:
    cpu, wall = _cpu_seconds(pid), time.perf_counter()
    yield
    into.append((_cpu_seconds(pid) - cpu, time.perf_counter() - wall))


def _cpu_seconds(pid: int) -> float:
    nanoseconds = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        nanoseconds += int((task / "schedstat").read_text().split()[0])
    return nanoseconds / 1e9 + time.process_time()


def _searchable(text: str) -> dict[str, str]:
    return {"search_text": search_text(text)}


def write_bare(graph: Graph, documents: list[DocumentGraph], size: int = 2_000) -> None:
    """The same rows, searchable too, by plain UNWIND batches of maps: no checks, no evidence merged, not atomic."""

    def send(statement: str, rows: list[dict[str, object]]) -> None:
        for start in range(0, len(rows), size):
            graph.query("UNWIND $rows AS r " + statement, {"rows": rows[start : start + size]})

    send(
        "CREATE (:Document {id: r.id, source: r.source, title: r.title, text_hash: r.text_hash, fingerprint: r.fingerprint})",
        [
            {
                "id": g.document.id,
                "source": g.document.source,
                "title": g.document.title,
                "text_hash": g.document.text_hash,
                "fingerprint": g.fingerprint,
            }
            for g in documents
        ],
    )
    chunks = [c for g in documents for c in g.chunks]
    send(
        "MATCH (d:Document {id: r.document_id}) CREATE (:Chunk {id: r.id, document_id: r.document_id, index: r.index,"
        " search_text: r.search_text,"
        " text: r.text, start: r.start, end: r.end})-[:PART_OF]->(d)",
        [
            {"id": c.id, "document_id": c.document_id, "index": c.index, "text": c.text, "start": c.start, "end": c.end}
            | _searchable(c.text)
            for c in chunks
        ],
    )
    pairs = [{"a": a.id, "b": b.id} for g in documents for a, b in zip(g.chunks, g.chunks[1:], strict=False)]
    send("MATCH (a:Chunk {id: r.a}), (b:Chunk {id: r.b}) CREATE (a)-[:NEXT]->(b)", pairs)
    entities = {m.entity_id: m for g in documents for m in g.mentions}
    send(
        "MERGE (e:Entity {id: r.id}) SET e.label = r.label, e.search_text = r.search_text, e.key = r.key, e.entity_type = r.type",
        [
            {
                "id": id_,
                "label": m.mention.text,
                "search_text": search_text(m.mention.text),
                "key": m.key,
                "type": m.mention.label,
            }
            for id_, m in entities.items()
        ],
    )
    send(
        "MATCH (e:Entity {id: r.entity}), (c:Chunk {id: r.chunk}) CREATE (e)-[:MENTIONED_IN {start: r.start, end: r.end,"
        " score: r.score, text: r.text, label: r.label}]->(c)",
        [
            {
                "entity": m.entity_id,
                "chunk": m.mention.chunk_id,
                "start": m.mention.start,
                "end": m.mention.end,
                "score": m.mention.score,
                "text": m.mention.text,
                "label": m.mention.label,
            }
            for g in documents
            for m in g.mentions
        ],
    )
    relations = [r for g in documents for r in g.relations]
    for label in sorted({r.label for r in relations}):
        send(
            f"MATCH (h:Entity {{id: r.head}}), (t:Entity {{id: r.tail}})"
            f" MERGE (h)-[x:{label.upper().replace(' ', '_')} {{id: r.id}}]->(t)"
            " SET x.label = r.label, x.score = r.score, x.chunk_ids = [r.chunk]",
            [
                {
                    "head": r.head_id,
                    "tail": r.tail_id,
                    "id": r.relation_id,
                    "label": r.label,
                    "score": r.score,
                    "chunk": r.chunk_id,
                }
                for r in relations
                if r.label == label
            ],
        )


def _read_figures(store: FalkorDBGraphStore, documents: list[DocumentGraph]) -> list[tuple[str, str, str]]:
    chance = random.Random(1)
    keys = [m.key for m in chance.sample([m for g in documents for m in g.mentions], 100)]
    hub = _hub(documents[0])
    store.replace_documents([hub])
    hub_id = hub.relations[0].head_id
    two_hops = [_milliseconds(lambda key=key: _ask(store, key)) for key in keys]
    with_chunks = [_milliseconds(lambda key=key: _ask_for_all_chunks(store, key)) for key in keys]
    around = [_milliseconds(lambda: store.neighbourhood([hub_id], 1, limit=2_000)) for _ in range(15)]
    everything = _milliseconds(lambda: sum(1 for _ in store.relations()))
    again = documents[17]
    rewrite = [_milliseconds(lambda: store.replace_documents([again])) for _ in range(7)]
    return [
        ("entity query at 2 hops, p50", f"{statistics.median(two_hops):.1f} ms", "<= 8 ms"),
        ("entity query at 2 hops, p95", f"{sorted(two_hops)[94]:.1f} ms", ""),
        ("the same, and five chunks of each entity found, p50", f"{statistics.median(with_chunks):.1f} ms", ""),
        ("hub of 1,000 neighbours, 1 hop", f"{statistics.median(around):.1f} ms", "<= 50 ms"),
        ("one document of 150 rows written again", f"{statistics.median(rewrite):.1f} ms", ""),
        ("all relations streamed", f"{everything:.0f} ms", ""),
    ]


def _ask(store: FalkorDBGraphStore, key: str) -> None:
    """What the strategy "entity" asks of the graph."""
    seeds = [entity.id for entity in store.find_entities(keys=[key])]
    store.neighbourhood(seeds, 2)
    store.chunks_of(seeds, limit=50)


def _ask_for_all_chunks(store: FalkorDBGraphStore, key: str) -> None:
    seeds = [entity.id for entity in store.find_entities(keys=[key])]
    around = store.neighbourhood(seeds, 2)
    store.chunks_of([entity.id for entity, _ in around.entities], limit=5)


def _hub(pattern: DocumentGraph) -> DocumentGraph:
    """A document that joins one entity to 1,000 others."""
    document = replace(pattern.document, id=_id("hub"))
    chunk = replace(pattern.chunks[0], id=_id("hub", "chunk"), document_id=document.id)
    names = [f"Hub {n}" for n in range(1_001)]
    mentions = tuple(
        ResolvedMention(_id(name), name.casefold(), Mention(chunk.id, document.id, n, n + len(name), name, "person", 0.5))
        for n, name in enumerate(names)
    )
    relations = tuple(ResolvedRelation(_id("hub", n), _id(names[0]), "knows", _id(n), chunk.id, 0.5) for n in names[1:])
    return DocumentGraph(document, (chunk,), mentions, relations, "hub")


def _milliseconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1e3


if __name__ == "__main__":
    for name, figure, budget in run():
        print(f"{name:<50} {figure:>12}  {budget}")
