"""What every text store can do. ``resources.testing.text_store`` holds these promises as tests."""

import hashlib
import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence

from resources.errors import StoreError
from resources.records import Chunk, Document, Scored
from resources.store import Store
from resources.texts.structured import ChunkRow, Filter, Sort


def content_hash(document: Document) -> str:
    """SHA-256 over source, title, text and metadata, whatever the order of its keys; the id is not part of it.

    Raises StoreError for metadata that JSON can't hold.
    """
    try:
        parts = [document.source, document.title, document.text, dict(document.metadata)]
        canonical = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise StoreError(
            f"document {document.id!r} has metadata that JSON can't hold ({error}): {document.metadata!r:.200}; "
            "use text, numbers, booleans, lists and maps with text keys"
        ) from error
    return hashlib.sha256(canonical.encode()).hexdigest()


class TextStore(Store):
    """Documents and chunks, and full-text search over the chunks."""

    @abstractmethod
    def document_hashes(self) -> dict[str, str]:
        """``content_hash(document)`` of every stored document (text, source, title and metadata), by document id."""

    @abstractmethod
    def put_documents(self, documents: Sequence[Document]) -> int:
        """Insert or replace by id, in one transaction. Chunks stay as they are. Returns the rows written."""

    @abstractmethod
    def delete_documents(self, document_ids: Sequence[str]) -> int:
        """Delete documents with their chunks. Unknown ids are passed over. Returns how many documents went."""

    @abstractmethod
    def chunk_ids(self) -> dict[str, list[str]]:
        """Chunk ids in order of index, by document id."""

    @abstractmethod
    def replace_chunks(self, chunks_by_document: Mapping[str, Sequence[Chunk]]) -> int:
        """Make these the only chunks of each named document (none is allowed), in one transaction. Returns the rows written."""

    @abstractmethod
    def get_documents(self, document_ids: Sequence[str]) -> dict[str, Document]:
        """The known ones among these, by id."""

    @abstractmethod
    def get_chunks(self, chunk_ids: Sequence[str]) -> dict[str, Chunk]:
        """The known ones among these, by id."""

    @abstractmethod
    def document_titles(self) -> dict[str, str]:
        """Title of every document, by document id, ordered by id."""

    @abstractmethod
    def documents(self, page_size: int = 500) -> Iterator[Document]:
        """Every document, ordered by id, paged by key."""

    @abstractmethod
    def chunks(self, page_size: int = 5000) -> Iterator[Chunk]:
        """Every chunk, ordered by document id and index, paged by key."""

    @abstractmethod
    def search(self, question: str, k: int, *, source: str | None = None) -> list[Scored[Chunk]]:
        """Chunks that share words with the question, best first (BM25), then by chunk id; at most ``k``.

        The question is taken as written: nothing in it is query syntax. A question without a word gives an empty list.
        ``source`` keeps to the chunks of one document.
        """

    @abstractmethod
    def query_chunks(
        self, filters: Sequence[Filter] = (), sort: Sequence[Sort] = (), limit: int = 50, offset: int = 0
    ) -> list[ChunkRow]:
        """A page of the chunks that fulfil every filter, sorted, then by document id and index.

        Numbers compare as numbers, those that metadata holds as text too. StoreError for an unknown field, listing the known
        ones, and for an operator, a value or a bound that ``structured.check_query`` refuses.
        """

    @abstractmethod
    def count(self) -> tuple[int, int]:
        """Number of documents and of chunks."""
