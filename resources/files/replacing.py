"""Files that are replaced as a whole, so that a reader or a killed writer never leaves half a file."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from resources.errors import StoreError
from resources.files.locking import locked


@contextmanager
def replace_atomically(path: Path) -> Iterator[Path]:
    """Give the path of a new, empty file beside ``path``; what the block writes there becomes ``path``.

    The content is on disk before the name changes. When the block raises, ``path`` stays as it was. Temporary files of writers
    that were killed are removed.

    Raises:
        OSError: the folder does not exist, or the file can't be written.
    """
    _sweep(path)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    with locked(temporary):  # tells a writer that is at work from one that was killed
        try:
            yield temporary
            sync(temporary)
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    sync(path.parent)


def sync(path: Path) -> None:
    """Wait until a file's content, or a folder's entries, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sweep(path: Path) -> None:
    for temporary in path.parent.glob(f".{path.name}.*.tmp"):
        with suppress(StoreError, OSError), locked(temporary, timeout=0):  # a live writer holds its lock
            temporary.unlink()
