"""Neo4j's own ways of saying things in Cypher. Version 5 and later."""

from collections.abc import Sequence
from typing import Any, ClassVar

from resources.graph.cypher.dialect import Dialect


class Neo4jDialect(Dialect):
    database: ClassVar[str] = "Neo4j"

    def property_index(self, label: str, key: str) -> str:
        name = f"retrico_{label}_{key}".lower()
        if key == "id":  # so that two writers never make one node twice
            return f"CREATE CONSTRAINT {name} IF NOT EXISTS FOR (n:{label}) REQUIRE n.id IS UNIQUE"
        return f"CREATE INDEX {name} IF NOT EXISTS FOR (n:{label}) ON (n.{key})"

    def full_text_index(self, label: str) -> str:
        return f"""CREATE FULLTEXT INDEX {_search_index(label)} IF NOT EXISTS FOR (n:{label}) ON EACH [n.search_text]
OPTIONS {{indexConfig: {{`fulltext.analyzer`: 'whitespace', `fulltext.eventually_consistent`: false}}}}"""

    def full_text_hits(self, label: str, query: str) -> str:
        return f"CALL db.index.fulltext.queryNodes('{_search_index(label)}', {query}) YIELD node, score"

    def all_phrases(self, phrases: Sequence[str]) -> str:
        return " AND ".join(f'"{phrase}"' for phrase in phrases)

    def set_vector(self, node: str, key: str, numbers: str) -> str:
        return f"WITH * CALL db.create.setNodeVectorProperty({node}, '{key}', {numbers})"

    def joined(self, texts: str) -> str:
        return f"collect({texts})"

    def split(self, joined: Any) -> list[str]:
        return list(joined)


def _search_index(label: str) -> str:
    return f"retrico_{label}_search".lower()
