"""Options of graph retrieval: which graph serves, and what questions draw on."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

from resources.graph.neo4j.options import Neo4jOptions
from resources.options import Options
from retrico_assets.graph.identity import IdentityPolicy
from retrico_assets.query.providers.graph_handle import KnowledgeEntry, check_entries


class RetrievalOptions(Options):
    """Which graph serves retrieval (query/providers/rule.py), from which sources, and what questions draw on.

    ``sources`` selects among "corpus", "knowledge-tools" and the names of providers; ``graph_providers`` are the providers
    that may serve, one's own as "module:Class". Empty: all.
    """

    sources: list[str] = []
    graph_providers: list[str] = []
    neo4j: Neo4jOptions = Neo4jOptions()
    knowledge: Annotated[list[KnowledgeEntry], AfterValidator(check_entries)] = []


@dataclass(frozen=True, slots=True)
class ProjectFacts:
    """What decides which graph provider serves a project, and what a provider needs to open its graph.

    ``frames`` is the folder of the frames that the build stored, made with ``identity``.
    """

    retrieval: RetrievalOptions
    graph_backend: str
    has_corpus: bool
    frames: Path
    identity: IdentityPolicy = "name"
