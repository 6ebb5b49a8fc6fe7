"""Options of extraction: the labels of entities and relations."""

from pydantic import Field

from resources.models.labels import Labels
from resources.options import Options


class LabelOptions(Options):
    """What is extracted."""

    entities: Labels = Field(
        default=["person", "organization", "location", "date"], min_length=1, description="Labels of entities, in plain words."
    )
    relations: Labels = Field(
        default=["born in", "works at", "located in"], description="Labels of relations, in plain words. Empty: no relations."
    )
