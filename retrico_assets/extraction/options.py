"""Options of extraction: the labels of entities and relations."""

from typing import Annotated

from pydantic import AfterValidator, Field

from resources.options import Options
from resources.text.characters import is_blank


def _clean_labels(labels: list[str]) -> list[str]:
    if any(map(is_blank, labels)):
        raise ValueError("a label is blank. Remove it.")
    return list(dict.fromkeys(label.strip() for label in labels))


Labels = Annotated[list[str], AfterValidator(_clean_labels)]


class LabelOptions(Options):
    entities: Labels = Field(default=["person", "organization", "location", "date"], min_length=1)
    relations: Labels = ["born in", "works at", "located in"]
