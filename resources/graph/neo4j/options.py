"""Options of a Neo4j database, as a graph store and as what retrieval reads."""

import os
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from resources.options import EnvironmentReference, Options

_SCHEMES = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")


class Neo4jOptions(Options):
    """A Neo4j database. Its password is only ever read from the environment."""

    uri: str | None = Field(default=None, description="Address of the Neo4j server. Without it the variable NEO4J_URI counts.")
    user: str = Field(default="neo4j", description="User of the Neo4j database.")
    password: EnvironmentReference = Field(
        default=EnvironmentReference(env="NEO4J_PASSWORD"), description="Environment variable that holds the password."
    )
    database: str | None = Field(default=None, description="Name of the database; without it the user's home database.")

    @field_validator("uri")
    @classmethod
    def _server_without_a_password(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        if parts.scheme not in _SCHEMES or not parts.hostname:
            raise ValueError("it must name a host after bolt:// or neo4j:// (or +s or +ssc, encrypted)")
        if parts.username or parts.password:
            raise ValueError("it holds a user name or password; use user, and password: {env: NAME_OF_A_VARIABLE} instead")
        return value

    @property
    def address(self) -> str:
        """The URI of the options or of the environment; "" if there is none."""
        return self.uri or os.environ.get("NEO4J_URI", "").strip()
