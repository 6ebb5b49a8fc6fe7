"""The section `communities` of project.yaml."""

import pytest
import yaml

from resources.errors import SettingsError
from retrico_assets.communities.assets import CommunitiesConfig, detection_options
from retrico_assets.communities.detect import Detection
from retrico_assets.settings import load_settings


def load(folder, **section):
    file = folder / "project.yaml"
    file.write_text(yaml.safe_dump({"communities": section}))
    return load_settings(file).communities


def test_without_the_section_the_defaults_hold(tmp_path):
    assert load(tmp_path).detection == Detection() == Detection("auto", 3, 1.0, 42)


def test_a_run_may_differ_from_the_project(tmp_path):
    settings = load(tmp_path, method="louvain", levels=2, seed=7)
    assert settings.detection == Detection("louvain", 2, 1.0, 7)
    assert detection_options(settings, CommunitiesConfig(levels=1, resolution=2.0)) == Detection("louvain", 1, 2.0, 7)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"method": "infomap"}, "communities.method"),
        ({"levels": 0}, "1 to 10"),
        ({"resolution": -1}, "above 0"),
        ({"seed": -5}, "-5"),
        ({"token_budget": 5}, "communities.token_budget"),
        ({"engine": "x"}, "known here: method, levels, resolution"),
    ],
)
def test_what_can_not_be_done_is_refused_with_the_key(tmp_path, section, message):
    with pytest.raises(SettingsError, match="communities") as caught:
        load(tmp_path, **section)
    assert message in str(caught.value)
