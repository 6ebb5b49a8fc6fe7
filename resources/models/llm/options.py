"""Options of a language model behind an OpenAI-compatible endpoint."""

from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import Field, PositiveInt, StringConstraints, field_validator, model_validator

from resources.options import EnvironmentReference, Options


class LLMOptions(Options):
    base_url: str | None = None
    model: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    api_key: EnvironmentReference | None = None
    timeout: float = Field(default=60, gt=0)
    max_retries: int = Field(default=3, ge=0)
    context_tokens: PositiveInt = 6000
    max_concurrency: PositiveInt = 4
    requests_per_minute: PositiveInt | None = None
    cache: bool = True
    prompt_price: float | None = Field(default=None, ge=0)
    completion_price: float | None = Field(default=None, ge=0)

    @field_validator("api_key", mode="before")
    @classmethod
    def _no_literal_key(cls, value: Any) -> Any:
        if isinstance(value, str):
            # The value is a secret: it must not appear in the message.
            raise ValueError("a key is never written into the file; write {env: NAME_OF_A_VARIABLE} and set that variable")
        return value

    @field_validator("base_url")
    @classmethod
    def _no_password_in_url(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("it must start with http:// or https:// and name a host")
        if parts.username or parts.password:
            raise ValueError("it holds a user name or password; use api_key: {env: NAME_OF_A_VARIABLE} instead")
        return value

    @model_validator(mode="after")
    def _both_prices_or_none(self) -> "LLMOptions":
        if (self.prompt_price is None) != (self.completion_price is None):
            raise ValueError("prompt_price and completion_price (each for a million tokens) go together; set both or none")
        return self
