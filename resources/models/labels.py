"""Labels of entities and relations: the one rule for what a valid label is."""

from collections.abc import Iterable
from typing import Annotated

from pydantic import AfterValidator

from resources.errors import SettingsError
from resources.options import as_value_error
from resources.text.characters import is_blank


def clean_labels(labels: Iterable[str]) -> list[str]:
    """The labels without surrounding white space and without duplicates, in their order.

    Raises:
        SettingsError: a label is blank or not a text.
    """
    cleaned: dict[str, None] = {}
    for label in labels:
        if not isinstance(label, str) or is_blank(label):
            raise SettingsError(f"{label!r} is not a label: it is blank or not a text. Remove it.")
        cleaned[label.strip()] = None
    return list(cleaned)


def _checked(labels: list[str]) -> list[str]:
    return as_value_error(clean_labels, labels)


Labels = Annotated[list[str], AfterValidator(_checked)]
"""A field of options: labels as ``clean_labels`` returns them."""
