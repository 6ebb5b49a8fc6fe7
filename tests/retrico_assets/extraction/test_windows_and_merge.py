"""Cutting texts into windows and merging what they gave: pure functions, checked on made cases."""

import itertools
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from resources.models.base import RelationSpan, Span
from resources.models.gliner.merge import merge_relations, resolve_overlaps
from resources.models.gliner.windows import MAX_WORD_CHARACTERS, cut_windows, whole_words, word_ranges

TEXT = "Ana met Ana Silva. Ana Silva runs Silva Foods."
RAW = [(0, 3, "person", 0.9), (8, 11, "person", 0.8), (8, 17, "person", 0.8), (19, 28, "person", 0.7),
       (34, 39, "person", 0.3), (34, 45, "organization", 0.6)]  # fmt: skip


def span(start: int, end: int, label: str = "x", score: float = 0.5) -> Span:
    return Span(start, end, TEXT[start:end], label, score)


def split(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"\w+|\S", text)]


def test_overlaps_are_resolved_by_score_then_length_whatever_the_order() -> None:
    for order in itertools.permutations(RAW):
        kept = resolve_overlaps(span(*raw) for raw in order)
        assert [(s.start, s.end, s.text) for s in kept] == [
            (0, 3, "Ana"), (8, 17, "Ana Silva"), (19, 28, "Ana Silva"), (34, 45, "Silva Foods"),
        ]  # fmt: skip


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 6), st.sampled_from("ab"), st.sampled_from([0.5, 0.6, 0.9]))),
    st.booleans(),
)
def test_no_two_spans_overlap_in_part(raw: list[tuple[int, int, str, float]], flat: bool) -> None:
    kept = resolve_overlaps((span(start, start + length, label, score) for start, length, label, score in raw), flat=flat)
    for one, other in itertools.combinations(kept, 2):
        apart = one.end <= other.start or other.end <= one.start
        inside = (one.start <= other.start and other.end <= one.end) or (other.start <= one.start and one.end <= other.end)
        assert apart or (not flat and inside and (one.start, one.end) != (other.start, other.end))


def test_nested_spans_stay_when_they_may() -> None:
    kept = {(s.start, s.end) for s in resolve_overlaps((span(*raw) for raw in RAW), flat=False)}
    assert kept == {(0, 3), (8, 11), (8, 17), (19, 28), (34, 39), (34, 45)}


def test_half_an_entity_at_a_cut_yields_to_the_whole_one() -> None:
    half, whole = span(34, 39, score=0.99), span(34, 45, score=0.6)
    assert resolve_overlaps([half, whole], cut={half}) == (whole,)
    assert resolve_overlaps([half], cut={half}) == (half,)


def test_relations_keep_their_best_score_and_only_real_ends() -> None:
    """A relation whose head or tail is not a mention is dropped, and so is a self loop."""
    ana, foods = span(19, 28), span(34, 45)
    found = [
        RelationSpan(ana, foods, "runs", 0.6),
        RelationSpan(span(19, 28, "other"), foods, "runs", 0.8),
        RelationSpan(ana, span(34, 39), "runs", 0.9),
        RelationSpan(ana, ana, "is", 0.9),
    ]
    assert merge_relations(found, [ana, foods]) == (RelationSpan(ana, foods, "runs", 0.8),)


def test_a_decomposed_word_is_one_word_and_an_overlong_one_is_several() -> None:
    text = "w Ło\u0301dz\u0301! हिन्दी " + "A" * 5000
    words = whole_words(text, split(text))
    assert [text[a:b] for a, b in words[:4]] == ["w", "Ło\u0301dz\u0301", "!", "हिन्दी"]
    assert "".join(text[a:b] for a, b in words[4:]) == "A" * 5000
    assert max(b - a for a, b in words) <= MAX_WORD_CHARACTERS


def test_the_signs_that_begin_a_line_of_markdown_are_no_words():
    text = "# Mohammad Ilyas\n\n> - C# and F # G\n* x-ray -1"
    words = [(found.start(), found.end()) for found in re.finditer(r"\w+|\S", text)]
    kept = [text[start:end] for start, end in whole_words(text, words)]
    assert kept[:2] == ["Mohammad", "Ilyas"]
    assert kept[-5:] == ["x", "-", "ray", "-", "1"]
    assert kept[kept.index("C") : kept.index("C") + 2] == ["C", "#"]


@settings(max_examples=200)
@given(
    st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=40), max_size=8),
    st.integers(1, 30),
    st.integers(5, 40),
    st.integers(0, 12),
)
def test_windows_cover_every_word_within_both_limits(sentences: list[list[int]], words: int, size: int, overlap: int) -> None:
    sizes = [size for sentence in sentences for size in sentence]
    ends = list(itertools.accumulate(len(sentence) for sentence in sentences))
    ranges = list(zip([0, *ends], ends, strict=False))
    windows = cut_windows(sizes, ranges, pack=max(1, words // 2), max_words=words, max_size=size, overlap=overlap)
    covered: set[int] = set()
    for window in windows:
        assert 0 < window.last - window.first <= words
        assert sum(sizes[window.first : window.last]) <= size
        assert window.cut_left or window.first in {first for first, _ in ranges}
        assert window.cut_right or window.last in ends
        covered.update(range(window.first, window.last))
    assert covered == set(range(len(sizes)))


def test_a_sentence_longer_than_a_window_is_covered_by_overlapping_ones() -> None:
    windows = cut_windows([1] * 100, [(0, 100)], pack=40, max_words=40, max_size=1000, overlap=11)
    assert [(window.first, window.last) for window in windows] == [(0, 40), (29, 69), (58, 98), (87, 100)]
    assert [(window.cut_left, window.cut_right) for window in windows] == [
        (False, True),
        (True, True),
        (True, True),
        (True, False),
    ]


def test_sentences_become_ranges_of_words() -> None:
    assert word_ranges(split("A b. C d."), [(0, 5), (5, 9)]) == [(0, 3), (3, 6)]
    assert word_ranges([], [(0, 3)]) == []
