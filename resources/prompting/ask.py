"""Asks a language model for a pydantic object: structured output, a careful reading, and one reminder."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from resources.errors import LLMError
from resources.models.llm.client import ChatModel, Reply
from resources.prompting.replies import ModelReply
from resources.secrets import mask_secrets

Result = TypeVar("Result", bound=ModelReply)
_LONGEST_QUOTE = 200


@dataclass(frozen=True, slots=True)
class Asked(Generic[Result]):
    """What a model replied: ``value``, or the ``failure`` that left none.

    ``text`` is the reply as it came, for callers that can use plain text too. ``error`` is set when the request itself failed.
    """

    value: Result | None = None
    failure: str = ""
    text: str = ""
    is_truncated: bool = False
    is_refused: bool = False
    error: LLMError | None = None


def ask(
    llm: ChatModel,
    messages: Sequence[dict[str, str]],
    reply_class: type[Result],
    *,
    max_tokens: int,
    remind: bool = True,
) -> Asked[Result]:
    """Ask for a ``reply_class``; with ``remind``, once more when the reply is not one.

    A truncated reply is marked as such; its value is what could be read of it. It is not asked for again, since that takes
    more tokens or less content, which the caller decides. Never raises LLMError: it is the failure.
    """
    first = _ask_once(llm, messages, reply_class, max_tokens)
    if first.value is not None or first.is_refused or first.is_truncated or first.error is not None or not remind:
        return first
    second = _ask_once(llm, reminded(messages, reply_class), reply_class, max_tokens)
    return first if second.error is not None else second


def reminded(messages: Sequence[dict[str, str]], reply_class: type[ModelReply]) -> list[dict[str, str]]:
    """The messages with a reminder of the form of the reply."""
    reminder = f"Reply with the JSON object alone, nothing before or after it: {reply_class.example}"
    return [*messages[:-1], {**messages[-1], "content": f"{messages[-1]['content']}\n\n{reminder}"}]


def quoting(reason: str, text: str) -> str:
    """A reason followed by the beginning of what a model wrote, without secrets."""
    text = " ".join(text.split())
    quote = text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "…"
    return mask_secrets(f"{reason}: {quote!r}" if quote else reason)


def _ask_once(llm: ChatModel, messages: Sequence[dict[str, str]], reply_class: type[Result], max_tokens: int) -> Asked[Result]:
    try:
        reply = llm.complete(messages, json_schema=reply_class.schema_for_model(), max_tokens=max_tokens)
    except LLMError as error:
        return Asked(failure=str(error), error=error)
    return _read(reply, reply_class)


def _read(reply: Reply, reply_class: type[Result]) -> Asked[Result]:
    if reply.is_refused:
        refusal = reply.refusal or reply.text
        return Asked(failure=quoting("the model refused", refusal), text=refusal, is_refused=True)
    value = reply_class.read(reply.text)
    if value is not None:
        return Asked(value, text=reply.text, is_truncated=reply.is_truncated)
    if reply.is_truncated:
        failure = quoting("the model's reply was cut short at its token limit", reply.text)
        return Asked(failure=failure, text=reply.text, is_truncated=True)
    if not reply.text.strip():
        return Asked(failure="the model gave an empty reply")
    return Asked(failure=quoting("the model's reply has not the requested form", reply.text), text=reply.text)
