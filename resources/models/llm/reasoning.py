"""Keeps what a reasoning model thinks apart from what it says, in a whole text and in one that comes in pieces."""

import re

_NAME = r"(?:\w+:)?think(?:ing)?"
_OPENING = re.compile(rf"<{_NAME}>|\[THINK\]")
_CLOSING = re.compile(rf"</{_NAME}>|\[/THINK\]")
_TAG = re.compile(f"{_OPENING.pattern}|{_CLOSING.pattern}")
_CLOSED_BLOCK = re.compile(f"(?:{_OPENING.pattern}).*?(?:{_CLOSING.pattern})", re.DOTALL)
_HALF_A_TAG = re.compile(r"(?:</?[\w:]{0,24}|\[/?[THINK]{0,5})\Z")


def without_reasoning(text: str) -> str:
    """The text that is meant for the reader, without blank ends.

    A block runs from <think> to </think> (also as <thinking>, <name:think> or [THINK]); one that is not closed runs to the
    end; and what stands before a closing tag without an opening one is reasoning too, since some chat templates put the
    opening tag into the prompt.
    """
    text = _CLOSED_BLOCK.sub("", text)
    closing = list(_CLOSING.finditer(text))
    if closing:
        text = text[closing[-1].end() :]
    opening = _OPENING.search(text)
    return (text[: opening.start()] if opening else text).strip()


def starts_unannounced(text: str) -> bool:
    """Whether a text begins inside a reasoning block: its first tag is a closing one."""
    first = _TAG.search(text)
    return first is not None and _CLOSING.fullmatch(first[0]) is not None


class VisibleText:
    """Lets through, piece by piece, what ``without_reasoning`` leaves of the whole.

    ``unannounced`` says that the text begins inside a reasoning block, as ``starts_unannounced`` told of an earlier one: all
    is held back until the closing tag, or given at the end if there is none. Without that warning, reasoning whose opening
    tag is missing can't be told from an answer before its closing tag comes.
    """

    def __init__(self, unannounced: bool = False) -> None:
        self._inside = unannounced
        self._from_the_start = unannounced
        self._everything: list[str] = []
        self._held = ""
        self._blank = ""
        self._begun = False

    def begin_outside(self) -> None:
        """Take the warning back, as long as no text has come: this server keeps reasoning apart."""
        if self._from_the_start and not any(self._everything):
            self._inside = self._from_the_start = False

    def feed(self, piece: str) -> str:
        """What has become visible with this piece."""
        self._everything.append(piece)
        self._held += piece
        shown = ""
        while tag := (_CLOSING if self._inside else _TAG).search(self._held):
            if not self._inside:
                shown += self._show(self._held[: tag.start()])
            self._inside = _OPENING.fullmatch(tag[0]) is not None
            self._from_the_start = False
            self._held = self._held[tag.end() :]
        half = _HALF_A_TAG.search(self._held)
        ready = half.start() if half else len(self._held)
        if not self._inside:
            shown += self._show(self._held[:ready])
        self._held = self._held[ready:]
        return shown

    def end(self) -> str:
        """What is left when no more pieces come."""
        if self._from_the_start:
            return without_reasoning("".join(self._everything))
        return "" if self._inside else self._show(self._held)

    def _show(self, text: str) -> str:
        """Blanks wait for what follows them, so that none stand at either end."""
        if not self._begun:
            text = text.lstrip()
        text = self._blank + text
        solid = text.rstrip()
        self._blank = text[len(solid) :]
        self._begun = self._begun or bool(solid)
        return solid
