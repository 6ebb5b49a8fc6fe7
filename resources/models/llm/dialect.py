"""What a server takes of the chat completions protocol: learnt from its refusals, for as long as the process lives."""

import hashlib
import json
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from resources.models.llm.errors import kind_of, said_by, status_of

_FORMAT_WORDS = ("response_format", "json_schema", "json_object", "json schema", "grammar", "structured output")
_ONE_SCHEMA = re.compile(r"invalid schema|invalid_json_schema|schema contains|schema conversion|in the schema")
_REFUSAL = r"(?:support|allow|permit|unknown|unrecogni|unexpected|forbidden|deprecated|invalid|must be|not enabled)"
_NEEDS_THE_WORD = re.compile(r"must contain the word .{0,3}json")
# Models that are known to reason, in case their chat template hides where that begins.
_REASONS = re.compile(r"(?<![a-z0-9])r1(?![a-z0-9])|qwq|think|reason|magistral", re.IGNORECASE)


@dataclass
class Dialect:
    """How one model of one endpoint wants to be asked. A refused feature is given up only when a 400 or 422 names it."""

    begins_thinking: bool = False  # replies begin inside a reasoning block
    _token_parameter: str = "max_tokens"
    _temperature: bool = True
    _json_schema: bool = True
    _json_object: bool = True
    _json_object_needs_word: bool = False
    _refused_schemas: set[str] = field(default_factory=set)
    _stream: bool = True
    _stream_usage: bool = True

    def request(
        self,
        model: str,
        messages: Sequence[Mapping[str, Any]],
        *,
        json_schema: Mapping[str, Any] | None,
        max_tokens: int | None,
        temperature: float,
        tools: Sequence[Mapping[str, Any]] | None,
        stream: bool,
    ) -> dict[str, Any]:
        """The request as this server takes it."""
        request: dict[str, Any] = {"model": model, "messages": [dict(message) for message in messages]}
        if self._temperature:
            request["temperature"] = temperature
        if max_tokens is not None:
            request[self._token_parameter] = max_tokens
        if tools:
            request["tools"] = [dict(tool) for tool in tools]
        if json_schema is not None and (form := self._response_format(json_schema, messages)):
            request["response_format"] = form
        if stream and self._stream:
            request["stream"] = True
            if self._stream_usage:
                request["stream_options"] = {"include_usage": True}
        return request

    def _response_format(self, schema: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
        if self._json_schema and _digest(schema) not in self._refused_schemas:
            return {"type": "json_schema", "json_schema": {"name": "reply", "schema": dict(schema), "strict": True}}
        has_word = any("json" in str(message.get("content")).lower() for message in messages)
        if self._json_object and (has_word or not self._json_object_needs_word):
            return {"type": "json_object"}
        return None

    def adapt(self, error: Exception, request: Mapping[str, Any]) -> bool:
        """Give up what the server says that it does not take. True if the request is worth sending again, in another form."""
        if status_of(error) not in (400, 422) or kind_of(error) == "context_length":
            return False
        said = said_by(error)
        if "stream_options" in request and "stream_options" in said:
            self._stream_usage = False
        elif "max_tokens" in request and "max_completion_tokens" in said:
            self._token_parameter = "max_completion_tokens"
        elif "temperature" in request and _is_refused("temperature", said):
            self._temperature = False
        elif "response_format" in request and (_ONE_SCHEMA.search(said) or any(word in said for word in _FORMAT_WORDS)):
            self._step_down(request["response_format"], said)
        elif "stream" in request and _is_refused("stream(?:ing)?", said):
            self._stream = False
        else:
            return False
        return True

    def _step_down(self, sent: Mapping[str, Any], said: str) -> None:
        if sent["type"] == "json_schema" and _ONE_SCHEMA.search(said):
            self._refused_schemas.add(_digest(sent["json_schema"]["schema"]))
        elif sent["type"] == "json_schema":
            self._json_schema = False
        elif _NEEDS_THE_WORD.search(said) and not self._json_object_needs_word:
            self._json_object_needs_word = True
        else:
            self._json_object = False


_known: dict[tuple[str | None, str], Dialect] = {}
_lock = threading.Lock()


def dialect_of(base_url: str | None, model: str) -> Dialect:
    """What is known of a model at an endpoint, shared by all that ask it in this process."""
    with _lock:
        return _known.setdefault((base_url, model), Dialect(begins_thinking=_REASONS.search(model) is not None))


def forget_dialects() -> None:
    """Learn anew what servers take, for example because another one runs at the same address now."""
    with _lock:
        _known.clear()


def _is_refused(name: str, said: str) -> bool:
    """Whether a parameter whose name is an everyday word is what an error is about: it may stand in a quoted prompt too."""
    return re.search(rf"\b{name}\b.{{0,80}}{_REFUSAL}|{_REFUSAL}.{{0,80}}\b{name}\b", said, re.DOTALL) is not None


def _digest(schema: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(schema, sort_keys=True).encode()).hexdigest()
