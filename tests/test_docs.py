"""The documentation: it builds with every link valid, and its samples are right."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
import yaml

from resources.options import Options
from resources.plugins import Backend
from retrico_assets.settings import ProjectSettings, load_settings
from tests.support.command import REPOSITORY

PAGES = [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]


def blocks(language: str) -> list[tuple[str, str]]:
    """The code blocks in a language, each with the page and its number there."""
    found = []
    for page in PAGES:
        texts = re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
        found += [(f"{page.relative_to(REPOSITORY)} {number}", text) for number, text in enumerate(texts, 1)]
    return found


def commands() -> list[str]:
    lines = [line for language in ("console", "bash") for _, text in blocks(language) for line in text.splitlines()]
    lines = [line.removeprefix("$ ").partition("  #")[0].strip() for line in lines]
    return [line for line in dict.fromkeys(lines) if line.startswith("retrico ")]


@pytest.mark.slow
def test_the_site_builds_and_every_link_is_valid(tmp_path: Path) -> None:
    build = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert build.returncode == 0, build.stderr
    pages = {page.name: page.read_text(encoding="utf-8") for page in tmp_path.glob("*.html")}
    assert "--top-k" in pages["command-line.html"]
    assert "token_budget" in pages["project-file.html"]
    assert "https://fonts" not in pages["index.html"]


@pytest.mark.parametrize("command", commands())
def test_commands_of_the_documentation_exist_with_their_options(command: str) -> None:
    from retrico_assets.cli.main import app

    name, *arguments = shlex.split(command)
    group = typer.main.get_command(app)
    assert arguments[0] in group.commands, f"there is no command {arguments[0]}"
    with group.make_context(name, arguments, resilient_parsing=True) as context:
        group.commands[arguments[0]].make_context(arguments[0], arguments[1:], parent=context)


@pytest.mark.parametrize(("where", "text"), blocks("yaml"))
def test_yaml_of_the_documentation_is_a_valid_project_or_run_configuration(where: str, text: str, tmp_path: Path) -> None:
    content = yaml.safe_load(text)
    assert isinstance(content, dict), where
    if content.keys() == {"ops"}:
        return
    assert content.keys() <= ProjectSettings.model_fields.keys(), where
    file = tmp_path / "project.yaml"
    file.write_text(text, encoding="utf-8")
    load_settings(file)


def test_every_option_of_the_project_file_has_a_description() -> None:
    def undescribed(model: type[Options], path: str = "") -> list[str]:
        missing = []
        for name, field in model.model_fields.items():
            annotation = field.annotation
            inner = [part for part in (annotation, *getattr(annotation, "__args__", ())) if isinstance(part, type)]
            section = next((part for part in inner if issubclass(part, Options)), None)
            if section is not None and issubclass(section, Backend):
                continue  # the options of plug-ins are those of their own classes
            if section is not None:
                missing += undescribed(section, f"{path}{name}.")
            elif not field.description:
                missing.append(f"{path}{name}")
        return missing

    assert undescribed(ProjectSettings) == []
