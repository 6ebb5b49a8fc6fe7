"""What a chat endpoint's errors mean, and how they read for a user."""

import re
import time
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

TRANSIENT = frozenset({"rate_limit", "server", "timeout", "unreachable"})
"""Kinds of errors that may pass when the request is sent again."""

_LONGEST_QUOTE = 600
# OpenAI and vLLM; llama.cpp; LM Studio; llama-cpp-python; OpenAI for a request above the limit of tokens a minute.
_TOO_LONG = re.compile(
    r"context.?length|maximum model length|context.?size|context window|context the overflows|context overflow"
    r"|prompt is too long|request too large"
)
_QUOTA = re.compile(r"insufficient_quota|insufficient[_ ]balance|billing_hard_limit|billing_not_active|credit balance is too low")
# Ollama and OpenRouter; vLLM; llama.cpp; servers that check their parameters.
_NO_TOOLS = re.compile(
    r"support tool|tool use|tool.?choice|tool.?call.?parser|--jinja|support function|function calling"
    r"|tools?\W{1,3}(?:is|are) not|(?:unknown|unrecognized|unsupported|unexpected|extra)\b.{0,40}\btools"
)


class BrokenReplyError(Exception):
    """A reply that started well reports an error, or ends in the middle. ``body`` is the error that it reports."""

    def __init__(self, message: str, body: Any = None) -> None:
        super().__init__(message)
        self.body = body


class NotACompletionError(Exception):
    """A reply has another form than a chat completion. ``text`` is how it begins."""

    def __init__(self, text: str = "") -> None:
        quote = " ".join(text.split())[:100]
        beginning = f" It begins with {quote!r}." if quote else ""
        super().__init__(f"the reply is not an OpenAI-compatible chat completion.{beginning}")


def status_of(error: Exception) -> int | None:
    """The HTTP status of an error, also of one that came inside a reply."""
    status = getattr(error, "status_code", None)
    body = getattr(error, "body", None)
    if status is None and isinstance(body, dict) and str(body.get("code", "")).isdecimal():
        status = int(body["code"])
    return status if isinstance(status, int) and 400 <= status < 600 else None


def error_text(error: Exception) -> str:
    """All text of an error, in lower case."""
    parts = (error, *(getattr(error, name, None) or "" for name in ("code", "type", "body")))
    return " ".join(map(str, parts)).lower()


def kind_of(error: Exception) -> str:
    """The ``LLMError.kind`` of an error of the client, of its transport or of a reply."""
    status, text, name = status_of(error), error_text(error), type(error).__name__
    if isinstance(error, NotACompletionError):
        return "reply"
    if "Timeout" in name:
        return "timeout"
    if status not in (401, 403, 404) and _TOO_LONG.search(text):
        return "context_length"
    if status == 402 or _QUOTA.search(text):
        return "quota"
    if _NO_TOOLS.search(text) and (status in (400, 404, 422, 501) or "--jinja" in text):
        return "tools"
    if status in (401, 403):
        return "credentials"
    if status == 429:
        return "rate_limit"
    if status == 408 or (status is not None and status >= 500 and status != 501):
        return "server"
    if status is None and isinstance(error, BrokenReplyError):
        return "server"
    if status is None and name == "APIConnectionError":
        return "unreachable"
    return "request"


def explain(
    error: Exception, tries: int, *, model: str, base_url: str | None, key_env: str | None, timeout: float, shown: bool = False
) -> str:
    """The error in words: which model, what happened, how often it was tried, and what to do. May contain a key: mask it."""
    where = f"{model} at {base_url or 'the OpenAI API'}"
    again = f" (tried {tries} times)" if tries > 1 else ""
    kind, status = kind_of(error), status_of(error)
    quote = _shortened(str(error) or type(error).__name__).removesuffix(".")
    if shown:
        reason = f"nothing more within {timeout:g} s" if kind == "timeout" else quote
        return f"{where} broke off in the middle of a reply: {reason}. Ask again."
    if kind == "timeout":
        return f"{where} sent no complete reply within {timeout:g} s{again}. Raise timeout, or check the server."
    if kind == "unreachable":
        cause = f": {error.__cause__}" if error.__cause__ else ""
        return f"{where} can't be reached{again}: {quote}{cause}. Check base_url and that the server runs."
    if kind == "reply":
        return f"{where}: {quote}. Check base_url."
    if status is None and not isinstance(error, BrokenReplyError):
        return f"A request to {where} failed{again}: {type(error).__name__}: {quote}."
    if status is None and getattr(error, "body", None) is None:
        return f"{where} sent an incomplete reply{again}: {quote}. Ask again, or check the server."
    answered = f"{where} answered {status}{again}: {quote}." if status else f"{where} answered{again}: {quote}."
    return answered + _advice(kind, status, base_url, key_env)


def _advice(kind: str, status: int | None, base_url: str | None, key_env: str | None) -> str:
    if kind == "context_length":
        return " The request is longer than the model's context. Shorten it, or serve the model with a larger context."
    if kind == "quota":
        return " The quota or balance is used up, so no more requests are sent. Top it up, or use another model."
    if kind == "tools":
        return (
            " It does not support tools. Use a model with tool calling and enable that in the server "
            "(vLLM: --enable-auto-tool-choice and --tool-call-parser, llama.cpp: --jinja)."
        )
    if kind == "credentials":
        permission = " and what it may be used for" if status == 403 else ""
        return f" Check the key in {key_env or 'api_key (none is configured)'}{permission}."
    if status == 404:
        if base_url and not re.search(r"/v\d+\w*$", urlsplit(base_url).path):
            return f" base_url has no /v1. Try {base_url}/v1."
        return " Check base_url and the model's name."
    return ""


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 1] + "…"


def retry_after(error: Exception) -> float | None:
    """Seconds that the server requests to wait: a number, or the time until an HTTP date (RFC 9110, 10.2.3)."""
    response = getattr(error, "response", None)
    value = response.headers.get("retry-after") if response is not None else None
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except ValueError:
            return None
    return seconds if 0 <= seconds < float("inf") else None
