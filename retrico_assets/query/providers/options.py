"""Options of graph retrieval: which graph serves, and what questions draw on."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from resources.graph.neo4j.options import Neo4jOptions
from resources.options import Options
from retrico_assets.graph.identity import IdentityPolicy
from retrico_assets.query.providers.graph_handle import KnowledgeEntry, check_entries


class RetrievalOptions(Options):
    """Which graph serves retrieval (query/providers/rule.py), from which sources, and what questions draw on.

    ``sources`` selects among "corpus", "knowledge-tools" and the names of providers; ``graph_providers`` are the providers
    that may serve, one's own as "module:Class". Empty: all.
    """

    sources: list[str] = Field(
        default=[], description="What may serve: corpus, knowledge-tools, or names of providers. Empty: everything."
    )
    graph_providers: list[str] = Field(
        default=[], description='The providers that may serve, by name or as "module:Class". Empty: all.'
    )
    neo4j: Neo4jOptions = Neo4jOptions()
    knowledge: Annotated[list[KnowledgeEntry], AfterValidator(check_entries)] = Field(
        default=[], description="What questions draw on: documents, or the graph by a handle. Empty: documents."
    )


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
