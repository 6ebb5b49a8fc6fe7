"""Generates the reference pages of the documentation from the code: the command line and the project file."""

from collections.abc import Iterator
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from resources.errors import SettingsError
from resources.option_fields import alternatives, bounds, describe
from resources.plugins import Backend, known_plugins, plugin


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    files.append(File.generated(config, "command-line.md", content=command_line_page()))
    files.append(File.generated(config, "project-file.md", content=project_file_page()))
    return files


def command_line_page() -> str:
    """The page on the command line: each command with its help."""
    from retrico_assets.cli.main import app

    lines = ["# Command line", "", "Every command takes `--help`. This page is generated from the commands.", ""]
    lines += _command_lines("retrico", typer.main.get_command(app))
    return "\n".join(lines)


def _command_lines(path: str, command: Any) -> Iterator[str]:
    """The sections of a command, or of the commands of a group. Typer brings its own copy of click, which has no types here."""
    for name, subcommand in getattr(command, "commands", {}).items():
        if not subcommand.hidden:
            yield from _command_lines(f"{path} {name}", subcommand)
    if hasattr(command, "commands"):
        return
    yield from (f"## {path}", "", (command.help or "").strip(), "")
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    usage = " ".join([path, "[OPTIONS]", *(f"[{p.name.upper()}]" if not p.required else p.name.upper() for p in arguments)])
    yield from ("```console", f"$ {usage}", "```", "")
    rows = [_parameter_row(parameter) for parameter in command.params]
    if rows:
        yield from ("| option | meaning |", "|---|---|", *rows, "")


def _parameter_row(parameter: Any) -> str:
    names = [parameter.name.upper()] if parameter.param_type_name == "argument" else [*parameter.opts, *parameter.secondary_opts]
    return f"| {', '.join(f'`{name}`' for name in names)} | {_cell(parameter.help or '')} |"


def project_file_page() -> str:
    """The page on project.yaml: each section with its keys."""
    from retrico_assets.settings import ProjectSettings

    lines = [
        "# The project file",
        "",
        "A project is one file, `project.yaml`. Every key has a default, so an empty file is a valid project. Paths are relative",
        "to the file. A mistake is reported with its file, key and value when the definitions load. This page is generated from",
        "the code.",
        "",
    ]
    lines += _section_lines("", ProjectSettings)
    return "\n".join(lines)


def _section_lines(path: str, model: type[BaseModel]) -> Iterator[str]:
    fields = {name: field for name, field in model.model_fields.items() if _section_of(field) is None}
    if path:
        yield from (f"## {path}", "", (model.__doc__ or "").strip().split("\n\n")[0].replace("``", "`"), "")
    if fields:
        yield from ("| key | default | meaning |", "|---|---|---|")
        yield from (_field_row(name, field) for name, field in fields.items())
        yield ""
    for name, field in model.model_fields.items():
        section = _section_of(field)
        key = f"{path}.{name}".lstrip(".")
        if section is None:
            continue
        if issubclass(section, Backend):
            yield from _backend_lines(key, section)
        else:
            yield from _section_lines(key, section)


def _backend_lines(path: str, section: type[Backend]) -> Iterator[str]:
    yield from (f"## {path}", "", (section.__doc__ or "").strip().split("\n\n")[0].replace("``", "`"), "")
    names = known_plugins(section.kind)
    yield from (f"`backend` is one of {', '.join(f'`{name}`' for name in names)}, or `module:Class` for your own.", "")
    for name in names:
        options = _options_of(section, name)
        if options is None or not options.model_fields:
            continue
        yield from (f"### {path}, backend {name}", "", "| key | default | meaning |", "|---|---|---|")
        yield from (_field_row(key, field) for key, field in options.model_fields.items())
        yield ""


def _options_of(section: type[Backend], name: str) -> type[BaseModel] | None:
    """The options of a backend in a section; None if it can't serve there."""
    try:
        return section.options_class(plugin(section.kind, name, section.base))
    except SettingsError:
        return None


def _section_of(field: FieldInfo) -> type[BaseModel] | None:
    parts = [part for part in alternatives(field.annotation) if isinstance(part, type) and issubclass(part, BaseModel)]
    return parts[0] if parts and parts[0].__name__ != "EnvironmentReference" else None


def _field_row(name: str, field: FieldInfo) -> str:
    default: Any = field.get_default(call_default_factory=True, validated_data={}) if not field.is_required() else "required"
    meaning = " ".join(filter(None, [describe(field), f"Must be {limits}." if (limits := bounds(field)) else ""]))
    return f"| `{name}` | {'' if default is None else f'`{_cell(str(default))}`'} | {_cell(meaning)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
