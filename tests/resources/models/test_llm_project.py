"""What project.yaml says about the language model reaches the client."""

import json

import pytest

from resources.errors import SettingsError
from retrico_assets.project import project_resources
from retrico_assets.settings import load_settings
from tests.support.llm_stub import says, scripted_llm

HELLO = [{"role": "user", "content": "Hello"}]


def project(folder, **llm):
    file = folder / "project.yaml"
    file.write_text(json.dumps({"data": "d", "models": {"llm": {"base_url": "http://localhost:1/v1", "model": "m", **llm}}}))
    settings = load_settings(file)
    return project_resources(file, settings)["models"].llm()


def test_limits_and_prices_are_set(tmp_path):
    llm = project(tmp_path, max_concurrency=2, requests_per_minute=30, prompt_price=1, completion_price=2.5)
    assert (llm.max_concurrency, llm.options.requests_per_minute, llm.usage.cost) == (2, 30, 0.0)


@pytest.mark.parametrize(("setting", "asked"), [({}, 1), ({"cache": True}, 1), ({"cache": False}, 2)])
def test_replies_are_kept_in_the_data_folder_unless_told_otherwise(tmp_path, setting, asked):
    with scripted_llm(says("Hi.")) as stub:
        for _ in range(2):
            llm = project(tmp_path, base_url=stub.base_url, **setting)
            assert llm.complete(HELLO).text == "Hi."
            llm.close()
    assert len(stub.requests) == asked
    assert (tmp_path / "d" / "llm_cache.db").exists() == (asked == 1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"max_concurrency": 0}, "max_concurrency"),
        ({"requests_per_minute": 0}, "requests_per_minute"),
        ({"prompt_price": 1}, "Set both or none"),
        ({"prompt_price": -1, "completion_price": 1}, "prompt_price"),
    ],
)
def test_settings_that_make_no_sense_are_refused_when_they_are_read(tmp_path, wrong, message):
    with pytest.raises(SettingsError, match=message):
        project(tmp_path, **wrong)
