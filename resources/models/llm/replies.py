"""A chat model's reply: the records, and how they are put together from a completion or the events of a stream."""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from resources.models.llm.errors import BrokenReplyError, NotACompletionError
from resources.models.llm.reasoning import without_reasoning

_FINISH_REASONS = {
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_length": "length",
    "function_call": "tool_calls",
}


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request, as the server counts them."""

    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call that the model requests. ``arguments`` is the JSON text as the model wrote it, valid or not."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply without its reasoning.

    ``finish_reason`` is "length" when the text was truncated, "tool_calls" when the model calls tools, else mostly "stop";
    ``usage`` is None if the server sent none. Ids of tool calls are unique in a reply; missing ones are generated.
    """

    text: str
    finish_reason: str | None
    usage: Usage | None = None
    refusal: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()

    @property
    def is_truncated(self) -> bool:
        """Whether the model stopped at its token limit."""
        return self.finish_reason == "length"

    @property
    def is_refused(self) -> bool:
        """Whether the model declined, or a filter of the server held its text back."""
        return self.refusal is not None or self.finish_reason == "content_filter"


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class ReplyBuilder:
    """A reply while it arrives. ``content`` is all text, reasoning included."""

    content: str = ""
    refusal: str = ""
    finish_reason: str | None = None
    usage: Usage | None = None
    calls: list[_Call] = field(default_factory=list)
    has_message: bool = False
    is_streamed: bool = False
    separates_reasoning: bool = False
    """Reasoning comes in a field of its own, so that the content contains none."""
    _at_index: dict[int, _Call] = field(default_factory=dict)

    def add(self, data: Any) -> str:
        """Add a completion, or one event of a stream, and return its piece of text.

        Raises:
            BrokenReplyError: the server reports an error in it.
            NotACompletionError: it has another form.
        """
        if not isinstance(data, Mapping):
            raise NotACompletionError()
        if data.get("error"):
            raise _reported(data["error"])
        self.usage = _usage(data.get("usage")) or self.usage
        choices = data.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, Mapping):
            return ""
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self.finish_reason = _FINISH_REASONS.get(reason.lower(), reason.lower())
        message = choice.get("message") or choice.get("delta")
        return self._add_message(message, "message" not in choice) if isinstance(message, Mapping) else ""

    def _add_message(self, message: Mapping[str, Any], is_delta: bool) -> str:
        self.has_message = True
        self.is_streamed = self.is_streamed or is_delta
        for call in message.get("tool_calls") or ():
            self._add_call(call)
        if message.get("reasoning_content") or message.get("reasoning"):
            self.separates_reasoning = True
        if isinstance(message.get("refusal"), str):
            self.refusal += message["refusal"]
        piece = _text(message.get("content"))
        self.content += piece
        return piece

    def _add_call(self, data: Mapping[str, Any]) -> None:
        """Add a call, or a piece of one. Some servers number calls wrongly: a new id or a second name starts another call."""
        function = data.get("function") or {}
        id, name = str(data.get("id") or ""), str(function.get("name") or "")
        index = data.get("index")
        index = index if isinstance(index, int) else (len(self.calls) if id or name else max(len(self.calls) - 1, 0))
        call = self._at_index.get(index)
        if call is None or (id and call.id and id != call.id) or (name and call.name and _is_json(call.arguments)):
            call = self._at_index[index] = _Call()
            self.calls.append(call)
        call.id, call.name = call.id or id, call.name or name
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            call.arguments += arguments
        elif arguments is not None:
            call.arguments = json.dumps(arguments, ensure_ascii=False)

    def reply(self) -> Reply:
        """The whole reply.

        Raises:
            NotACompletionError: no message has arrived.
        """
        if not self.has_message:
            raise NotACompletionError()
        ids: set[str] = set()
        calls = []
        for call in self.calls:
            id = call.id if call.id and call.id not in ids else f"call_{uuid.uuid4().hex[:24]}"
            ids.add(id)
            calls.append(ToolCall(id, call.name, call.arguments.strip() or "{}"))
        reason = self.finish_reason
        if calls and reason in (None, "stop"):
            reason = "tool_calls"
        return Reply(without_reasoning(self.content), reason, self.usage, self.refusal or None, tuple(calls))


def _reported(error: Any) -> BrokenReplyError:
    message = error.get("message") if isinstance(error, Mapping) else None
    return BrokenReplyError(str(message or error), error)


def _usage(data: Any) -> Usage | None:
    if not isinstance(data, Mapping):
        return None
    prompt, completed = data.get("prompt_tokens"), data.get("completion_tokens")
    return Usage(prompt, completed) if isinstance(prompt, int) and isinstance(completed, int) else None


def _text(content: Any) -> str:
    """The text of a message, also of one in parts, as Mistral's reasoning models send it."""
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, Mapping) and part.get("type") == "text"]
        content = "".join(str(part.get("text") or "") for part in parts)
    # JSON can escape half a character, which neither files nor terminals take.
    return content.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if isinstance(content, str) else ""


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
