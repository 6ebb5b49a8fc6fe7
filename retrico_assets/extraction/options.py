"""Options of extraction: the labels of entities and relations."""

from typing import Annotated

from pydantic import AfterValidator, Field

from resources.options import Options


def _clean_labels(labels: list[str]) -> list[str]:
    labels = [label.strip() for label in labels]
    if "" in labels:
        raise ValueError("a label is blank; remove it")
    return list(dict.fromkeys(labels))


Labels = Annotated[list[str], AfterValidator(_clean_labels)]


class LabelOptions(Options):
    entities: Labels = Field(default=["person", "organization", "location", "date"], min_length=1)
    relations: Labels = ["born in", "works at", "located in"]
