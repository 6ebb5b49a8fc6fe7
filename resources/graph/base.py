"""What every graph store can do. ``resources.testing.graph_store`` holds these promises as tests."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any, ClassVar, Self

from resources.graph.vectors import VectorsReplaced
from resources.options import Options
from resources.records import Chunk, Community, DocumentGraph, Entity, GraphStats, Neighbourhood, Path, Relation, Scored
from resources.store import Store


class GraphStore(Store):
    """Entities, relations and where they are said. Bulk first: a call costs a handful of round trips, whatever its size.

    A window of dates keeps a relation whose end is empty or not before ``active_after``, and whose start is empty or not after
    ``active_before``. Dates are ISO 8601 text and compared as text, so that ``2020`` is before ``2020-05``.
    """

    options: ClassVar[type[Options]] = Options
    """The backend's own options: the keys beside ``stores.graph.backend``. The default is none."""
    requires: ClassVar[tuple[str, ...]] = ()
    """Modules of other packages that must be installed for it."""

    @classmethod
    @abstractmethod
    def open(cls, options: Any, folder: FilePath) -> Self:
        """Open the store of a project.

        Args:
            options: an instance of this class's ``options``.
            folder: where an embedded database keeps its files. A backend with a server of its own ignores it.

        Raises:
            StoreError: the store can't be opened.
        """

    @abstractmethod
    def document_fingerprints(self) -> dict[str, str]:
        """Fingerprint of each document that is stored whole, by document id."""

    @abstractmethod
    def replace_documents(self, documents: Sequence[DocumentGraph]) -> int:
        """Make the store say of these documents what they say now, and nothing else.

        What a document no longer says goes away, with the entities that nothing else mentions. A document is replaced
        whole or not at all; a document whose replacement was cut short has no fingerprint and can be replaced again.
        Relations whose ends their own document does not mention are refused with StoreError before
        anything is written.

        Returns the number of rows written (documents, chunks, mentions, relation evidence).
        """

    @abstractmethod
    def delete_documents(self, document_ids: Sequence[str]) -> int:
        """Forget these documents and the entities that nothing else mentions; unknown ids are passed over. Returns how many."""

    @abstractmethod
    def find_entities(self, *, ids: Sequence[str] = (), keys: Sequence[str] = ()) -> list[Entity]:
        """Entities with one of these ids or identity keys, ordered by id, each once."""

    @abstractmethod
    def find_chunks(self, ids: Sequence[str]) -> list[Chunk]:
        """Chunks with one of these ids, ordered by id, each once."""

    @abstractmethod
    def search_entities(self, text: str, k: int) -> list[Scored[Entity]]:
        """The ``k`` entities whose labels share most with a mention, best first, equals by id.

        Words are those of ``resources.text.words``: whole words, however they are written, never parts of them (Paris does not
        find Parisian Bakery). A label of the same words comes first, and more of the mention's words count more than
        fewer; scores go from 0 to 1. Nothing in ``text`` is an operator; a text without words finds nothing.
        """

    @abstractmethod
    def search_chunks(self, question: str, k: int) -> list[Scored[Chunk]]:
        """The ``k`` chunks whose texts answer a question best by its words, best first, equals by id.

        The question is taken as it is written: nothing in it is an operator, stop words are passed over
        (``resources.text.words``). Scores are positive, and differ from backend to backend. A question without words finds
        nothing.
        """

    @abstractmethod
    def neighbourhood(
        self,
        entity_ids: Sequence[str],
        hops: int,
        limit: int = 1000,
        *,
        active_after: str | None = None,
        active_before: str | None = None,
    ) -> Neighbourhood:
        """Breadth-first from the seeds over entity-entity edges, both directions, until ``hops`` or ``limit`` entities.

        Seeds are at hop 0 and always kept (unknown ids are passed over); nearer entities come first, then by id.
        Relations are all those among the found entities. Relations outside the window of dates are neither walked nor given.
        """

    @abstractmethod
    def shortest_paths(self, pairs: Sequence[tuple[str, str]], max_length: int = 5, limit: int = 3) -> list[list[Path]]:
        """For each pair of entity ids up to ``limit`` ways from the first to the second, shortest first.

        Relations are walked in both directions and given as they truly point; no entity comes twice in a path; a path has at
        most ``max_length`` relations. Of parallel relations the best-scored stands for the step (then by id). Paths of
        equal length are ordered by the least score of their relations, greatest first, then by their entities' ids. An
        empty list for a pair that nothing joins, that holds an unknown id, or twice the same one.

        Of more than 5,000 entities at one distance from an end, and of more than 500 ways of one length, only the first by id
        are followed: paths may be missed there, a path that is given always exists.
        """

    @abstractmethod
    def find_relations(
        self,
        *,
        head_ids: Sequence[str] | None = None,
        tail_ids: Sequence[str] | None = None,
        labels: Sequence[str] | None = None,
        min_score: float = 0.0,
        active_after: str | None = None,
        active_before: str | None = None,
        limit: int = 1000,
    ) -> list[Relation]:
        """Relations that start at one of these heads, end at one of these tails, and have one of these labels to the letter.

        None leaves a condition open, an empty list fits nothing. Best score first, then by id; ``limit`` at most.
        """

    @abstractmethod
    def chunks_of(self, entity_ids: Sequence[str], limit: int = 1000) -> dict[str, list[Scored[Chunk]]]:
        """For each entity the chunks that mention it, best mention score first, then by chunk id; ``limit`` chunks an entity."""

    @abstractmethod
    def entities_of(self, chunk_ids: Sequence[str]) -> dict[str, list[Entity]]:
        """For each chunk the entities it mentions, each once, ordered by id."""

    @abstractmethod
    def entities(self, page_size: int = 5000) -> Iterator[Entity]:
        """Every entity, ordered by id, paged by key; raises StoreError if the server gave fewer than it counts."""

    @abstractmethod
    def relations(self, page_size: int = 5000) -> Iterator[Relation]:
        """Every relation between entities, streamed, paged by key; raises StoreError if the server gave fewer than it counts."""

    @abstractmethod
    def mention_counts(self, page_size: int = 5000) -> Iterator[tuple[str, str, int]]:
        """Entity id, chunk id and how often the one is mentioned in the other, for every such pair, ordered by both ids.

        Streamed, paged by key; raises StoreError if the server gave fewer than it counts.
        """

    @abstractmethod
    def relation_labels(self) -> dict[str, int]:
        """How many relations have each label; most frequent first, then alphabetically."""

    @abstractmethod
    def entity_types(self) -> dict[str, int]:
        """How many entities have each type; most frequent first, then alphabetically."""

    @abstractmethod
    def replace_communities(self, communities: Sequence[Community]) -> int:
        """Make these the only communities, touching only what differs. Returns how many were written or deleted.

        Refused with StoreError before anything is written: an id that is none or comes twice, a level that is no whole number
        from 0, a member that is not in the graph or comes twice on one level, and a parent that is not among the
        communities or not on a higher level. A call that is cut short leaves a part done; the same call completes it.
        Communities stay when documents are written again; an entity that goes away leaves the communities it was in.
        """

    @abstractmethod
    def communities(self, level: int | None = None) -> list[Community]:
        """Communities of a level, or all: by level, then by id. Members are ordered by id."""

    @abstractmethod
    def find_communities(self, ids: Sequence[str]) -> list[Community]:
        """Communities with one of these ids, by level, then by id, each once."""

    @abstractmethod
    def replace_entity_vectors(self, vectors: Mapping[str, Sequence[float]]) -> VectorsReplaced:
        """Make these, by entity id, the only vectors on the entities, touching only what differs. Unknown ids are passed over.

        They are kept as 32-bit floats in the nodes' property ``kg_embedding``, for those who query the graph itself; they are
        no property of the records. StoreError before anything is written for a vector that is empty or not of finite numbers,
        and for vectors of different lengths. A call that is cut short leaves a part done; the same call completes it.
        An entity keeps its vector when documents are written again, and one that goes away loses it for good.
        """

    @abstractmethod
    def revision(self) -> str:
        """A mark that every change of documents, entities or relations changes, the same for every process; none comes twice.

        Communities and the entities' vectors don't change it: they are made from the rest.
        """

    @abstractmethod
    def stats(self) -> GraphStats:
        """Counts. ``mentions`` counts mention edges, ``relations`` distinct relations."""

    @abstractmethod
    def query(
        self,
        statement: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        read_only: bool = True,
        max_rows: int | None = None,
    ) -> list[dict[str, Any]]:
        """Run one statement of the store's own language; rows as dictionaries by column name.

        A read-only query can't change anything, and reads nothing outside of the graph: the store enforces it. It is stopped
        after 10 seconds, and after ``max_rows`` rows (the statement then has to end in RETURN, with names that differ); without
        ``max_rows`` all rows are read, however many. StoreError for a statement the store refuses, and from a store
        without a language.
        """
