"""Keeping a vector index in step with its texts, with a small embedder and a real store in memory."""

import numpy as np
import pytest

from resources.errors import IndexMismatchError
from resources.models.embedders.base import Embedder
from resources.vectors.memory import MemoryVectorStore
from retrico_assets.embeddings.sync import relation_texts, sync_index
from tests.support.query_world import small_world


class Letters(Embedder):
    """Counts the letters a to h: a real embedding without a model. After ``fail_after`` texts it is interrupted."""

    def __init__(self, name="letters", fail_after=None):
        self.calls, self._name, self._fail_after = 0, name, fail_after

    @property
    def name(self):
        return self._name

    @property
    def dimension(self):
        return 8

    def embed(self, texts):
        if self._fail_after is not None and self.calls + len(texts) > self._fail_after:
            raise KeyboardInterrupt
        self.calls += len(texts)
        counts = np.array([[text.count(letter) for letter in "abcdefgh"] for text in texts], np.float32) + 1e-3
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


@pytest.fixture
def store():
    return MemoryVectorStore()


def test_the_first_sync_embeds_everything(store):
    embedder = Letters()
    report = sync_index(store, "texts", embedder, {"1": "abba", "2": "cafe"})
    assert report.counts() == {"embedded": 2, "deleted": 0, "unchanged": 0, "model_calls": 2, "dimension": 8}
    assert store.get("texts", ["1"])["1"] == pytest.approx(embedder.embed(["abba"])[0])


def test_a_second_sync_embeds_only_what_changed_and_deletes_what_is_gone(store):
    sync_index(store, "texts", Letters(), {"1": "abba", "2": "cafe", "3": "bead"})
    report = sync_index(store, "texts", Letters(), {"1": "abba", "2": "face off"})
    assert (report.embedded, report.deleted, report.unchanged, report.model_calls, report.total) == (1, 1, 1, 1, 2)
    assert set(store.hashes("texts")) == {"1", "2"}
    assert store.get("texts", ["2"])["2"] == pytest.approx(Letters().embed(["face off"])[0])


def test_an_unchanged_index_does_not_load_the_model(store):
    class Unloadable(Letters):
        @property
        def dimension(self):
            raise AssertionError("the model was loaded")

        def embed(self, texts):
            raise AssertionError("the model was called")

    sync_index(store, "texts", Letters(), {"1": "abba"})
    assert sync_index(store, "texts", Unloadable(), {"1": "abba"}).unchanged == 1


def test_an_index_of_another_model_is_refused_before_any_work(store):
    sync_index(store, "texts", Letters(), {"1": "abba"})
    other = Letters("other")
    with pytest.raises(IndexMismatchError, match="letters"):
        sync_index(store, "texts", other, {"2": "cafe"})
    assert other.calls == 0
    assert set(store.hashes("texts")) == {"1"}


def test_an_interrupted_sync_keeps_what_it_has_embedded(store):
    texts = {str(number): "ab" * (number + 1) for number in range(600)}
    with pytest.raises(KeyboardInterrupt):
        sync_index(store, "texts", Letters(fail_after=300), texts)
    done = []
    report = sync_index(store, "texts", Letters(), texts, lambda count, total: done.append((count, total)))
    assert (report.unchanged, report.embedded) == (256, 344)
    assert done == [(256, 344), (344, 344)]


def test_the_text_of_a_relation_is_a_sentence(tmp_path):
    world = small_world(tmp_path, Letters())
    texts = set(relation_texts(world.sources["graph"]).values())
    assert "Albert Einstein born in Ulm" in texts
