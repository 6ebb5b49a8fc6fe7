import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from resources.text.characters import character_start, is_blank, is_storable, printable, storable


@pytest.mark.parametrize(
    "text",
    ["", " \t\n", "\u200b", "\ufeff", "\u00ad", "\u3164", "\u2800", "\u202e", "\0\x07", "\ud800", "\ufe0f", "\u034f\u2060"],
)
def test_a_text_with_nothing_to_see_is_blank(text):
    assert is_blank(text)


@pytest.mark.parametrize("text", [".", " \u200b.", "\u0301", "東", "🤔", "0"])
def test_a_text_with_a_visible_character_is_not_blank(text):
    assert not is_blank(text)


@given(st.text(st.characters(exclude_categories=())))
@example("a\0\ud800b")
def test_what_is_storable_is_utf8_without_nul(text):
    kept = storable(text)
    assert is_storable(kept)
    assert "\0" not in kept.encode().decode()
    assert is_storable(text) == (kept == text)


def test_printable_text_cannot_steer_a_terminal():
    assert printable("a\x1b[31m\ud83db\tc\n") == "a[31m\ufffdb\tc\n"


@given(st.text(st.sampled_from("ae\u0301🇩🇪👨👩\u200d🏽क्षि한ᄒ\u1161 ")), st.integers(0, 30))
def test_a_cut_parts_no_character_of_a_reader(text, place):
    place = min(place, len(text))
    cut = character_start(text, place)
    starts = [found.start() for found in regex.finditer(r"\X", text)] + [len(text)]
    if cut != place:
        assert cut in starts
    elif place and place not in starts:
        assert not any(0 < start < place for start in starts)  # only the first character is longer


def test_a_very_long_character_may_be_cut():
    assert character_start("a" + "\u0301" * 200, 150) == 150
