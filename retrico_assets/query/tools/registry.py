"""The graph tools by name: the built-in ones, and those of one's own."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from resources.errors import SettingsError
from retrico_assets.query.tools.chunk_tools import CHUNK_TOOLS
from retrico_assets.query.tools.graph_tools import GRAPH_TOOLS, GraphTool
from retrico_assets.query.tools.schema import check_schema

_own: dict[str, GraphTool] = {}


def graph_tools() -> tuple[GraphTool, ...]:
    """The eight built-in tools, then those that were registered, in that order."""
    return (*GRAPH_TOOLS, *_own.values())


def tool_call_to_cypher(name: str, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The statement that a call of a graph tool stands for, and its parameters; to be run with ``query(..., read_only=True)``.

    SettingsError for an unknown tool (listing the known ones) and for arguments that its schema does not allow; StoreError
    for a property that can't be a name.
    """
    tools = {tool.name: tool for tool in graph_tools()}
    if name not in tools:
        raise SettingsError(f"unknown graph tool {name!r}; known are: {', '.join(tools)}")
    return tools[name].statement(arguments)


def register_tool(
    name: str,
    description: str,
    parameters: Mapping[str, Any],
    translate: Callable[[Mapping[str, Any]], tuple[str, Mapping[str, Any]]],
) -> None:
    """Give the model a tool of one's own, in this process.

    ``parameters`` is the JSON schema of its arguments (an object); ``translate`` makes a Cypher statement and its
    parameters from arguments that were checked against it. The statement runs read-only. Of its rows these columns count as
    results: ``entity_id``; ``relation_id`` beside ``head_id`` and ``tail_id``; ``chunk_id``; and whole nodes of the schema.

    SettingsError for a name that is taken or can't be one, and for a schema with keywords that aren't checked.
    """
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        raise SettingsError(f"{name!r} can't be the name of a tool: use 1 to 64 letters, digits, _ and -")
    if name in {tool.name for tool in (*graph_tools(), *CHUNK_TOOLS)}:
        raise SettingsError(f"there is a tool {name!r} already; choose another name, or call unregister_tool first")
    check_schema(parameters, f"parameters of tool {name!r}")
    _own[name] = GraphTool(name, description, parameters, translate)


def unregister_tool(name: str) -> None:
    """Take a registered tool back. SettingsError if there is none of that name; the built-in ones stay."""
    if name not in _own:
        raise SettingsError(f"no tool {name!r} was registered; registered are: {', '.join(_own) or 'none'}")
    del _own[name]
