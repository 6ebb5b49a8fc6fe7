"""Where sentences begin and end."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.text.sentences import paragraph_spans, sentence_spans

PUMPS = (
    "1) Pump A leaked. 2) Pump B held. Lind et al. [2021] paid $3.5 million to Mr. Q. Abara at 9 a.m. sharp. "
    "See https://ex.org/a.b?c=1.5 for v2.0.1 notes. It stopped... Then it ran."
)
TEXTS = st.text(
    st.sampled_from(list("abAB.!?…。!「」“”\"'()[] \n\t\f\r\x85\xa0\u3000\u200b\u0301\u200d👩é1日"))
    | st.characters(codec="utf-8"),
    max_size=80,
)


def sentences(text, language="en"):
    return [text[start:end] for start, end in sentence_spans(text, language)]


def test_abbreviations_numbers_addresses_and_list_markers_end_no_sentence():
    assert sentences(PUMPS) == [
        "1) Pump A leaked.",
        "2) Pump B held.",
        "Lind et al. [2021] paid $3.5 million to Mr. Q. Abara at 9 a.m. sharp.",
        "See https://ex.org/a.b?c=1.5 for v2.0.1 notes.",
        "It stopped...",
        "Then it ran.",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("日本語です。「はい。」と言った。次!何?ええ", ["日本語です。", "「はい。」", "と言った。", "次!", "何?", "ええ"]),
        ("1. Pump A leaked. 2. Pump B held.", ["1. Pump A leaked.", "2. Pump B held."]),
        ("Ms. Lee has a Ph.D. in law. Node.js is a name.", ["Ms. Lee has a Ph.D. in law.", "Node.js is a name."]),
        ("See (Vol. 3) and Ch. 4 too.", ["See (Vol. 3) and Ch. 4 too."]),
        ("He was in Munich. In 1902 he left.", ["He was in Munich.", "In 1902 he left."]),
        ("Wait… What? Yes... \"No.\"", ["Wait…", "What?", "Yes...", '"No."']),
        ("He waited... and left.", ["He waited... and left."]),
        ("# Marie Curie\n\nShe was born. She died.", ["# Marie Curie", "She was born.", "She died."]),
        ("one\ftwo", ["one", "two"]),
        ("Water boils.[2] It cools.", ["Water boils.[2]", "It cools."]),
        ("Он родился в Москве. Он умер.", ["Он родился в Москве.", "Он умер."]),
        ("", []),
        (" \n\n \f ", []),
    ],
)  # fmt: skip
def test_sentences_are_found(text, expected):
    assert sentences(text) == expected


def test_another_language_brings_its_abbreviations():
    assert sentences("Er kam z.B. nach Ulm. Bzw. er ging.", "de")[0] == "Er kam z.B. nach Ulm."


@given(TEXTS)
@settings(max_examples=300, deadline=None)
def test_sentences_are_in_order_do_not_overlap_and_cover_what_is_not_white_space(text):
    spans = sentence_spans(text)
    position = 0
    for start, end in spans:
        assert position <= start < end
        assert not text[position:start].strip()
        assert text[start:end] == text[start:end].strip()
        position = end
    assert not text[position:].strip()


@pytest.mark.parametrize("start", [0, 1, 7, 30])
def test_a_text_of_many_windows_is_cut_like_its_sentences_one_by_one(start):
    unit = "Dr. Curie paid $3.5 million at 9 a.m. sharp. See https://ex.org/a.b?c=1.5 for it. It stopped... Then it ran. "
    text = (unit * 60)[start:]
    assert sentences(text)[4:] == sentences(unit) * 59


def test_a_sentence_longer_than_any_window_stays_whole():
    long = "lorem ipsum " * 900 + "ends here."
    assert sentences(f"It begins. {long} Then Dr. Lee left.") == ["It begins.", long, "Then Dr. Lee left."]


def test_a_very_long_word_stays_whole():
    assert sentences("A" * 5000 + ". Then.") == ["A" * 5000 + ".", "Then."]


@pytest.mark.parametrize(
    "unit", ["日本語の文章です。", "“ ", "«a. ", "A", "a.b", "(x. ", "Mr. ", "! ", "…", "\n", "\n\n", " \n", "1) a. ", "\xa0. "]
)
def test_no_text_takes_more_than_linear_time(unit):
    def seconds(length):
        text = unit * (length // len(unit))
        begin = time.process_time()
        sentence_spans(text)
        return time.process_time() - begin

    seconds(1000)
    # Quadratic time would be 64 times as long; linear time is 8 times.
    assert seconds(160_000) < 30 * max(min(seconds(20_000) for _ in range(3)), 0.001)


def test_paragraphs_lie_between_blank_lines_and_form_feeds():
    text = "\n\n one\nline \n \t\n two\f\fthree\n\n\n"
    assert [text[start:end] for start, end in paragraph_spans(text)] == ["one\nline", "two", "three"]
