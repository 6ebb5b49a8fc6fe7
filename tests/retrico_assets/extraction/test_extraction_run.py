"""Chunks to mentions and relations: offsets, cache, failures. The model is the demo's, where one is needed at all."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from resources.errors import ExtractionError
from resources.models.base import EntityExtractor, Extraction, Span
from resources.records import Chunk, Mention
from retrico_assets.extraction import run
from retrico_assets.extraction.cache import ExtractionCache
from retrico_assets.extraction.run import extract_entities, extract_relations
from tests.support.models import entity_extractor, relation_extractor

MODEL = str(Path(__file__).parents[3] / "configs" / "demo" / "gliner-mini")
LABELS = ["person", "location"]
RELATIONS = ["born in", "works at"]
EINSTEIN = "Albert Einstein was born in Ulm."


def chunk(number: int, text: str, start: int = 0) -> Chunk:
    return Chunk(f"c{number}", f"d{number}", 0, text, start, start + len(text))


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[ExtractionCache]:
    with ExtractionCache(tmp_path / "cache.db") as opened:
        yield opened


class CapitalWords(EntityExtractor):
    """A real, model-free extractor: words with a capital. Texts in ``poison`` fail; ``stop_after`` texts it is killed."""

    def __init__(self, poison: str = "", stop_after: int | None = None) -> None:
        self.calls, self.poison, self.stop_after = 0, poison, stop_after

    @property
    def fingerprint(self) -> str:
        return "capital words"

    def extract(self, texts: Sequence[str], on_result: Callable[[int, Extraction], None] | None = None) -> list[Extraction]:
        results = [self._read(text) for text in texts]
        for index, result in reversed(list(enumerate(results))):
            if self.calls == self.stop_after:
                raise KeyboardInterrupt
            self.calls += 1
            if on_result is not None:
                on_result(index, result)
        return results

    def _read(self, text: str) -> Extraction:
        if self.poison and self.poison in text:
            return Extraction(error="RuntimeError: choked")
        starts = [index for index, letter in enumerate(text) if letter.isupper()]
        ends = [text.find(" ", start) if " " in text[start:] else len(text) for start in starts]
        return Extraction(tuple(Span(a, b, text[a:b], "name", 1.0) for a, b in zip(starts, ends, strict=True)))


def test_mentions_come_in_order_of_the_chunks_with_document_offsets(cache: ExtractionCache) -> None:
    progress: list[tuple[int, int]] = []
    chunks = [chunk(1, "Ana met Bob here", 100), chunk(2, "nothing"), chunk(3, "see Ulm", 7)]
    report = extract_entities(chunks, CapitalWords(), cache, on_progress=lambda done, total: progress.append((done, total)))
    assert [(m.chunk_id, m.document_id, m.start, m.end, m.text) for m in report.mentions] == [
        ("c1", "d1", 100, 103, "Ana"), ("c1", "d1", 108, 111, "Bob"), ("c3", "d3", 11, 14, "Ulm"),
    ]  # fmt: skip
    assert (report.cached, report.model_calls, report.failed, report.truncated) == (0, 3, {}, {})
    assert progress == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_a_second_run_calls_no_model_and_equal_texts_are_read_once(cache: ExtractionCache) -> None:
    chunks = [chunk(1, "Ana left"), chunk(2, "Ana left", 50), chunk(3, "Bob left")]
    first = extract_entities(chunks, CapitalWords(), cache)
    second = extract_entities(chunks, CapitalWords(), cache)
    assert (first.model_calls, first.cached) == (2, 1)
    assert (second.model_calls, second.cached) == (0, 3)
    assert second.mentions == first.mentions
    assert [mention.start for mention in first.mentions] == [0, 50, 0]


def test_a_failure_is_reported_and_never_cached(cache: ExtractionCache) -> None:
    chunks = [chunk(1, "Ana left"), chunk(2, "Bad one")]
    report = extract_entities(chunks, CapitalWords(poison="Bad"), cache)
    assert report.failed == {"c2": "RuntimeError: choked"}
    assert [mention.text for mention in report.mentions] == ["Ana"]
    again = extract_entities(chunks, CapitalWords(), cache)
    assert (again.failed, again.model_calls, again.cached) == ({}, 1, 1)


def test_an_interrupted_run_resumes_where_it_stopped(cache: ExtractionCache) -> None:
    chunks = [chunk(number, f"Name{number} left") for number in range(100)]
    with pytest.raises(KeyboardInterrupt):
        extract_entities(chunks, CapitalWords(stop_after=70), cache)
    report = extract_entities(chunks, CapitalWords(), cache)
    assert (report.model_calls, report.cached, len(report.mentions)) == (30, 70, 100)


def test_results_reach_the_cache_before_the_run_ends(
    cache: ExtractionCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a kill -9 would leave behind: seen through a second connection while the extractor still works."""
    seen: list[int] = []
    keys = [(run._hash(f"Name{n} left"), run._hash("entities", "capital words", "")) for n in range(200)]
    with ExtractionCache(tmp_path / "cache.db") as other:
        chunks = [chunk(number, f"Name{number} left") for number in range(200)]
        extract_entities(chunks, CapitalWords(), cache, on_progress=lambda done, total: seen.append(len(other.get_many(keys))))
    assert seen[150] >= 128
    assert seen[0] == 0


def test_a_foreign_row_is_made_again(cache: ExtractionCache) -> None:
    key = (run._hash("Ana left"), run._hash("entities", "capital words", ""))
    for foreign in ("text", [1], {"entities": [[0, 99, "x", 1.0]], "relations": [], "words_not_read": 0, "entities_dropped": 0}):
        cache.put_many({key: foreign})
        report = extract_entities([chunk(1, "Ana left")], CapitalWords(), cache)
        assert [mention.text for mention in report.mentions] == ["Ana"]
        assert report.model_calls == 1


def test_a_mention_that_does_not_fit_its_chunk_is_refused(cache: ExtractionCache) -> None:
    extractor = relation_extractor(MODEL, LABELS, RELATIONS)
    wrong = Mention("c1", "d1", 1, 4, "Ana", "person", 1.0)
    with pytest.raises(ExtractionError, match="'Ana' at 1-4 is not what chunk 'c1'"):
        extract_relations([chunk(1, "Ana left")], [wrong], extractor, cache)
    with pytest.raises(ExtractionError, match="chunk 'c1', which is not one of"):
        extract_relations([], [wrong], extractor, cache)


@pytest.mark.slow
def test_one_joint_pass_fills_both_caches(cache: ExtractionCache) -> None:
    entities = entity_extractor(MODEL, LABELS)
    relations = relation_extractor(MODEL, LABELS, RELATIONS)
    chunks = [chunk(1, EINSTEIN, 40), chunk(2, " \n"), chunk(3, "Mia Chen visited Quito.")]
    found = extract_entities(chunks, entities, cache, joint=relations)
    assert found.model_calls == 2
    assert entities.calls == 0
    stated = extract_relations(chunks, found.mentions, relations, cache)
    assert (stated.model_calls, stated.cached) == (0, 3)
    einstein = next(relation for relation in stated.relations if relation.relation == "born in")
    assert (einstein.chunk_id, einstein.head_start, einstein.head_end, einstein.head_text) == ("c1", 40, 55, "Albert Einstein")
    assert (einstein.tail_start, einstein.tail_end, einstein.tail_text) == (68, 71, "Ulm")
    places = {(mention.chunk_id, mention.start, mention.end) for mention in found.mentions}
    for relation in stated.relations:
        assert (relation.chunk_id, relation.head_start, relation.head_end) in places
        assert (relation.chunk_id, relation.tail_start, relation.tail_end) in places


@pytest.mark.slow
def test_changed_mentions_are_read_again_as_heads_and_tails(cache: ExtractionCache) -> None:
    relations = relation_extractor(MODEL, LABELS, RELATIONS)
    mentions = [Mention("c1", "d1", 40, 55, "Albert Einstein", "person", 1.0), Mention("c1", "d1", 68, 71, "Ulm", "city", 1.0)]
    report = extract_relations([chunk(1, EINSTEIN, 40)], mentions, relations, cache)
    assert report.model_calls == 1
    assert [(r.head_start, r.relation, r.tail_label) for r in report.relations] == [(40, "born in", "city")]
    assert extract_relations([chunk(1, EINSTEIN, 40)], mentions, relations, cache).model_calls == 0
