import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.text.words import question_phrases, search_words, words
from tests.support.spellings import SPELLINGS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("C++, C# and .NET at AT&T", ["c", "++", "c", "#", "and", ".", "net", "at", "at", "&", "t"]),
        ("東京タワー", ["東", "京", "タ", "ワ", "ー"]),
        ("हिन्दी क्षि", ["हिन्दी", "क्षि"]),
        ("Nuku\u02bbalofa", ["nuku", "alofa"]),
        ("Zürich 2024 ٢٠٢٤", ["zurich", "2024", "2024"]),
    ],
)
def test_a_text_is_cut_into_words(text, expected):
    assert words(text) == expected


@pytest.mark.parametrize(("one", "other"), [*SPELLINGS, ("COVID-19", "Covid19"), ("e\u2011mail", "email")])
def test_each_way_to_write_a_word_finds_the_other(one, other):
    for question, text in ((one, other), (other, one)):
        stored = f" {' '.join(search_words(f'It is about {text} today.'))} "
        assert any(f" {' '.join(phrase)} " in stored for phrase in question_phrases(question))


def test_numbers_joined_by_a_hyphen_stay_two_numbers():
    assert search_words("2020-21") == ["2020", "21"]


@given(st.text())
def test_words_hold_neither_spaces_nor_quotes_and_stay_as_they_are(text):
    found = words(text)
    assert not any(character.isspace() or character == '"' for word in found for character in word)
    assert all(words(word)[:1] == [word] for word in found if word[0] not in "+&#.")


@given(st.text(st.characters(max_codepoint=127)))
def test_the_short_way_for_ascii_gives_the_same(text):
    beyond = " д"
    assert words(text + beyond) == [*words(text), "д"]
    assert search_words(text + beyond) == [*words(text), "д", *search_words(text)[len(words(text)) :]]


@given(st.text())
def test_a_text_is_found_by_its_own_words(text):
    stored = f" {' '.join(search_words(text))} "
    assert all(f" {' '.join(phrase)} " in stored for phrase in question_phrases(text))
