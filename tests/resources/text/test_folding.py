import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.text.folding import fold, fold_accents


@pytest.mark.parametrize(
    ("written", "found_as"),
    [
        ("Łódź", "lodz"),
        ("smørrebrød", "smorrebrod"),
        ("Ærøskøbing", "aeroskobing"),
        ("Zürich", "zurich"),
        ("İstanbul", "istanbul"),
        ("Isparta", "ısparta"),
        ("أحمد", "احمد"),
        ("Москва\u0301", "москва"),
    ],
)
def test_accents_and_strokes_of_letters_do_not_hinder_search(written, found_as):
    assert fold_accents(fold(written)) == fold_accents(fold(found_as))


@pytest.mark.parametrize(("one", "other"), [("й", "и"), ("ї", "і"), ("か", "が"), ("हिन्दी", "हन्द")])
def test_marks_that_make_another_letter_stay(one, other):
    assert fold_accents(fold(one)) != fold_accents(fold(other))


@given(st.text())
def test_folding_twice_changes_nothing_more(text):
    once = fold(text)
    assert fold(once) == once
    plain = fold_accents(once)
    assert fold_accents(fold(plain)) == plain


def test_every_character_folds_to_a_form_that_stays():
    changing = [
        hex(point)
        for point in range(sys.maxunicode + 1)
        for text in (chr(point), f"ا{chr(point)}")
        if fold(fold(text)) != fold(text)
    ]
    assert changing == []


@given(st.text(st.characters(max_codepoint=0x24F)))
def test_the_short_way_for_latin_letters_gives_the_same(text):
    beyond = "東"  # a letter that leads through all steps
    assert fold(text + beyond) == fold(text) + beyond
