"""What went wrong in a part of a query: the other parts still answer."""

from dataclasses import dataclass

from resources.errors import RetricoError
from resources.models.llm.client import mask_secrets


@dataclass(frozen=True, slots=True)
class Failure:
    """A step or a strategy that could not do its part; the others answer."""

    strategy: str
    error: str


def explain(error: Exception) -> str:
    """One line about an error, without secrets; the type is named when the message was not written for users."""
    message = str(error) or type(error).__name__
    return mask_secrets(message if isinstance(error, RetricoError) else f"{type(error).__name__}: {message}")
