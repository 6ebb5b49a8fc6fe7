"""Options of the graph stores that FalkorDB serves."""

from pydantic import Field

from resources.options import Options


class EmbeddedFalkorDBOptions(Options):
    """The embedded FalkorDB server."""

    idle_seconds: float = Field(
        default=5.0, gt=0, description="How many seconds the embedded graph server keeps running after its last user has left."
    )
