"""From bytes to the stored text."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.errors import DocumentError
from resources.text.decoding import BinaryFileError, UndecodableError, clean, decode, decode_with_encoding

WORDS = "Zoë Łódź 日本 👩‍🔬"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_unicode_is_read_with_its_byte_order_mark_or_as_utf8_without_one(encoding):
    assert decode(WORDS.encode(encoding)) == WORDS


@pytest.mark.parametrize(
    ("mark", "encoding"), [(b"\xfe\xff", "utf-16-be"), (b"\xff\xfe", "utf-16-le"), (b"\x00\x00\xfe\xff", "utf-32-be")]
)
def test_the_byte_order_mark_says_the_byte_order(mark, encoding):
    assert decode_with_encoding(mark + WORDS.encode(encoding)) == (WORDS, encoding)


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1252", "Zürich"),
        ("cp1252", "Albert Einstein naquit à Ulm, dans une famille naïve. “Oui” – dit-il."),
        ("cp1250", "Marie Skłodowska urodziła się w Warszawie. Żyła w Paryżu."),
        ("cp1251", "Он родился в Москве и работал в Институте физики."),
        ("koi8_r", "Он родился в Москве и работал в Институте физики."),
        ("cp932", "日本語の文章です。京都で働く。研究所のサラは"),
        ("gb18030", "他出生在北京。在大学工作。"),
        ("cp949", "그는 서울에서 태어났다."),
    ],
)
def test_an_old_encoding_is_found_out(encoding, text):
    assert decode_with_encoding(text.encode(encoding)) == (text, encoding)


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x01\x00",
        bytes(range(256)) * 4,
        "No mark, two bytes a letter".encode("utf-16-le"),
        os.urandom(4096),
    ],
)
def test_bytes_that_are_no_text_are_refused_as_binary(data):
    with pytest.raises(BinaryFileError, match="control characters"):
        decode(data)


def test_a_text_in_no_known_encoding_is_refused():
    with pytest.raises(UndecodableError, match="Save it as UTF-8"):
        decode(bytes(range(128, 256)) * 3)


def test_a_utf8_file_that_was_cut_short_is_not_taken_for_another_encoding():
    data = "Gödel, Schrödinger, Noëther und Łukasiewicz: é".encode()[:-1]
    with pytest.raises(UndecodableError, match=f"byte {len(data) - 1}"):
        decode(data)


def test_half_a_utf16_file_is_refused():
    with pytest.raises(UndecodableError, match="utf-16-le"):
        decode("Half".encode("utf-16")[:-1])


@given(st.binary(max_size=200))
@settings(deadline=None)
def test_any_bytes_give_a_text_or_an_error_for_that_document(data):
    try:
        text = decode(data)
    except DocumentError:
        return
    assert isinstance(text, str)


def test_every_kind_of_line_end_becomes_one_line_feed():
    assert clean("a\r\nb\rc\nd\r\r\ne") == ("a\nb\nc\nd\n\ne", 2, 0)


def test_byte_order_marks_and_nul_go_and_are_counted():
    assert clean("\ufeffa\x00b\ufeffc\r\x00\nd") == ("abc\nd", 5, 0)


def test_lone_surrogates_are_replaced_and_pairs_joined():
    assert clean("a\ud83d b\ude00 c\ud83d\ude00") == ("a\ufffd b\ufffd c\U0001f600", 1, 2)


def test_zero_width_spaces_joiners_accents_and_form_feeds_stay():
    text = "Thanks \u2764\ufe0f Ida \U0001f469\u200d\U0001f52c \u0141o\u0301dz\u0301\u200b.\fPage two"
    assert clean(text) == (text, 0, 0)


def test_crlf_text_has_one_reference_that_offsets_count_in():
    text = clean(decode(b"Ship list:\r\n\tAurora\xe2\x80\x8b Line\r\n\tBorealis AG\r\n")).text
    assert text[12:24] == "Aurora\u200b Line"
    assert text[26:37] == "Borealis AG"
    assert len(text) == 38


def test_control_words_and_braces_are_plain_text():
    text = 'The guide says <|endoftext|> ends a sample; </s> and [SEP] too. Config: {"a": {x}} and %s and $NAME.'
    assert clean(decode(text.encode())) == (text, 0, 0)


@given(st.text(st.characters(categories=None) | st.sampled_from("\r\n\x00\ufeff\ud83d\ude00\x1b\b[]0m_x"), max_size=60))
@settings(deadline=None)
def test_cleaning_twice_changes_nothing_more(text):
    once = clean(text).text
    assert clean(once) == (once, 0, 0)
    once.encode()  # no surrogate is left


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("Engineer \x1b[32mRosa Lindt\x1b[0m was born in \x1b[33mBasel\x1b[0m.", "Engineer Rosa Lindt was born in Basel."),
        ("\x1b]8;;https://x.example\x1b\\a link\x1b]8;;\x1b\\", "a link"),
        ("\x1b]0;title\x07text\x1b(B", "text"),
        ("cut short \x1b", "cut short "),
        ("\x1b\x1b[0m[0m", "[0m"),
    ],
)
def test_control_sequences_of_terminals_are_removed(text, cleaned):
    assert clean(text).text == cleaned


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("D\bDE\bES\bSC\bC", "DESC"),
        ("x\bx\bx\bx", "x"),
        ("_\bn_\ba_\bm_\be", "name"),
        ("n\b_a\b_", "na"),
        ("+\bo a bullet", "o a bullet"),
        ("\b\n\bx", "\nx"),
    ],
)
def test_what_a_backspace_prints_over_is_read_once(text, cleaned):
    assert clean(text).text == cleaned


def test_a_rendered_manual_page_is_text_however_much_of_it_is_bold():
    page = "".join(f"{letter}\b{letter}" for letter in "DESCRIPTION") + "\n       plain words.\n"
    assert clean(decode(page.encode())).text == "DESCRIPTION\n       plain words.\n"
