"""Run configuration that is derived from options: its schema in Dagster, and the options of one run."""

from typing import Any, Literal

import dagster as dg
import pytest
from pydantic import Field

from resources.errors import SettingsError
from resources.options import Options
from retrico_assets.run_config import RunConfig, fields_of


class Part(Options):
    size: int = 3


class ExampleOptions(Options):
    levels: int = Field(default=3, ge=1, le=10, description="The most levels.")
    method: Literal["fast", "exact"] = Field(default="fast", description="How to search.")
    share: float | None = Field(default=None, ge=0, le=1, description="A share.")
    names: list[str] = Field(default=[], description="Some names.")
    weights: dict[str, float] = Field(default={}, description="Some weights.")
    more: dict[str, Any] = Field(default={}, description="Anything.")
    parts: list[Part] = Field(default=[], description="Some parts.")
    part: Part = Field(default=Part(), description="One part.")


@fields_of(ExampleOptions)
class WholeConfig(RunConfig):
    """All options."""


@fields_of(ExampleOptions, "levels", "method")
class SomeConfig(RunConfig):
    """Two options and a switch."""

    again: bool = Field(False, description="Do it again.")


def run(config_class, config):
    received = []

    @dg.op
    def record(config: config_class):
        received.append(config)

    @dg.job
    def example():
        record()

    example.execute_in_process(run_config={"ops": {"record": {"config": config}}})
    return received[0]


def test_each_option_is_a_field_with_its_description_and_its_choices():
    fields = WholeConfig.model_fields
    assert list(fields) == list(ExampleOptions.model_fields)
    assert fields["levels"].description == "The most levels."
    assert fields["method"].description == "How to search. One of: fast, exact."
    schema = WholeConfig.to_config_schema().as_field().config_type.fields
    assert schema["method"].description == "How to search. One of: fast, exact."
    assert not any(field.is_required for field in schema.values())


def test_only_the_named_options_and_the_fields_of_the_class_are_there():
    assert set(SomeConfig.model_fields) == {"levels", "method", "again"}
    assert SomeConfig.__doc__ == "Two options and a switch."
    assert SomeConfig().again is False


def test_a_run_without_configuration_has_the_options_of_the_project():
    options = ExampleOptions(levels=7, names=["a"])
    assert run(WholeConfig, {}).replace_in(options) == options


def test_a_run_replaces_what_it_configures():
    values = {
        "levels": 2,
        "method": "exact",
        "share": 0.5,
        "names": ["x", "y"],
        "weights": {"a": 1.5},
        "more": {"k": [1, {"l": 2}]},
        "parts": [{"size": 1}],
        "part": {"size": 2},
    }
    assert run(WholeConfig, values).replace_in(ExampleOptions(levels=7)) == ExampleOptions.parse(values)
    assert run(SomeConfig, {"levels": 2, "again": True}).replace_in(ExampleOptions(share=0.1)) == ExampleOptions(
        levels=2, share=0.1
    )


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"levels": 0}, "config.levels is 0. It must be between 1 and 10."),
        ({"method": "quick"}, "config.method is 'quick'. It must be 'fast' or 'exact'."),
        ({"part": {"size": "big"}}, "config.part.size is 'big'. It must be a whole number."),
    ],
)
def test_a_wrong_value_is_named_by_its_key(values, message):
    config = run(WholeConfig, values)
    with pytest.raises(SettingsError) as error:
        config.replace_in(ExampleOptions())
    assert str(error.value) == message


def test_a_value_of_another_type_is_refused_by_dagster():
    with pytest.raises(dg.DagsterInvalidConfigError, match="levels"):
        run(WholeConfig, {"levels": "many"})
