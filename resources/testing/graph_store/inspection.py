"""What the suite has to know of a graph beyond what stores offer."""

from typing import Any

from resources.graph.base import GraphStore


class Inspection:
    """Looks into the graph through ``GraphStore.query``, in Cypher. A backend without Cypher overrides both methods."""

    def count_edges(self, store: GraphStore, pattern: str) -> int | None:
        """How many edges match a pattern; None if it can't be found out, and the check is left out."""
        return int(store.query(f"MATCH {pattern} RETURN count(*) AS n")[0]["n"])

    def vectors_on_nodes(self, store: GraphStore) -> dict[str, Any]:
        """The vector of each entity that has one, by entity id, as a list of numbers."""
        rows = store.query("MATCH (n) WHERE n.kg_embedding IS NOT NULL RETURN n.id AS id, n.kg_embedding AS vector")
        return {row["id"]: row["vector"] for row in rows}
