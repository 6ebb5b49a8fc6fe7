"""`retrico init`: a new project."""

import re
import shutil
from pathlib import Path

from resources.errors import SettingsError
from retrico_assets.package_files import configs_folder

_IGNORED = "data/\n.env\n"


def init(folder: Path, demo: bool) -> list[Path]:
    """Write a project into a folder, which is made if needed: project.yaml, dagster.yaml and a folder for documents.

    With ``demo``, the documents of the demo are copied too. Nothing that exists is overwritten. Returns what was written.

    Raises:
        SettingsError: the folder has a project.yaml already, or can't be written.
    """
    file = folder / "project.yaml"
    if file.exists():
        raise SettingsError(f"{file} exists already. Edit it, or choose another folder.")
    source = configs_folder() / ("demo/project.yaml" if demo else "project.yaml")
    try:
        corpus = folder / "corpus"
        corpus.mkdir(parents=True, exist_ok=True)
        written = [file, *_copied_documents(corpus if demo else None)]
        file.write_text(_project_text(source), encoding="utf-8")
        for name, text in (
            ("dagster.yaml", (configs_folder() / "dagster.yaml").read_text(encoding="utf-8")),
            (".gitignore", _IGNORED),
        ):
            if not (folder / name).exists():
                (folder / name).write_text(text, encoding="utf-8")
                written.append(folder / name)
    except OSError as error:
        raise SettingsError(
            f"{folder} can't be written: {error.strerror}. Check its permissions, or choose another folder."
        ) from error
    return written


def _copied_documents(corpus: Path | None) -> list[Path]:
    if corpus is None:
        return []
    documents = sorted((configs_folder() / "demo" / "corpus").iterdir())
    return [
        Path(shutil.copyfile(document, corpus / document.name)) for document in documents if not (corpus / document.name).exists()
    ]


def _project_text(source: Path) -> str:
    """The template with the paths of a project folder, and the model of the demo where the package has it."""
    model = (configs_folder() / "demo" / "gliner-mini").as_posix()
    text = source.read_text(encoding="utf-8")
    text = re.sub(r"(?m)^data: \S+", "data: data", text)
    text = re.sub(r"(?m)^  path: \S+", "  path: corpus", text)
    return re.sub(r"model: (?:demo/)?gliner-mini", lambda _: f'model: "{model}"', text)
