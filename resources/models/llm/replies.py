"""What a chat model said: the records, and how they are read from a completion or from the events of a stream."""

import json
import uuid
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from resources.models.llm.errors import NoCompletionError, ToldInReplyError
from resources.models.llm.reasoning import VisibleText, without_reasoning

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
    """A call that the model wants made. ``arguments`` is the JSON text as the model wrote it, valid or not."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model said, without its reasoning.

    ``finish_reason`` is "length" when the text was cut, "tool_calls" when the model wants tools called, else mostly "stop";
    ``usage`` is None if the server gave none. Ids of tool calls are unique in a reply, given here if the server gave none.
    """

    text: str
    finish_reason: str | None
    usage: Usage | None = None
    refusal: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class Collected:
    """A reply as it comes: ``content`` is all text, reasoning included."""

    content: str = ""
    refusal: str = ""
    finish_reason: str | None = None
    usage: Usage | None = None
    calls: list[_Call] = field(default_factory=list)
    has_message: bool = False
    reasons_apart: bool = False  # reasoning comes in a field of its own, so that none is in the content
    _at_index: dict[int, _Call] = field(default_factory=dict)

    def add(self, data: Any) -> str:
        """Take in a completion, or one event of a stream; its piece of text. Raises what the server says is wrong."""
        if not isinstance(data, Mapping):
            raise NoCompletionError()
        if data.get("error"):
            raise _told(data["error"])
        self.usage = _usage(data.get("usage")) or self.usage
        choices = data.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, Mapping):
            return ""
        said = choice.get("message") or choice.get("delta")
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self.finish_reason = _FINISH_REASONS.get(reason.lower(), reason.lower())
        if not isinstance(said, Mapping):
            return ""
        self.has_message = True
        for call in said.get("tool_calls") or ():
            self._add_call(call)
        self.reasons_apart = self.reasons_apart or bool(said.get("reasoning_content") or said.get("reasoning"))
        if isinstance(said.get("refusal"), str):
            self.refusal += said["refusal"]
        piece = _text(said.get("content"))
        self.content += piece
        return piece

    def _add_call(self, data: Mapping[str, Any]) -> None:
        """A call, or a piece of one. Servers number them wrongly or not at all; a new id, or a second name, begins a new call."""
        function = data.get("function") or {}
        id, name = str(data.get("id") or ""), str(function.get("name") or "")
        index = data.get("index")
        index = index if isinstance(index, int) else (len(self.calls) if id or name else max(len(self.calls) - 1, 0))
        call = self._at_index.get(index)
        other = call is not None and ((id and call.id and id != call.id) or (name and call.name and _is_json(call.arguments)))
        if call is None or other:
            call = self._at_index[index] = _Call()
            self.calls.append(call)
        call.id, call.name = call.id or id, call.name or name
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            call.arguments += arguments
        elif arguments is not None:
            call.arguments = json.dumps(arguments, ensure_ascii=False)

    def reply(self) -> Reply:
        """What has come, as a whole. Raises NoCompletionError when it holds no message at all."""
        if not self.has_message:
            raise NoCompletionError()
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


def read_completion(body: bytes, collected: Collected) -> None:
    """Take in the body of a reply that came in one piece."""
    try:
        data = json.loads(body)
    except ValueError:
        raise NoCompletionError(body.decode("utf-8", "replace")) from None
    collected.add(data)


def read_stream(received: Iterable[bytes], collected: Collected, visible: VisibleText) -> Generator[str]:
    """Take in server-sent events, and give the visible text piece by piece.

    Raises ToldInReplyError when the server reports an error or the stream ends in the middle. One that breaks after the
    model said why it stopped is whole, though its usage may be missing.
    """
    done = False
    try:
        for data in _events(_lines(received)):
            done = data is None
            if done:
                break
            piece = collected.add(data)
            if collected.reasons_apart:
                visible.begin_outside()
            if shown := visible.feed(piece):
                yield shown
    except Exception:
        if collected.finish_reason is None:
            raise
    if collected.finish_reason is None and not done:
        raise ToldInReplyError("the stream ended in the middle of the reply")
    if rest := visible.end():
        yield rest


def _lines(received: Iterable[bytes]) -> Iterator[str]:
    """Lines end with a line feed, and with nothing else: a model's text may hold any other separator of lines."""
    held = b""
    for part in received:
        *whole, held = (held + part).split(b"\n")
        yield from (line.decode("utf-8", "replace").rstrip("\r") for line in whole)
    yield held.decode("utf-8", "replace").rstrip("\r")


def _events(lines: Iterable[str]) -> Iterator[Any]:
    """The data of each event, and None for the last. Comments keep the connection alive and mean nothing."""
    for line in lines:
        name, _, data = line.partition(":")
        if name != "data":
            continue
        if data.strip() == "[DONE]":
            yield None
            return
        try:
            yield json.loads(data)
        except ValueError:
            raise ToldInReplyError(f"the stream holds what is no JSON: {data.strip()[:100]!r}") from None


def _told(error: Any) -> ToldInReplyError:
    message = error.get("message") if isinstance(error, Mapping) else None
    return ToldInReplyError(str(message or error), error)


def _usage(data: Any) -> Usage | None:
    if not isinstance(data, Mapping):
        return None
    prompt, completed = data.get("prompt_tokens"), data.get("completion_tokens")
    return Usage(prompt, completed) if isinstance(prompt, int) and isinstance(completed, int) else None


def _text(content: Any) -> str:
    """The text of a message, also of one in parts, as Mistral's models that reason send it."""
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, Mapping) and part.get("type") == "text"]
        content = "".join(str(part.get("text") or "") for part in parts)
    # JSON can escape half a character, which no file and no terminal takes.
    return content.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if isinstance(content, str) else ""


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
