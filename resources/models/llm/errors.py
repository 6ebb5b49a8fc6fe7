"""What a chat endpoint's errors mean, and how they are told without a secret in them."""

import re
import time
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from resources.errors import SettingsError

NO_KEY = "no-key"
"""Stands for a key where there is none: the client refuses an empty one, local servers ignore this one."""
TRANSIENT = frozenset({"rate_limit", "server", "timeout", "unreachable"})
"""Kinds of errors that may pass when the request is sent again."""

_SHORTEST_SECRET = 6
_LONGEST_QUOTE = 600
# OpenAI and vLLM; llama.cpp; LM Studio; llama-cpp-python; OpenAI for a request above the limit of tokens a minute.
_TOO_LONG = re.compile(
    r"context.?length|maximum model length|context.?size|context window|context the overflows|context overflow"
    r"|prompt is too long|request too large"
)
_USED_UP = re.compile(
    r"insufficient_quota|insufficient[_ ]balance|billing_hard_limit|billing_not_active|credit balance is too low"
)
# Ollama and OpenRouter; vLLM; llama.cpp; servers that check their parameters.
_NO_TOOLS = re.compile(
    r"support tool|tool use|tool.?choice|tool.?call.?parser|--jinja|support function|function calling"
    r"|tools?\W{1,3}(?:is|are) not|(?:unknown|unrecognized|unsupported|unexpected|extra)\b.{0,40}\btools"
)


class ToldInReplyError(Exception):
    """A reply that began well says that something is wrong, or ends in the middle. ``body`` is what it says."""

    def __init__(self, message: str, body: Any = None) -> None:
        super().__init__(message)
        self.body = body


class NoCompletionError(Exception):
    """A reply is in another form than a chat completion's. ``said`` is how it begins."""

    def __init__(self, said: str = "") -> None:
        quote = " ".join(said.split())[:100]
        super().__init__(f"the reply holds no message: it is no OpenAI-compatible chat completion{quote and f' but {quote!r}'}")


def status_of(error: Exception) -> int | None:
    """The HTTP status of an error, also of one that came inside a reply."""
    status = getattr(error, "status_code", None)
    body = getattr(error, "body", None)
    if status is None and isinstance(body, dict) and str(body.get("code", "")).isdecimal():
        status = int(body["code"])
    return status if isinstance(status, int) and 400 <= status < 600 else None


def said_by(error: Exception) -> str:
    """All that an error says, in lower case."""
    parts = (error, *(getattr(error, name, None) or "" for name in ("code", "type", "body")))
    return " ".join(map(str, parts)).lower()


def kind_of(error: Exception) -> str:
    """The ``LLMError.kind`` of an error of the client, of its transport or of a reply."""
    status, said, name = status_of(error), said_by(error), type(error).__name__
    if isinstance(error, NoCompletionError):
        return "reply"
    if "Timeout" in name:
        return "timeout"
    if (status is None or status not in (401, 403, 404)) and _TOO_LONG.search(said):
        return "context_length"
    if status == 402 or _USED_UP.search(said):
        return "quota"
    if _NO_TOOLS.search(said) and (status in (400, 404, 422, 501) or "--jinja" in said):
        return "tools"
    if status in (401, 403):
        return "credentials"
    if status == 429:
        return "rate_limit"
    if status == 408 or (status is not None and status >= 500 and status != 501):
        return "server"
    if status is None and isinstance(error, ToldInReplyError):
        return "server"
    if status is None and (name == "APIConnectionError" or type(error).__module__.split(".")[0] in ("httpx", "httpx2")):
        return "unreachable"
    return "request"


def explain(
    error: Exception, tries: int, *, model: str, base_url: str | None, key_env: str | None, timeout: float, shown: bool = False
) -> str:
    """The error in words: who, what, how often it was tried, and what to do. May hold a key: mask it."""
    where = f"{model} at {base_url or 'the OpenAI API'}"
    again = f" (tried {tries} times)" if tries > 1 else ""
    kind, status = kind_of(error), status_of(error)
    quote = str(error)
    quote = quote[:_LONGEST_QUOTE] + ("…" if len(quote) > _LONGEST_QUOTE else "")
    if shown:
        return f"{where} broke off in the middle of a reply whose beginning was shown: {quote or type(error).__name__}; ask again"
    if kind == "timeout":
        return f"{where} gave no reply within {timeout:g} s{again}; raise the time-out or look at the server"
    if kind == "unreachable":
        cause = f": {error.__cause__}" if error.__cause__ else ""
        return f"{where} can't be reached{again}: {quote}{cause}; check base_url and that the server runs"
    if kind == "reply":
        return f"{where}: {quote}; check base_url"
    if status is None and not isinstance(error, ToldInReplyError):
        return f"a request to {where} failed{again}: {type(error).__name__}: {quote}"
    if status == 404 and base_url and not re.search(r"/v\d+\w*$", urlsplit(base_url).path):
        return f"{where} answered 404: {quote}; base_url has no /v1, try {base_url}/v1"
    answered = f"{where} answered {status}{again}: {quote}" if status else f"{where} answered{again}: {quote}"
    advice = {
        "context_length": "; the request is longer than this model takes: shorten it, or serve the model with a larger context",
        "quota": "; the quota or balance is used up and nothing more is asked: top it up or use another model",
        "tools": "; it takes no tools: use a model with tool calling and turn it on in the server "
        "(vLLM: --enable-auto-tool-choice and --tool-call-parser, llama.cpp: --jinja)",
        "credentials": f"; check the key in {key_env or 'api_key (none is configured)'}",
    }.get(kind, "")
    if status == 403 and kind == "credentials":
        advice += " and what it may use"
    if status == 404 and not advice:
        advice = "; check base_url and the model's name"
    return answered + advice


def retry_after(error: Exception) -> float | None:
    """Seconds that the server asks to wait: a number, or the time until an HTTP date (RFC 9110, 10.2.3)."""
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


def check_address(url: str) -> None:
    """Refuse what is no address. A password in one would be logged with every request, and a query cut off by the client."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingsError(
            f"llm base_url {mask_secrets(url)!r} is no http(s) address; write for example http://localhost:8080/v1"
        )
    if parts.username is not None or parts.query:
        raise SettingsError(
            f"llm base_url {mask_secrets(url)!r} has a user, a password or a query in it; "
            "give the address alone, and name the environment variable that holds the key"
        )


def mask_secrets(text: str, *secrets: str) -> str:
    """The text without the given secrets, passwords in URLs, bearer tokens and key parameters; each becomes ``***``.

    A given secret of fewer than six characters is left alone: it is a place-holder such as "x", and is in every word.
    """
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET and secret != NO_KEY:
            text = text.replace(secret, "***")
    text = re.sub(r"(\b[A-Za-z][A-Za-z0-9+.\-]*://[^\s/:@]*):[^\s/]*@", r"\1:***@", text)
    text = re.sub(r"(?i)([?&](?:api[-_]?key|key|token|access_token|password|secret)=)[^&\s'\"]+", r"\1***", text)
    text = re.sub(r"(?i)(\bbearer\s+)[^\s'\",]+", r"\1***", text)
    return re.sub(r"\bsk-[A-Za-z0-9_\-*]{5,}", "***", text)
