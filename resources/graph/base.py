"""What every graph store can do. tests/resources/test_graph_store.py says what each promise means."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from resources.records import Chunk, DocumentGraph, Entity, GraphStats, Neighbourhood, Relation, Scored
from resources.store import Store


class GraphStore(Store):
    """Entities, relations and where they are said. Bulk first: a call costs a handful of round trips, whatever its size."""

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
    def neighbourhood(self, entity_ids: Sequence[str], hops: int, limit: int = 1000) -> Neighbourhood:
        """Breadth-first from the seeds over entity-entity edges, both directions, until ``hops`` or ``limit`` entities.

        Seeds are at hop 0 and always kept (unknown ids are passed over); nearer entities come first, then by id.
        Relations are all those among the found entities.
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
    def stats(self) -> GraphStats:
        """Counts. ``mentions`` counts mention edges, ``relations`` distinct relations."""

    @abstractmethod
    def query(
        self, statement: str, parameters: Mapping[str, Any] | None = None, *, read_only: bool = True
    ) -> list[dict[str, Any]]:
        """Run one statement of the store's own language; rows as dictionaries by column name.

        A read-only query can't change anything: the store enforces it. StoreError for a statement the store refuses,
        and from a store without a language.
        """
