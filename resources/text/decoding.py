"""From bytes to the one text that every offset counts in."""

import re
from typing import NamedTuple

from resources.errors import DocumentError

# UTF-32 first: its little-endian mark begins with the one of UTF-16.
_BYTE_ORDER_MARKS = (
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xfe\xff", "utf-16-be"),
    (b"\xff\xfe", "utf-16-le"),
)
# Encodings that people's files have. The full list of a detector finds Chinese in "Zürich" and DOS code pages in French.
_USUAL_ENCODINGS = (
    *("cp1252", "cp1250", "cp1251", "koi8_r", "cp932", "euc_jp", "gb18030", "big5", "cp949"),
    *("cp1253", "cp1254", "cp1255", "cp1256", "cp1257"),
)
_WESTERN = frozenset("äöüßÄÖÜéèêëàâáãåæçîïíìñôóòõøœúùûýÿÉÈÊËÀÂÁÃÅÆÇÎÏÍÌÑÔÓÒÕØŒÚÙÛŠšŽž“”‘’„‚«»‹›–—…•·€£¥§°©®™±¿¡½¼¾ªº´\xa0")
_SAMPLE = 1 << 16
_CONTROL = bytes(set(range(32)) - set(b"\b\t\n\v\f\r\x1a\x1b"))
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
# Control sequences of terminals (ECMA-48): colours and cursor movements, window titles and links, character sets, others.
_TERMINAL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[()][0-9A-Z]|[@-Z\\-_]|)")
# Bold and underlined text of printers and manual pages: a character, a backspace, and what is printed over it.
_UNDERLINED_AFTER = re.compile(r"([^_\n\x08])\x08_")
_OVERSTRUCK = re.compile(r"[^\n\x08]?\x08")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


class BinaryFileError(DocumentError):
    """The bytes aren't text."""


class UndecodableError(DocumentError):
    """The bytes look like text, but no encoding fits."""


class Decoded(NamedTuple):
    text: str
    encoding: str


class Cleaned(NamedTuple):
    """A text as it is stored, how many code points were removed, and how many lone surrogates became U+FFFD."""

    text: str
    removed: int
    replaced: int


def decode(data: bytes) -> str:
    """Return the text in ``data``; see ``decode_with_encoding``."""
    return decode_with_encoding(data).text


def decode_with_encoding(data: bytes) -> Decoded:
    """Read UTF-8, UTF-16 or UTF-32 by their byte order mark, UTF-8 without one, or else the encoding that fits best.

    Raises:
        BinaryFileError: the bytes are not text.
        UndecodableError: no usual encoding fits.
    """
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return Decoded(_decode_marked(data[len(mark) :], encoding), encoding)
    # Real UTF-8 may hold a stray NUL; UTF-16 without a mark passes for UTF-8 too, but every second byte of it is NUL.
    control = _share_of_control_bytes(data)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        _refuse_broken_utf8(data, error)
        return _decode_by_detection(data, control)
    if control > 0.1:
        raise BinaryFileError(
            f"{control:.0%} of its bytes are control characters: not text, or UTF-16 without a byte order mark. Save it as UTF-8."
        )
    return Decoded(text, "utf-8")


def clean(text: str) -> Cleaned:
    """Remove what is not a part of the text.

    - U+FEFF and NUL are removed; CRLF and CR become LF.
    - Surrogate pairs are joined; lone surrogates become U+FFFD.
    - Control sequences of terminals are removed.
    - A character that is printed over another by a backspace takes its place; an underscore gives way.

    Everything else stays, form feeds and zero-width spaces among it. Cleaning twice changes nothing more.
    """
    replaced = 0
    cleaned = text
    if _SURROGATE.search(text):
        cleaned = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        replaced = cleaned.count("\ufffd") - text.count("\ufffd")
    for before, after in (("\ufeff", ""), ("\x00", ""), ("\r\n", "\n"), ("\r", "\n")):
        cleaned = cleaned.replace(before, after)
    if "\x1b" in cleaned:
        cleaned = _TERMINAL.sub("", cleaned)
    if "\x08" in cleaned:
        cleaned = _OVERSTRUCK.sub("", _UNDERLINED_AFTER.sub(r"\1", cleaned))
    return Cleaned(cleaned, len(text) - len(cleaned), replaced)


def _decode_marked(data: bytes, encoding: str) -> str:
    # Programs write lone surrogates into UTF-16; clean() replaces them.
    errors = "strict" if encoding == "utf-8" else "surrogatepass"
    try:
        return data.decode(encoding, errors)
    except UnicodeDecodeError as error:
        raise UndecodableError(
            f"its byte order mark says {encoding}, but byte {error.start} after the mark doesn't fit ({error.reason}). "
            "Save it as UTF-8, or copy it again if it was cut short."
        ) from error


def _refuse_broken_utf8(data: bytes, error: UnicodeDecodeError) -> None:
    """A UTF-8 file with a broken byte must not pass for another encoding, or all its accents would be wrong."""
    text = data.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    accents = len(_NOT_ASCII.findall(text)) - broken
    if accents > broken:
        raise UndecodableError(
            f"it is UTF-8 with {broken} broken places, the first at byte {error.start} ({error.reason}). "
            "Save it as UTF-8, or copy it again if it was cut short."
        )


def _decode_by_detection(data: bytes, control: float) -> Decoded:
    if control > 0.005 or b"\x00" in data[:_SAMPLE]:
        raise BinaryFileError("it isn't UTF-8 and holds control characters, so it isn't text. Exclude or convert it.")
    western = _decode_western(data)
    if western is not None:
        return Decoded(western, "cp1252")
    import charset_normalizer

    sample = data if len(data) <= _SAMPLE else data[: data.rfind(b"\n", 0, _SAMPLE) + 1 or _SAMPLE]
    match = charset_normalizer.from_bytes(sample, cp_isolation=list(_USUAL_ENCODINGS)).best()
    if match is None:
        raise UndecodableError("it isn't UTF-8, and no usual encoding fits it. Save it as UTF-8.")
    try:
        return Decoded(data.decode(match.encoding), match.encoding)
    except UnicodeDecodeError as error:
        raise UndecodableError(
            f"it isn't UTF-8; it begins like {match.encoding}, but byte {error.start} doesn't fit. Save it as UTF-8."
        ) from error


def _decode_western(data: bytes) -> str | None:
    """``data`` read as Windows-1252, if that gives a Western European text: few accents, none of them odd.

    A statistical detector takes a short text's "ï" and "à" for Central European letters.
    """
    try:
        text = data.decode("cp1252")
    except UnicodeDecodeError:
        return None
    sample = text[:_SAMPLE]
    accents = sum(not char.isascii() and char.isalpha() for char in sample)
    letters = sum(map(str.isalpha, sample))
    plausible = all(char.isascii() or char in _WESTERN for char in set(text))
    return text if plausible and accents <= 0.25 * letters else None


def _share_of_control_bytes(data: bytes) -> float:
    sample = data[:_SAMPLE]
    return (len(sample) - len(sample.translate(None, _CONTROL))) / max(1, len(sample))
