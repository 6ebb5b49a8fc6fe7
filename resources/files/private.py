"""Folders that only this user can open."""

import os
from pathlib import Path


def private_folder(path: Path) -> Path:
    """Create a folder with mode 0700, or check that the existing one is private. Its parent must exist.

    Raises:
        PermissionError: the folder belongs to another user, others can open it, or it is a symbolic link.
    """
    path.mkdir(mode=0o700, exist_ok=True)
    state = path.lstat()
    if state.st_uid != os.getuid() or state.st_mode & 0o077 or path.is_symlink():
        raise PermissionError(
            f"{path} is not a private folder of this user (mode 0700). Remove it, or correct its owner and mode."
        )
    return path
