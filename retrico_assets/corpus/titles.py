"""The title of a document that was given none."""

import re

_MARKDOWN = (".md", ".markdown")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?\n)(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_FRONT_MATTER_TITLE = re.compile(r"""^title:[ \t]*(["']?)(?P<title>[^\s"'|>\[{&*!].*?)\1[ \t]*$""", re.MULTILINE)
# Headings don't count inside fenced code and HTML comments; both end with the text if nothing closes them.
_NOT_PROSE = re.compile(
    r"^ {0,3}(?P<fence>`{3,}|~{3,})[^\n]*\n(?:.*?^ {0,3}(?P=fence)[`~]*[ \t]*$|.*\Z)|<!--(?:.*?-->|.*\Z)",
    re.DOTALL | re.MULTILINE,
)
_HEADING = re.compile(
    r"^ {0,3}#{1,6}[ \t]+(?P<marked>\S.*?)(?:[ \t]+#+)?[ \t]*$"
    r"|^ {0,3}(?![-+*>#|=]|\d+[.)][ \t])(?P<underlined>\S.*?)[ \t]*\n {0,3}(?:=+|--+)[ \t]*$",
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
    """The title in the front matter, else the first heading, marked with ``#`` or underlined; None without either."""
    front_matter = _FRONT_MATTER.match(text)
    if front_matter:
        title = _FRONT_MATTER_TITLE.search(front_matter[1])
        if title:
            return title["title"].strip()
        text = text[front_matter.end() :]
    heading = _HEADING.search(_NOT_PROSE.sub("\n", text))
    return _without_markup(heading["marked"] or heading["underlined"]) if heading else None


def _without_markup(heading: str) -> str:
    return _EMPHASIS.sub(r"\2", _LINK.sub(r"\1", heading)).strip()
