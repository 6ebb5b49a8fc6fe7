"""FalkorDB's own ways of saying things in Cypher."""

from collections.abc import Sequence
from typing import Any, ClassVar

from resources.graph.cypher.dialect import Dialect


class FalkorDBDialect(Dialect):
    database: ClassVar[str] = "FalkorDB"

    def property_index(self, label: str, key: str) -> str:
        return f"CREATE INDEX FOR (n:{label}) ON (n.{key})"  # it has no IF NOT EXISTS

    def full_text_index(self, label: str) -> str:
        return (
            f"CALL db.idx.fulltext.createNodeIndex({{label: '{label}', stopwords: []}}, {{field: 'search_text', nostem: true}})"
        )

    def full_text_hits(self, label: str, query: str) -> str:
        return f"CALL db.idx.fulltext.queryNodes('{label}', {query}) YIELD node, score"

    def all_phrases(self, phrases: Sequence[str]) -> str:
        return " ".join(f'"{phrase}"' for phrase in phrases)

    def set_vector(self, node: str, key: str, numbers: str) -> str:
        return f"SET {node}.{key} = vecf32({numbers})"

    def joined(self, texts: str) -> str:
        """One text: thousands of separate values cost the client more than all the rest."""
        return f"string.join(collect({texts}), '\\n')"

    def split(self, joined: Any) -> list[str]:
        return str(joined).split("\n") if joined else []
