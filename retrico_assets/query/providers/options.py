"""Options of graph retrieval: which graph serves, and what questions draw on."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, field_validator

from resources.options import EnvironmentReference, Options
from retrico_assets.graph.identity import IdentityPolicy
from retrico_assets.query.providers.graph_handle import KnowledgeEntry, check_entries


class Neo4jOptions(Options):
    """A Neo4j database that retrieval reads. Without ``uri``, NEO4J_URI counts."""

    uri: str | None = None
    user: str = "neo4j"
    password: EnvironmentReference = EnvironmentReference(env="NEO4J_PASSWORD")
    database: str | None = None

    @field_validator("uri")
    @classmethod
    def _server_without_a_password(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        if parts.scheme not in ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc") or not parts.hostname:
            raise ValueError("it must name a host after bolt:// or neo4j:// (or +s or +ssc, encrypted)")
        if parts.username or parts.password:
            raise ValueError("it holds a user name or password; use user, and password: {env: NAME_OF_A_VARIABLE} instead")
        return value


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
