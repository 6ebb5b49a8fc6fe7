"""An extractor of your own: names from a list, without a model.

models:
  entities: {backend: "examples.gazetteer:Gazetteer", names: {person: [Marie Curie], location: [Warsaw]}}
  relations: {backend: gliner, model: ...}
"""

import re
from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field

from resources.models.base import EntityExtractor, Extraction, ExtractorBackend, OnResult, Span
from resources.options import Options


class GazetteerOptions(Options):
    """The list of names."""

    names: dict[str, list[str]] = Field(description="Names by label, such as {person: [Marie Curie]}.")


class GazetteerExtractor(EntityExtractor):
    """Finds the names of the list as whole words. Longer names come first. Every score is 1."""

    options: GazetteerOptions

    def extract(self, texts: Sequence[str], on_result: OnResult | None = None) -> list[Extraction]:
        label_of = {name: label for label in self.labels for name in self.options.names.get(label, ())}
        longest_first = sorted(label_of, key=len, reverse=True)
        pattern = re.compile(r"\b(?:" + "|".join(map(re.escape, longest_first)) + r")\b") if label_of else None
        results = []
        for index, text in enumerate(texts):
            matches = pattern.finditer(text) if pattern else ()
            spans = (Span(match.start(), match.end(), match[0], label_of[match[0]], 1.0) for match in matches)
            results.append(Extraction(entities=tuple(spans)))
            self.calls += 1
            if on_result:
                on_result(index, results[-1])
        return results


class Gazetteer(ExtractorBackend):
    """The plug-in: it extracts entities only."""

    entity_options: ClassVar[type[Options]] = GazetteerOptions

    @classmethod
    def entity_extractor(cls, options: GazetteerOptions, labels: Sequence[str]) -> GazetteerExtractor:
        return GazetteerExtractor(options, labels)
