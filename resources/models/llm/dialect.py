"""What a server takes of the chat completions protocol: learnt from its refusals, for as long as the process lives."""

import hashlib
import json
import logging
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from resources.models.llm.errors import error_text, kind_of, status_of
from resources.secrets import mask_secrets

_log = logging.getLogger(__name__)
_FORMAT_WORDS = ("response_format", "json_schema", "json_object", "json schema", "grammar", "structured output")
_ONE_SCHEMA = re.compile(r"invalid schema|invalid_json_schema|schema contains|schema conversion|in the schema")
_REFUSAL = (
    r"(?:support|allow|permit|unknown|unrecogni|unexpected|forbidden|deprecated|invalid|must be|not enabled|not implemented)"
)
_NEEDS_THE_WORD = re.compile(r"must contain the word .{0,3}json")
# Models that are known to reason, in case their chat template hides where that begins.
_REASONS = re.compile(r"(?<![a-z0-9])r1(?![a-z0-9])|qwq|think|reason|magistral", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What a model is asked, whatever form its server takes it in. ``messages`` and ``tools`` are in OpenAI's form."""

    messages: Sequence[Mapping[str, Any]]
    json_schema: Mapping[str, Any] | None = None
    max_tokens: int | None = None
    temperature: float = 0.0
    tools: Sequence[Mapping[str, Any]] | None = None


@dataclass
class Dialect:
    """The form in which one model of one endpoint takes requests. A feature is given up when a refusal names it."""

    name: str = "the model"
    begins_thinking: bool = False
    """Replies begin inside a reasoning block."""
    _token_parameter: str = "max_tokens"
    _temperature: bool = True
    _json_schema: bool = True
    _json_object: bool = True
    _json_object_needs_word: bool = False
    _refused_schemas: set[str] = field(default_factory=set)
    _stream: bool = True
    _stream_usage: bool = True

    def body(self, model: str, request: ChatRequest, *, stream: bool, structured: bool = True) -> dict[str, Any]:
        """The request in the form that this server takes. Without ``structured`` its schema is left out."""
        body: dict[str, Any] = {"model": model, "messages": [dict(message) for message in request.messages]}
        if self._temperature:
            body["temperature"] = request.temperature
        if request.max_tokens is not None:
            body[self._token_parameter] = request.max_tokens
        if request.tools:
            body["tools"] = [dict(tool) for tool in request.tools]
        if structured and request.json_schema is not None:
            form = self._response_format(request.json_schema, request.messages)
            if form is not None:
                body["response_format"] = form
        if stream and self._stream:
            body["stream"] = True
            if self._stream_usage:
                body["stream_options"] = {"include_usage": True}
        return body

    def _response_format(self, schema: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
        if self._json_schema and _digest(schema) not in self._refused_schemas:
            return {"type": "json_schema", "json_schema": {"name": "reply", "schema": dict(schema), "strict": True}}
        has_word = any("json" in str(message.get("content")).lower() for message in messages)
        if self._json_object and (has_word or not self._json_object_needs_word):
            return {"type": "json_object"}
        return None

    def adapt(self, error: Exception, body: Mapping[str, Any]) -> bool:
        """Give up what the error says that the server does not take. True if the request is worth sending in another form."""
        if status_of(error) not in (400, 422) or kind_of(error) == "context_length":
            return False
        text = error_text(error)
        if "stream_options" in body and "stream_options" in text:
            self._stream_usage = False
        elif "max_tokens" in body and "max_completion_tokens" in text:
            self._token_parameter = "max_completion_tokens"
        elif "temperature" in body and _is_refused("temperature", text):
            self._temperature = False
        elif "response_format" in body and (_ONE_SCHEMA.search(text) or _names_format(text)):
            self._step_down(body["response_format"], text)
        elif "stream" in body and _is_refused("stream(?:ing)?", text):
            self._stream = False
        else:
            return False
        return True

    def _step_down(self, sent: Mapping[str, Any], text: str) -> None:
        if sent["type"] == "json_schema" and _ONE_SCHEMA.search(text):
            self._refused_schemas.add(_digest(sent["json_schema"]["schema"]))
        elif sent["type"] == "json_schema":
            self._json_schema = False
            _log.info("%s does not support JSON schemas. JSON mode is used instead.", self.name)
        elif _NEEDS_THE_WORD.search(text) and not self._json_object_needs_word:
            self._json_object_needs_word = True
        else:
            self._json_object = False
            _log.info("%s does not support JSON mode. The form of a reply is requested in the prompt alone.", self.name)

    def give_up_structured_output(self, reason: object) -> None:
        """From now on, ask for the form of a reply in the prompt alone."""
        self._json_schema = self._json_object = False
        _log.warning(
            "%s does not support structured output (%s). Replies are requested without it.",
            self.name,
            mask_secrets(str(reason))[:200],
        )


def may_refuse_structured_output(error: Exception, body: Mapping[str, Any], attempt: int) -> bool:
    """Whether a request may have failed because of its response format, although the error does not clearly say so.

    Some servers answer with 404 or 501, or name only the field that their backend does not know; others crash with a 5xx that
    names the format. The latter counts from the second ``attempt`` on, since it may pass.
    """
    if "response_format" not in body:
        return False
    kind, status, text = kind_of(error), status_of(error), error_text(error)
    if kind == "server" and status is not None:
        return attempt > 0 and _names_format(text)
    if kind != "request":
        return False
    return status in (404, 405, 501) or (status in (400, 422) and re.search(_REFUSAL, text) is not None)


_known: dict[tuple[str | None, str], Dialect] = {}
_lock = threading.Lock()


def dialect_of(base_url: str | None, model: str) -> Dialect:
    """What is known of a model at an endpoint, shared by all that use it in this process."""
    name = f"{model} at {base_url or 'the OpenAI API'}"
    with _lock:
        return _known.setdefault((base_url, model), Dialect(name, begins_thinking=_REASONS.search(model) is not None))


def forget_dialects() -> None:
    """Forget what servers take, for example because another one runs at the same address now."""
    with _lock:
        _known.clear()


def _names_format(text: str) -> bool:
    return any(word in text for word in _FORMAT_WORDS)


def _is_refused(name: str, text: str) -> bool:
    """Whether an error is about a parameter whose name is an everyday word: a quoted prompt may contain it too."""
    return re.search(rf"\b{name}\b.{{0,80}}{_REFUSAL}|{_REFUSAL}.{{0,80}}\b{name}\b", text, re.DOTALL) is not None


def _digest(schema: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(schema, sort_keys=True).encode()).hexdigest()
