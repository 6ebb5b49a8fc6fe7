"""An extractor, an embedder and a reranker from a file beside project.yaml serve a build and a question."""

import pytest

from tests.support.projects import make_project

MODELS = """
import numpy as np
from pydantic import Field

from resources.models.base import EntityExtractor, Extraction, ExtractorBackend, RelationExtractor, RelationSpan, Span
from resources.models.embedders.base import Embedder
from resources.models.rerankers.base import Reranker
from resources.options import Options


class CapitalOptions(Options):
    shortest: int = Field(default=2, ge=1, description="Least letters of a name.")


class Capitals(EntityExtractor):
    def extract(self, texts, on_result=None):
        results = []
        for index, text in enumerate(texts):
            spans, start = [], 0
            for word in text.split():
                start = text.index(word, start)
                name = word.strip(".,")
                if name[:1].isupper() and len(name) >= self.options.shortest:
                    spans.append(Span(start, start + len(name), name, self.labels[0], 1.0))
                start += len(word)
            results.append(Extraction(tuple(spans)))
            self.calls += 1
            if on_result:
                on_result(index, results[-1])
        return results


class Neighbours(RelationExtractor):
    def extract(self, texts, entities, on_result=None):
        results = []
        for index, spans in enumerate(entities):
            pairs = zip(spans, spans[1:])
            label = self.relation_labels[0]
            results.append(Extraction(relations=tuple(RelationSpan(head, tail, label, 1.0) for head, tail in pairs)))
            if on_result:
                on_result(index, results[-1])
        return results


class CapitalBackend(ExtractorBackend):
    entity_options = CapitalOptions
    relation_options = Options

    @classmethod
    def entity_extractor(cls, options, labels):
        return Capitals(options, labels)

    @classmethod
    def relation_extractor(cls, options, entity_labels, relation_labels, entity_options=None):
        return Neighbours(options, entity_labels, relation_labels)


class LetterOptions(Options):
    letters: str = Field(default="abcdefghijklmnop", description="Letters that are counted.")


class Letters(Embedder):
    options = LetterOptions

    def __init__(self, options):
        self.letters, self.calls = options.letters, 0

    @property
    def name(self):
        return f"letters of {self.letters}"

    @property
    def dimension(self):
        return len(self.letters)

    def embed(self, texts):
        self.calls += len(texts)
        rows = np.array([[text.lower().count(letter) for letter in self.letters] for text in texts], np.float32) + 0.01
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class LongestOptions(Options):
    sign: float = 1.0


class Longest(Reranker):
    options = LongestOptions

    def __init__(self, options):
        self._sign = options.sign

    @property
    def name(self):
        return "longest"

    def scores(self, question, texts):
        return [self._sign * len(text) for text in texts]
"""
TEXTS = {"ulm.txt": "Albert left Ulm.", "kiel.txt": "Max left Kiel and nobody knows where he went after the war."}


@pytest.fixture
def project(tmp_path):
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "capital_models.py").write_text(MODELS)
    return make_project(
        tmp_path / "p",
        TEXTS,
        {
            "labels": {"entities": ["name"], "relations": ["near"]},
            "models": {
                "entities": {"backend": "capital_models:CapitalBackend", "shortest": 3},
                "relations": {"backend": "capital_models:CapitalBackend"},
                "embedder": {"backend": "capital_models:Letters", "letters": "abcdefghijklmnopqrstuvwxyz"},
            },
            "query": {"reranker": {"backend": "capital_models:Longest", "sign": -1.0, "top": 5}},
            "stores": {"graph": {"backend": "memory"}, "vectors": {"backend": "memory"}},
        },
    )


def test_custom_models_serve_a_build_and_a_question(project):
    build = project.build()
    assert build.result.success
    assert build.metadata["entities"]["model_calls"] == 2
    assert build.metadata["relations"]["failed"] == 0
    assert build.metadata["chunk_embeddings"]["model"] == "letters of abcdefghijklmnopqrstuvwxyz"
    assert build.metadata["chunk_embeddings"]["dimension"] == 26

    config = {"ops": {"parse_question": {"config": {"question": "Who left?", "strategies": ["chunk_embedding"]}}}}
    result = project.run("query", config).output_for_node("reason")
    assert result["errors"] == []
    assert [chunk["text"] for chunk in result["chunks"]] == [TEXTS["ulm.txt"], TEXTS["kiel.txt"]], "the shortest comes first"

    again = project.build()
    assert again.model_calls == 0, "results of a custom extractor are cached"


def test_other_options_of_a_custom_extractor_are_read_again(project):
    project.build()
    project.file.write_text(project.file.read_text().replace('"shortest": 3', '"shortest": 4'))
    assert project.build().metadata["entities"]["model_calls"] == 2


def test_an_option_for_one_run_that_the_backend_does_not_have_is_refused(project):
    config = {"ops": {"entities": {"config": {"threshold": 0.9}}}}
    build = project.build(config, raise_on_error=False)
    assert not build.result.success
    failure = next(event for event in build.result.all_events if event.is_step_failure)
    assert "threshold is 0.9" in str(failure.step_failure_data)
    assert "has no such option" in str(failure.step_failure_data)
