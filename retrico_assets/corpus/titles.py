"""The title of a document that was given none."""

import re

_LONGEST_TITLE = 1000
_MARKDOWN = (".md", ".markdown")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?\n)(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_FRONT_MATTER_TITLE = re.compile(r"""^title:[ \t]*(["']?)(?P<title>[^\s"'|>\[{&*!].*?)\1[ \t]*$""", re.MULTILINE)
# Headings don't count inside fenced code and HTML comments; both end with the text if nothing closes them.
_NOT_PROSE = re.compile(
    r"^ {0,3}(?P<fence>`{3,}+|~{3,}+)[^\n]*\n(?:.*?^ {0,3}(?P=fence)[`~]*[ \t]*$|.*\Z)|<!--(?:.*?-->|.*\Z)",
    re.DOTALL | re.MULTILINE,
)
_HEADING = re.compile(
    r"^ {0,3}#{1,6}[ \t]+(?P<marked>[^\s#][^\n]*)$"
    r"|^ {0,3}(?![-+*>#|=]|\d+[.)][ \t])(?P<underlined>\S[^\n]*)\n {0,3}(?:=+|--+)[ \t]*$",
    re.MULTILINE,
)
_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^)\n]*\)")
_EMPHASIS = re.compile(r"(?<![\w*`~])(\*\*|__|~~|[*_`])(?=\S)(.+?)(?<=\S)\1(?![\w*`~])")


def document_title(source: str, text: str) -> str:
    """The first heading of a Markdown file (or its front matter's title), else the file's name as words."""
    heading = markdown_title(text) if source.lower().endswith(_MARKDOWN) else None
    if heading:
        return heading
    stem = source.rpartition("/")[2]
    stem = stem.rpartition(".")[0] or stem
    return re.sub(r"[_\s]+", " ", stem).strip() or stem


def markdown_title(text: str) -> str | None:
    """The title in the front matter, else the first heading, marked with ``#`` or underlined; None without either.

    A heading is cut at 1,000 characters.
    """
    front_matter = _FRONT_MATTER.match(text)
    if front_matter:
        field = _FRONT_MATTER_TITLE.search(front_matter[1])
        if field:
            return str(field["title"].strip())
        text = text[front_matter.end() :]
    heading = _HEADING.search(_NOT_PROSE.sub("\n", text))
    if heading is None:
        return None
    title: str = heading["underlined"] or _without_closing_marks(heading["marked"].rstrip())
    return _without_markup(title[:_LONGEST_TITLE])


def _without_closing_marks(heading: str) -> str:
    """``Title ##`` reads "Title", but ``C#`` stays."""
    shorter = heading.rstrip("#")
    return shorter if shorter.endswith((" ", "\t")) else heading


def _without_markup(heading: str) -> str:
    return _EMPHASIS.sub(r"\2", _LINK.sub(r"\1", heading)).strip()
