"""The tools of one question: they answer a model's calls, whatever it calls them with, and remember what they gave."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from resources.errors import SettingsError
from resources.graph.base import GraphStore
from resources.models.llm.client import ToolCall
from resources.secrets import explain
from resources.texts.base import TextStore
from retrico_assets.query.tools.chunk_tools import CHUNK_TOOLS, ChunkTool
from retrico_assets.query.tools.graph_tools import GraphTool
from retrico_assets.query.tools.registry import graph_tools
from retrico_assets.query.tools.show import show

_LONGEST_ERROR = 1000
_MOST_LISTED = 50
_LONGEST_NAME = 80
_NOTHING = '{"quoted_data": []}'


@dataclass(frozen=True, slots=True)
class Found:
    """The rows that a call showed to the model, and in which round, from 1."""

    round: int
    rows: Sequence[Mapping[str, Any]]


@dataclass(slots=True)
class Toolbox:
    """``max_rows`` and ``max_characters`` hold for each call; ``entity_types`` and ``relation_types`` are those of the graph."""

    graph: GraphStore
    texts: TextStore
    max_rows: int
    max_characters: int
    entity_types: Sequence[str] = ()
    relation_types: Sequence[str] = ()
    found: list[Found] = field(default_factory=list)
    _tools: dict[str, GraphTool | ChunkTool] = field(init=False)
    _asked: dict[tuple[str, str], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tools: list[GraphTool | ChunkTool] = [*graph_tools(), *CHUNK_TOOLS]
        self._tools = {tool.name: tool for tool in tools}

    def definitions(self) -> list[dict[str, Any]]:
        """The tools as the endpoint wants them told."""
        return [tool.definition() for tool in self._tools.values()]

    def answer(self, call: ToolCall, round_: int) -> str:
        """What the model is told: rows as quoted data, or {"error": what to do better}. Never raises.

        The same name and arguments are run once; a call that repeats them is told so.
        """
        try:
            tool, arguments = self._understood(call)
            key = (tool.name, json.dumps(arguments, sort_keys=True))
            if key in self._asked:
                return _error(f"{tool.name} was called with these arguments in round {self._asked[key]}: its result is above")
            self._asked[key] = round_
            rows = self._run(tool, arguments)
            text, shown = show(rows, self.max_rows, self.max_characters)
        except Exception as error:  # own tools may raise anything; the model can go on with another call
            return _error(explain(error))
        self.found.append(Found(round_, shown))
        return text if rows else self._nothing(arguments)

    def _understood(self, call: ToolCall) -> tuple[GraphTool | ChunkTool, dict[str, Any]]:
        tool = self._tools.get(call.name)
        if tool is None:
            raise SettingsError(f"there is no tool {call.name!r:.80}; there are: {', '.join(self._tools)}")
        arguments = arguments_of(call)
        if arguments is None:
            raise SettingsError(f"the arguments of {call.name} are not a JSON object: {call.arguments!r:.200}")
        return tool, tool.checked(arguments)

    def _run(self, tool: GraphTool | ChunkTool, arguments: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        if isinstance(tool, ChunkTool):
            return tool.read(self.texts, arguments)
        statement, parameters = tool.translate(arguments)
        return self.graph.query(statement, parameters, read_only=True)

    def _nothing(self, arguments: Mapping[str, Any]) -> str:
        """No rows, and what the graph knows instead of a type that it does not."""
        answer: dict[str, Any] = {"quoted_data": []}
        for name, known in (
            ("entity_type", self.entity_types),
            ("target_entity_type", self.entity_types),
            ("relation_type", self.relation_types),
        ):
            if name in arguments and arguments[name] not in known:
                answer[f"{name}s_in_the_graph"] = [one[:_LONGEST_NAME] for one in known[:_MOST_LISTED]]
        text = json.dumps(answer, ensure_ascii=False)
        return text if len(text) <= self.max_characters else _NOTHING


def arguments_of(call: ToolCall) -> dict[str, Any] | None:
    """The arguments of a call, none at all being an empty object; None if they are no JSON object."""
    try:
        found = json.loads(call.arguments) if call.arguments.strip() else {}
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _error(why: str) -> str:
    return json.dumps({"error": why[:_LONGEST_ERROR]}, ensure_ascii=False)
