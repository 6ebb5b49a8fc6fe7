"""Options of a language model behind an OpenAI-compatible endpoint."""

from typing import Annotated, Any

from pydantic import Field, PositiveInt, StringConstraints, field_validator, model_validator

from resources.models.llm.address import check_address
from resources.options import EnvironmentReference, Options, as_value_error


class LLMOptions(Options):
    """A language model: where it is served, how it is asked, and what it costs."""

    base_url: str | None = Field(
        default=None,
        description="Address of the endpoint, for example http://localhost:8080/v1. "
        "Empty: the environment variable OPENAI_BASE_URL, else OpenAI's own API.",
    )
    model: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)] = Field(
        description="Name of the model, as the endpoint knows it."
    )
    api_key: EnvironmentReference | None = Field(
        default=None, description="The environment variable that holds the key: {env: NAME}. Empty: the server needs none."
    )
    timeout: float = Field(
        default=60,
        gt=0,
        le=86_400,
        description="Seconds within which a whole reply must arrive; in a stream, the longest gap between pieces of text.",
    )
    max_retries: int = Field(default=3, ge=0, le=100, description="How often a request is repeated after a passing error.")
    backoff: float = Field(
        default=0.5, ge=0, le=3600, description="Seconds before the first retry; each further one waits twice as long."
    )
    max_wait: float = Field(
        default=60, ge=0, le=86_400, description="Most seconds that one request waits between its tries, altogether."
    )
    context_tokens: PositiveInt = Field(default=6000, description="Tokens of evidence that the model is shown for an answer.")
    max_concurrency: PositiveInt = Field(default=4, description="Most requests to the endpoint at the same time.")
    requests_per_minute: PositiveInt | None = Field(
        default=None, description="Most requests to the endpoint that start within a minute. Empty: no limit."
    )
    cache: bool = Field(default=True, description="Keep replies in the data folder, so that a repeated request costs nothing.")
    prompt_price: float | None = Field(default=None, ge=0, description="Price of a million prompt tokens, in any currency.")
    completion_price: float | None = Field(default=None, ge=0, description="Price of a million completion tokens.")

    @field_validator("api_key", mode="before")
    @classmethod
    def _no_literal_key(cls, value: Any) -> Any:
        if isinstance(value, str):
            # The value is a secret: it must not appear in the message.
            raise ValueError("the key itself is given. Write {env: NAME_OF_A_VARIABLE} and set that variable.")
        return value

    @field_validator("base_url")
    @classmethod
    def _address(cls, value: str | None) -> str | None:
        return as_value_error(check_address, value) if value else None

    @model_validator(mode="after")
    def _both_prices_or_none(self) -> "LLMOptions":
        if (self.prompt_price is None) != (self.completion_price is None):
            raise ValueError("only one of prompt_price and completion_price is set. Set both or none.")
        return self
