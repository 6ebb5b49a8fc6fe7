"""Lists the files of the corpus folder, without opening them."""

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from resources.errors import DocumentError, SettingsError
from retrico_assets.corpus.patterns import FilePatterns

_TEMPORARY = re.compile(r"\..*|~\$.*|.*~|.*\.(?:part|partial|tmp|temp|swp|crdownload|download)", re.IGNORECASE | re.DOTALL)
_FOLDER = "a folder, not a file"


class CorpusFolderError(DocumentError):
    """The corpus folder, or a folder in it, can't be listed; it may hold documents nevertheless."""


@dataclass(frozen=True, slots=True)
class FileState:
    """A file of the corpus. ``source`` is its path relative to the root, with "/"."""

    source: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Scan:
    """The files to read, ordered by source, and why others are skipped, by source."""

    files: tuple[FileState, ...]
    skipped: dict[str, str]


def scan(root: Path, include: Sequence[str], exclude: Sequence[str] = ()) -> Scan:
    """List the files under ``root`` whose path matches a pattern of ``include`` and none of ``exclude``.

    Patterns are those of ``FilePatterns``, relative to ``root``. A folder that is excluded (``drafts`` or ``drafts/**``) is not
    entered. Temporary and hidden names, broken links, links that lead out of ``root`` and links to folders are skipped with the
    reason.

    Raises:
        CorpusFolderError: ``root`` or a folder in it can't be listed.
        SettingsError: a pattern can't match.
    """
    if not include:
        raise SettingsError("corpus.include is empty, so no file would be read. Add a pattern, like '**/*.txt'.")
    folder = _Folder(root, FilePatterns(include), FilePatterns([pattern.removesuffix("/**") for pattern in exclude]))
    folder.walk()
    return Scan(tuple(sorted(folder.files, key=lambda file: file.source)), dict(sorted(folder.skipped.items())))


class _Folder:
    """A walk through the corpus folder that collects files, and reasons for those that are skipped."""

    def __init__(self, root: Path, include: FilePatterns, exclude: FilePatterns) -> None:
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
                if not self._exclude.match(source) and not self._is_skipped(entry, source):
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
                f"The corpus path {path} is not a folder. Set corpus.path to the folder that holds it."
            ) from error
        except OSError as error:
            reason = error.strerror or error
            raise CorpusFolderError(
                f"The corpus folder {path} can't be listed: {reason}. Make it readable, or name it in corpus.exclude."
            ) from error

    def _is_skipped(self, entry: os.DirEntry[str], source: str) -> bool:
        """True when neither this entry nor anything in it can be a document. The reason is noted."""
        reason = self._reason(entry, source)
        if reason is not None:
            self.skipped[source.encode("utf-8", "backslashreplace").decode()] = reason
        # A folder whose name matches a pattern for files may hold documents.
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
            self.skipped[source] = "it was removed while the folder was listed"
            return
        except OSError as error:
            raise CorpusFolderError(
                f"{entry.path} can't be read: {error.strerror or error}. Try again, or exclude it."
            ) from error
        if stat.S_ISREG(status.st_mode):
            self.files.append(FileState(source, status.st_size, status.st_mtime_ns))


def _is_unicode(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
