"""Options: checking values, and the messages about wrong ones."""

from typing import Annotated, Literal

import pytest
from pydantic import Field, field_validator

from resources.errors import SettingsError
from resources.options import EnvironmentReference, Options, Score


class Inner(Options):
    size: int = Field(default=5, ge=1)
    share: Score | None = None
    ratio: Annotated[float, Field(gt=0, lt=1)] = 0.5


class Outer(Options):
    method: Literal["fast", "exact"] = "fast"
    names: list[str] = Field(default=[])
    even: int = 2
    on: bool = False
    inner: Inner = Inner()
    password: str = ""
    api_key: EnvironmentReference | None = None
    required: int = 0

    @field_validator("even")
    @classmethod
    def _is_even(cls, number: int) -> int:
        if number % 2:
            raise ValueError(f"{number} is odd. Use an even number.")
        return number


class Needed(Options):
    value: int


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"inner": {"size": 0}}, "part.inner.size is 0. It must be at least 1."),
        ({"inner": {"share": 1.5}}, "part.inner.share is 1.5. It must be between 0 and 1."),
        ({"inner": {"ratio": 1}}, "part.inner.ratio is 1. It must be greater than 0 and less than 1."),
        ({"inner": {"size": "many"}}, "part.inner.size is 'many'. It must be a whole number."),
        ({"inner": {"size": 1.5}}, "part.inner.size is 1.5. It must be a whole number."),
        ({"inner": {"size": True}}, "part.inner.size is True. It must be a number."),
        ({"inner": {"size": None}}, "part.inner.size is null. It must be a whole number."),
        ({"inner": {"share": "half"}}, "part.inner.share is 'half'. It must be a number."),
        ({"on": "maybe"}, "part.on is 'maybe'. It must be true or false."),
        ({"names": "a"}, "part.names is 'a'. It must be a list."),
        ({"names": [1]}, "part.names.0 is 1. It must be text."),
        ({"method": "quick"}, "part.method is 'quick'. It must be 'fast' or 'exact'."),
        ({"even": 3}, "part.even: 3 is odd. Use an even number."),
        ({"inner": 3}, "part.inner must be keys and values. Known keys: size, share, ratio."),
        ({"inner": {"sise": 3}}, "part.inner.sise is an unknown key. Known keys: size, share, ratio."),
        (
            {"methods": "fast"},
            "part.methods is an unknown key. Known keys: method, names, even, on, inner, password, api_key, required.",
        ),
    ],
)
def test_a_message_names_key_value_and_what_is_allowed(values, message):
    with pytest.raises(SettingsError) as error:
        Outer.parse(values, "part")
    assert str(error.value) == message


def test_every_fault_is_named():
    with pytest.raises(SettingsError) as error:
        Outer.parse({"even": 1, "inner": {"size": 0}})
    assert str(error.value) == "even: 1 is odd. Use an even number. inner.size is 0. It must be at least 1."


def test_a_missing_value_is_named():
    with pytest.raises(SettingsError, match=r"^part\.value is missing\. Add it\.$"):
        Needed.parse({}, "part")


@pytest.mark.parametrize(
    "values",
    [
        {"password": 271828},
        {"api_key": "sk-271828"},
        {"api_key": {"env": "sk-271828"}},
        {"api_key": {"env": "X", "sk-271828": "sk-271828"}},
        {"names": {"key": "sk-271828"}},
        {"even": "https://user:271828@host"},
    ],
)
def test_a_value_that_may_be_a_secret_is_not_shown(values):
    with pytest.raises(SettingsError) as error:
        Outer.parse(values)
    text = str(error.value).replace("api_key.sk-271828 is an unknown key", "")  # a key of the file, not a value
    assert "271828" not in text


def test_replace_checks_the_new_values_and_keeps_the_others():
    options = Outer.parse({"even": 4, "inner": {"size": 7}})
    changed = options.replace({"even": 6, "method": None, "unrelated": 1})
    assert (changed.even, changed.method, changed.inner.size) == (6, "fast", 7)
    with pytest.raises(SettingsError, match=r"^config\.even: 3 is odd"):
        options.replace({"even": 3}, "config")


def test_options_do_not_change():
    with pytest.raises(ValueError, match="frozen"):
        Outer().even = 4
