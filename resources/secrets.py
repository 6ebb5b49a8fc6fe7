"""Keeps keys and passwords out of messages."""

import re

from resources.errors import RetricoError

_SHORTEST_SECRET = 6
_PATTERNS = (
    (re.compile(r"(\b[A-Za-z][A-Za-z0-9+.\-]*://[^\s/:@]*):[^\s/]*@"), r"\1:***@"),
    (re.compile(r"(?i)([?&](?:api[-_]?key|key|token|access_token|password|secret)=)[^&\s'\"]+"), r"\1***"),
    (re.compile(r"(?i)(\bbearer\s+)[^\s'\",]+"), r"\1***"),
    (re.compile(r"\bsk-[A-Za-z0-9_\-*]{5,}"), "***"),
)


def mask_secrets(text: str, *secrets: str) -> str:
    """Replace the given secrets, passwords in URLs, bearer tokens and key parameters by ``***``.

    A given secret of fewer than six characters stays: it is a placeholder such as "x", which many words contain.
    """
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, "***")
    for pattern, masked in _PATTERNS:
        text = pattern.sub(masked, text)
    return text


def explain(error: Exception) -> str:
    """One line about an error, without secrets; the type is named when the message was not written for users."""
    message = str(error) or type(error).__name__
    return mask_secrets(message if isinstance(error, RetricoError) else f"{type(error).__name__}: {message}")
