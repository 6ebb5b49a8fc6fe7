"""From a folder, or from texts given inline, to documents."""

import hashlib
import os
import re
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from resources.errors import DocumentError, SettingsError
from resources.records import Document
from resources.text.characters import is_blank
from resources.text.decoding import BinaryFileError, UndecodableError, clean, decode_with_encoding
from retrico_assets.corpus.ids import document_id

_TEMPORARY = re.compile(r"\..*|~\$.*|.*~|.*\.(?:part|partial|tmp|temp|swp|crdownload|download)", re.IGNORECASE | re.DOTALL)
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.+?)(?:[ \t]+#+)?[ \t]*$", re.MULTILINE)
_MARKDOWN = (".md", ".markdown")


class CorpusFolderError(DocumentError):
    """The corpus folder, or a folder in it, can't be listed. That is not the same as an empty folder."""


@dataclass(frozen=True, slots=True)
class FileState:
    """A file of the corpus as the disk shows it. ``source`` is its path relative to the root, with "/"."""

    source: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Scan:
    """The files to read, ordered by source, and what was passed over: reasons by source."""

    files: tuple[FileState, ...]
    skipped: dict[str, str]


@dataclass(frozen=True, slots=True)
class InlineText:
    """A text that is given instead of a file."""

    text: str
    source: str | None = None
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """A source that gave no document. ``state``: empty (no failure), binary, undecodable or unreadable."""

    source: str
    state: str
    reason: str
    failed: bool = True


@dataclass(frozen=True, slots=True)
class Reading:
    documents: tuple[Document, ...]
    problems: tuple[Problem, ...]


def scan(root: Path, include: Sequence[str], exclude: Sequence[str] = ()) -> Scan:
    """List the files under ``root`` whose path matches a pattern of ``include`` and none of ``exclude``.

    Patterns are relative to ``root`` and case counts: ``*`` and ``?`` stay inside a name, ``**/`` is any number of folders. A
    folder that is excluded (``drafts`` or ``drafts/**``) is not entered. Temporary and hidden names, links that are broken or
    lead out, and links to folders are skipped with the reason.

    Raises CorpusFolderError when ``root`` or a folder in it can't be listed, SettingsError for a pattern that can't match.
    """
    if not include:
        raise SettingsError("corpus.include is empty, so no file would be read. Name a pattern, like '**/*.txt'.")
    found = _Folder(root, _Globs(include), _Globs([pattern.removesuffix("/**") for pattern in exclude]))
    found.walk()
    return Scan(tuple(sorted(found.files, key=lambda file: file.source)), dict(sorted(found.skipped.items())))


def read_files(root: Path, files: Scan, on_progress: Callable[[int, int], None] | None = None) -> Reading:
    """Read every file of ``files``, one after another. ``on_progress`` is told (files done, files in all)."""
    documents: list[Document] = []
    problems: list[Problem] = []
    for done, file in enumerate(files.files, start=1):
        result = read_file(root, file.source)
        if isinstance(result, Document):
            documents.append(result)
        else:
            problems.append(result)
        if on_progress is not None:
            on_progress(done, len(files.files))
    return Reading(tuple(documents), tuple(problems))


def read_file(root: Path, source: str) -> Document | Problem:
    """The document in the file ``source`` under ``root``, or why there is none."""
    try:
        data = (root / source).read_bytes()
        text, encoding = decode_with_encoding(data)
    except OSError as error:
        return Problem(source, "unreadable", f"{error.strerror or error}. Check that the file is still there and may be read.")
    except BinaryFileError as error:
        return Problem(source, "binary", str(error))
    except UndecodableError as error:
        return Problem(source, "undecodable", str(error))
    return _document(source, text, None, {"path": source, "encoding": encoding})


def inline_documents(texts: Sequence[InlineText]) -> Reading:
    """Documents of texts that are given inline.

    A text without a source gets ``inline/`` and the beginning of its hash, so that the order of the list doesn't matter. The
    first text of a source counts; another one is a problem, unless it is the same text without a name.
    """
    documents: dict[str, Document] = {}
    problems: list[Problem] = []
    for number, inline in enumerate(texts, start=1):
        source = inline.source or f"inline/{_sha256(clean(inline.text).text)[:16]}"
        try:
            source.encode()
        except UnicodeEncodeError:
            problems.append(Problem(ascii(source), "unreadable", f"the source of inline text {number} isn't Unicode. Rename it."))
            continue
        result = _document(source, inline.text, inline.title, {})
        if isinstance(result, Problem):
            problems.append(result)
        elif source not in documents:
            documents[source] = result
        elif inline.source:
            problems.append(Problem(source, "unreadable", f"inline text {number} has the source of an earlier one. Rename it."))
    return Reading(tuple(documents.values()), tuple(problems))


def _document(source: str, raw: str, title: str | None, metadata: dict[str, object]) -> Document | Problem:
    text, _, replaced = clean(raw)
    if is_blank(text):
        return Problem(source, "empty", "there is no visible character in it", failed=False)
    if replaced:
        metadata |= {"replaced_characters": replaced}
    return Document(
        id=document_id(source),
        source=source,
        title=clean(title).text if title else _title(source, text),
        text=text,
        text_hash=_sha256(text),
        metadata=metadata,
    )


def _title(source: str, text: str) -> str:
    """A Markdown file's first heading, else the file's name as words."""
    if source.lower().endswith(_MARKDOWN) and (heading := _HEADING.search(text)):
        return heading[1].strip()
    stem = source.rpartition("/")[2]
    stem = stem.rpartition(".")[0] or stem
    return re.sub(r"[_\s]+", " ", stem).strip() or stem


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class _Globs:
    """Patterns for paths relative to the corpus root."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = [re.compile(_expression(pattern), re.DOTALL) for pattern in patterns]

    def match(self, source: str) -> bool:
        return any(pattern.fullmatch(source) for pattern in self._patterns)


def _expression(pattern: str) -> str:
    """The regular expression of a glob pattern."""
    parts = pattern.removeprefix("./").rstrip("/").split("/")
    if pattern.startswith("/") or ".." in parts or "" in parts:
        raise SettingsError(f"The pattern {pattern!r} can't match: write it relative to the corpus folder, like '**/*.txt'.")
    expression = ""
    for number, part in enumerate(parts, start=1):
        if part == "**":
            expression += "(?:[^/]+/)*" if number < len(parts) else ".+"
        else:
            expression += _name_expression(part) + ("/" if number < len(parts) else "")
    return expression


def _name_expression(part: str) -> str:
    def translate(found: re.Match[str]) -> str:
        token = found[0]
        if token == "?":
            return "[^/]"
        if token.startswith("*"):
            return "[^/]*"
        if len(token) > 2 and token.startswith("["):
            return "(?!/)[" + re.sub(r"^!", "^", re.sub(r"([\\\[&~|])", r"\\\1", token[1:-1])) + "]"
        return re.escape(token)

    expression = re.sub(r"\*+|\?|\[!?\]?[^\]/]*\]|.", translate, part, flags=re.DOTALL)
    try:
        re.compile(expression)
    except re.error as error:
        raise SettingsError(f"The pattern {part!r} can't be read: {error}. Write a range like '[a-z]'.") from error
    return expression


class _Folder:
    """A walk through the corpus folder that collects files and reasons."""

    def __init__(self, root: Path, include: _Globs, exclude: _Globs) -> None:
        self.files: list[FileState] = []
        self.skipped: dict[str, str] = {}
        self._root = root
        self._real_root = os.path.realpath(root)
        self._include = include
        self._exclude = exclude

    def walk(self) -> None:
        folders = [""]  # a stack, for folders may nest deeper than calls
        while folders:
            folder = folders.pop()
            for entry in self._entries(folder):
                source = f"{folder}/{entry.name}" if folder else entry.name
                if not self._exclude.match(source) and not self._passed_over(entry, source):
                    if entry.is_dir():
                        folders.append(source)
                    elif self._include.match(source):
                        self._add(entry, source)

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        path = self._root / folder
        try:
            with os.scandir(path) as entries:
                return list(entries)
        except FileNotFoundError as error:
            raise CorpusFolderError(
                f"The corpus folder {path} doesn't exist. Create it, mount it, or change corpus.path."
            ) from error
        except NotADirectoryError as error:
            raise CorpusFolderError(
                f"The corpus path {path} is not a folder. Let corpus.path name the folder it is in."
            ) from error
        except OSError as error:
            reason = error.strerror or error
            raise CorpusFolderError(
                f"The corpus folder {path} can't be listed: {reason}. Make it readable, or name it in corpus.exclude."
            ) from error

    def _passed_over(self, entry: os.DirEntry[str], source: str) -> bool:
        """Is this entry no document? If so, note the reason."""
        reason = self._reason(entry, source)
        if reason is not None:
            self.skipped[source.encode("utf-8", "backslashreplace").decode()] = reason
        # A folder with a file's name is no document, but there may be some in it.
        return reason is not None and reason != _FOLDER

    def _reason(self, entry: os.DirEntry[str], source: str) -> str | None:
        if _TEMPORARY.fullmatch(entry.name):
            return "a hidden or temporary name"
        if not _is_unicode(source):
            return "its name isn't UTF-8; rename it"
        wanted = self._include.match(source)
        if entry.is_symlink():
            return self._reason_of_link(entry)
        if entry.is_dir():
            return _FOLDER if wanted else None
        return "not a regular file" if wanted and not entry.is_file() else None

    def _reason_of_link(self, entry: os.DirEntry[str]) -> str | None:
        try:
            target = os.path.realpath(entry.path, strict=True)
        except OSError:
            return "a broken link"
        if os.path.commonpath([self._real_root, target]) != self._real_root:
            return "a link that leads out of the corpus folder; put the file itself there"
        if os.path.isdir(target):
            return "a link to a folder of the corpus, which is read under its own name"
        return None if os.path.isfile(target) else "a link to something that is not a regular file"

    def _add(self, entry: os.DirEntry[str], source: str) -> None:
        try:
            status = os.stat(entry.path)
        except FileNotFoundError:
            self.skipped[source] = "it went away while the folder was listed"
            return
        except OSError as error:
            raise CorpusFolderError(
                f"{entry.path} can't be looked at: {error.strerror or error}. Try again, or exclude it."
            ) from error
        if stat.S_ISREG(status.st_mode):
            self.files.append(FileState(source, status.st_size, status.st_mtime_ns))


_FOLDER = "a folder, not a file"


def _is_unicode(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
