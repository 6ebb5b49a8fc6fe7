"""Documents cut into chunks: what holds for every method, and what each method does."""

import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.errors import SettingsError
from resources.records import Document
from resources.text.characters import is_blank
from retrico_assets.corpus.chunking import chunk_document
from retrico_assets.corpus.options import ChunkingOptions

METHODS = ["sentence", "paragraph", "page", "fixed"]
TEXTS = st.text(
    st.sampled_from(list("abAB.!?…。「」\"'()[]   \n\n\f\t\x85\xa0\u3000\u200b\u0301\u200d👩🏽é1日🇩🇪"))
    | st.characters(codec="utf-8"),
    max_size=120,
)


def chunking(method="sentence", size=1200, overlap=0):
    return ChunkingOptions.parse({"method": method, "size": size, "overlap": overlap}, "chunking")


def cut(text, *options):
    return chunk_document(Document("d", "d.txt", "d", text, ""), chunking(*options))


def texts(chunks):
    return [chunk.text for chunk in chunks]


def spans(chunks):
    return [(chunk.start, chunk.end) for chunk in chunks]


@pytest.mark.parametrize("method", METHODS)
@given(text=TEXTS, size=st.integers(1, 40))
@settings(max_examples=150, deadline=None)
def test_chunks_are_in_order_within_their_size_and_cover_every_visible_character(method, text, size):
    chunks = cut(text, method, size)
    position = 0
    for index, chunk in enumerate(chunks):
        assert chunk.index == index
        assert position <= chunk.start < chunk.end <= chunk.start + size
        assert is_blank(text[position : chunk.start])
        assert text[chunk.start : chunk.end] == chunk.text == chunk.text.strip()
        assert not is_blank(chunk.text)
        position = chunk.end
    assert is_blank(text[position:])
    assert cut(text, method, size) == chunks


@given(text=TEXTS, size=st.integers(2, 40), data=st.data())
@settings(max_examples=200, deadline=None)
def test_overlapping_chunks_move_on_and_leave_no_gap(text, size, data):
    chunks = cut(text, "fixed", size, data.draw(st.integers(1, size - 1)))
    end = 0
    before = -1
    for chunk in chunks:
        assert before < chunk.start
        assert is_blank(text[end : chunk.start])
        assert text[chunk.start : chunk.end] == chunk.text
        assert len(chunk.text) <= size
        before, end = chunk.start, max(end, chunk.end)
    assert is_blank(text[end:])


@pytest.mark.parametrize("chunking", [("sentence", 8), ("fixed", 9), ("fixed", 12, 3)])
def test_a_sentence_that_is_repeated_has_each_time_its_own_place_and_id(chunking):
    chunks = cut("red fox. red fox. red fox.", *chunking)
    assert spans(chunks) == [(0, 8), (9, 17), (18, 26)] if chunking[-1] != 3 else [(0, 12), (9, 21), (18, 26)]
    assert len({chunk.id for chunk in chunks}) == 3


def test_sentences_are_packed_up_to_the_size():
    assert texts(cut("One a. Two b. Three c. Four.", "sentence", 14)) == ["One a. Two b.", "Three c. Four."]


def test_abbreviations_and_numbers_are_not_cut():
    text = "Lind paid $3.5 million to Mr. Q. Abara at 9 a.m. sharp. See https://ex.org/a.b?c=1.5 for v2.0.1 notes."
    assert texts(cut(text, "sentence", 60)) == [
        "Lind paid $3.5 million to Mr. Q. Abara at 9 a.m. sharp.",
        "See https://ex.org/a.b?c=1.5 for v2.0.1 notes.",
    ]


def test_a_sentence_longer_than_the_size_is_cut_at_blanks_and_its_rest_is_packed():
    assert texts(cut("aaa bbb ccc ddd. Ee.", "sentence", 9)) == ["aaa bbb", "ccc ddd.", "Ee."]


@pytest.mark.parametrize(("method", "overlap"), [*((method, 0) for method in METHODS), ("fixed", 50)])
def test_a_text_without_a_blank_is_cut_at_the_size(method, overlap):
    begin = time.process_time()
    chunks = cut("A" * 5000, method, 500, overlap)
    assert time.process_time() - begin < 1
    assert spans(chunks) == [(start, min(start + 500, 5000)) for start in range(0, 5000 - overlap, 500 - overlap)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("fixed", 100, 100), ["overlap (100)", "size (100)"]),
        (("fixed", 100, 101), ["overlap (101)", "size (100)"]),
        (("sentence", 100, 10), ["overlap", "10", "fixed", "sentence"]),
        (("words", 100), ["chunking.method", "sentence", "paragraph", "fixed", "page"]),
        (("sentence", 0), ["chunking.size", "1"]),
        (("fixed", 10, -1), ["chunking", "overlap", "0"]),
    ],
)
def test_settings_that_contradict_are_refused_with_their_names(options, words):
    with pytest.raises(SettingsError) as refused:
        chunking(*options)
    assert all(word in str(refused.value) for word in words)


def test_a_paragraph_is_a_chunk_and_a_long_one_is_cut_at_sentences():
    chunks = cut("Title\n\nFirst a. Second b.\n \nThird\nline.", "paragraph", 12)
    assert texts(chunks) == ["Title", "First a.", "Second b.", "Third\nline."]


def test_pages_keep_their_number_also_when_they_are_cut_or_blank():
    chunks = cut("One.\n\nStill one.\f \fThree a. Three b.\fFour.", "page", 17)
    assert [(chunk.metadata["page"], chunk.text) for chunk in chunks] == [
        (1, "One.\n\nStill one."),
        (3, "Three a. Three b."),
        (4, "Four."),
    ]
    assert [(chunk.metadata["page"], chunk.text) for chunk in cut("One.\fTwo a. Two b.", "page", 8)] == [
        (1, "One."),
        (2, "Two a."),
        (2, "Two b."),
    ]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("text", ["", "   \n\t", "\u200b", "\ufeff", "\f\f"])
def test_a_blank_text_makes_no_chunk(method, text):
    assert cut(text, method) == []


@pytest.mark.parametrize("size", range(2, 12))
@pytest.mark.parametrize("overlap", [0, 1])
def test_accents_and_joined_emoji_stay_with_their_character(size, overlap):
    text = "\u0141o\u0301dz\u0301\u2764\ufe0f\U0001f44d\U0001f3fd\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7e\u0301e\u0301"
    for chunk in cut(text, "fixed", size, overlap):
        assert unicodedata.category(chunk.text[0])[0] != "M"
        assert chunk.text[0] != "\U0001f3fd"
        assert not chunk.text.endswith(("\U0001f1e9", "\U0001f1eb"))


def test_a_joined_emoji_is_cut_only_when_it_is_longer_than_a_chunk():
    scientist = "\U0001f469\u200d\U0001f52c"
    assert texts(cut("ab" + scientist + "cd", "fixed", 4)) == ["ab", scientist + "c", "d"]
    assert "".join(texts(cut(scientist, "fixed", 2))) == scientist


def test_a_pile_of_accents_without_end_is_cut_all_the_same():
    text = "e" + "\u0301" * 5000
    assert "".join(texts(cut(text, "fixed", 100))) == text


def test_offsets_count_code_points_of_the_stored_text():
    text = "Thanks \u2764\ufe0f\u2764\ufe0f Ida Holm \U0001f469\u200d\U0001f52c moved to \u0141o\u0301dz\u0301."
    for method in METHODS:
        for chunk in cut(text, method, 24):
            for surface, start in (("Ida Holm", 12), ("\u0141o\u0301dz\u0301", 34)):
                if surface in chunk.text:
                    assert chunk.start + chunk.text.index(surface) == start
    assert any("\u0141o\u0301dz\u0301" in chunk.text for chunk in cut(text, "sentence", 24))


@pytest.mark.parametrize("method", METHODS)
def test_control_words_and_braces_come_out_as_they_are(method):
    text = 'The guide says <|endoftext|> ends a sample; </s> and [SEP] too. Config: {"a": {x}} and %s and $NAME.'
    assert texts(cut(text, method)) == [text]
