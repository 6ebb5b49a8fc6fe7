"""Names of models: folders and Hugging Face ids, and what identifies the content behind a name."""

import hashlib
import os
import re
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, ValidationInfo

from resources.errors import SettingsError
from resources.options import as_value_error

_HUB_ID = re.compile(r"(?!.*(?:--|\.\.))\w(?:[\w.-]*\w)?/\w(?:[\w.-]*\w)?", re.ASCII)
_HUB_ID_LENGTH = 96

_SAMPLES = 64
_SAMPLE_BYTES = 1 << 16


def locate_model(name: str, base: Path | None = None, owner: str = "") -> str:
    """The absolute path of an existing folder, or the name as it is if it is a valid Hugging Face id.

    ``base`` is the folder that relative paths start from, by default the working directory. ``owner`` is the owner of
    ids that are written without one.

    Raises:
        SettingsError: the name is neither.
    """
    folder = (base or Path()) / os.path.expanduser(name)
    if name.strip() and folder.is_dir():
        return os.path.normpath(folder.absolute())
    hub_id = f"{owner}/{name}" if owner and "/" not in name else name
    if len(hub_id) > _HUB_ID_LENGTH or not _HUB_ID.fullmatch(hub_id):
        raise SettingsError(f"{name!r} is neither an existing folder nor a valid Hugging Face model id (owner/name).")
    return name


def _located(name: str, info: ValidationInfo, owner: str = "") -> str:
    base = (info.context or {}).get("folder")
    return as_value_error(locate_model, name, base, owner)


ModelName = Annotated[str, AfterValidator(_located)]
"""A field of options: a folder, or a Hugging Face id (owner/name).

Relative folders start from ``context={"folder": ...}`` of pydantic's ``model_validate`` (for project.yaml: the folder of the
file), by default from the working directory. The value is the absolute path.
"""

SentenceTransformerName = Annotated[str, AfterValidator(partial(_located, owner="sentence-transformers"))]
"""As ModelName; an id without an owner belongs to sentence-transformers."""


def model_version(model: str) -> str:
    """What identifies a model: the hash of a folder's content, so that the folder may move; a Hugging Face id as it is.

    Hidden files do not count. JSON is read whole. Other files are identified by their size and 64 samples of 64 KB, which
    takes milliseconds for weights of any size.
    """
    folder = Path(model)
    if not folder.is_dir():
        return f"hub:{model}"
    digest = hashlib.sha256()
    for file in sorted(file for file in folder.rglob("*") if file.is_file() and not file.name.startswith(".")):
        digest.update(f"{file.relative_to(folder).as_posix()}\0{file.stat().st_size}\0".encode())
        _add_content(digest, file)
    return digest.hexdigest()


def _add_content(digest: "hashlib._Hash", file: Path) -> None:
    size = file.stat().st_size
    if file.suffix == ".json" or size <= _SAMPLES * _SAMPLE_BYTES:
        digest.update(file.read_bytes())
        return
    with file.open("rb") as content:
        for sample in range(_SAMPLES):
            content.seek((size - _SAMPLE_BYTES) * sample // (_SAMPLES - 1))
            digest.update(content.read(_SAMPLE_BYTES))
