"""The address of an endpoint."""

from urllib.parse import urlsplit

from resources.errors import SettingsError
from resources.secrets import mask_secrets


def check_address(url: str) -> str:
    """Return the address without blanks and slashes at its end.

    A user, a password or a query is refused: it would be logged with every request, and the client drops a query.

    Raises:
        SettingsError: it is not an http(s) address, or holds more than an address.
    """
    url = url.strip().rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingsError(f"{mask_secrets(url)!r} is not an http(s) address. Write for example http://localhost:8080/v1.")
    if parts.username is not None or parts.query:
        raise SettingsError(
            f"{mask_secrets(url)!r} contains a user, a password or a query. Give the address alone, and name the variable "
            "that holds the key with api_key: {env: NAME_OF_A_VARIABLE}."
        )
    return url
