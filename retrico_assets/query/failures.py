"""What went wrong in a part of a query: the other parts still answer."""

from dataclasses import dataclass

from resources.errors import GraphCapabilityError
from resources.secrets import explain


@dataclass(frozen=True, slots=True)
class Failure:
    """A step or a strategy that could not do its part; the others answer."""

    strategy: str
    error: str


def failure_of(name: str, error: Exception, attempt: str = "") -> Failure:
    """The failure of a step or a strategy that raised an error.

    This is the one policy for errors in a query: a store, a model or a plug-in may raise anything, its failure is reported,
    and everything else still answers. ``attempt`` says what could not be done, where the name alone does not.

    Raises:
        GraphCapabilityError: the error is one. Nothing stands in for graph retrieval.
    """
    if isinstance(error, GraphCapabilityError):
        raise error
    return Failure(name, f"{attempt}: {explain(error)}" if attempt else explain(error))
