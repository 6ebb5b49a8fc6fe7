"""Reads a YAML file. Messages name the place and the problem but never quote a line, since a secret may be in it."""

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from resources.errors import SettingsError

_QUOTED = re.compile(r"'[^'<>]{2,}'")


def read_yaml(file: Path) -> Any:
    """The content of a file.

    Raises:
        SettingsError: the file can't be read, is not YAML in UTF-8, or has the same key twice in one place.
    """
    try:
        return yaml.load(file.read_text(encoding="utf-8-sig"), Loader=_Loader)
    except OSError as error:
        raise SettingsError(f"{file} can't be read: {error.strerror}. Check the path and its permissions.") from None
    except UnicodeDecodeError as error:
        raise SettingsError(f"{file} is not encoded in UTF-8 (byte {error.start}). Save it as UTF-8.") from None
    except _DuplicateKeyError as error:
        raise SettingsError(f"{file}: {error}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = _QUOTED.sub("...", error.problem or "syntax error")
        raise SettingsError(f"{file} is not valid YAML{place}: {problem}. Correct the line.") from None
    except yaml.reader.ReaderError as error:
        raise SettingsError(
            f"{file} is not valid YAML: character {error.position + 1} is not allowed ({error.reason}). Remove it."
        ) from None
    except yaml.YAMLError:
        raise SettingsError(f"{file} is not valid YAML. Correct it.") from None
    except RecursionError:
        raise SettingsError(f"{file} is nested too deeply. Make it flatter.") from None


class _DuplicateKeyError(Exception):
    pass


class _Loader(yaml.SafeLoader):
    """Refuses a mapping that has a key twice: YAML would silently use the last one."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        lines: dict[Hashable, int] = {}
        for key_node, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key, line = key_node.value, key_node.start_mark.line + 1
            if key in lines:
                raise _DuplicateKeyError(f"The key {key!r} is in line {lines[key]} and again in line {line}. Remove one of them.")
            lines[key] = line
        return super().construct_mapping(node, deep)
