"""The section `communities` of project.yaml."""

import pytest
import yaml

from resources.errors import SettingsError
from retrico_assets.communities.assets import CommunitiesConfig
from retrico_assets.communities.options import CommunityOptions
from retrico_assets.settings import load_settings


def load(folder, **section):
    file = folder / "project.yaml"
    file.write_text(yaml.safe_dump({"communities": section}))
    return load_settings(file).communities


def test_without_the_section_the_defaults_hold(tmp_path):
    assert load(tmp_path) == CommunityOptions()


def test_a_run_may_differ_from_the_project(tmp_path):
    options = load(tmp_path, method="louvain", levels=2, seed=7)
    changed = CommunitiesConfig(levels=1, resolution=2.0).replace_in(options)
    assert (changed.method, changed.levels, changed.resolution, changed.seed) == ("louvain", 1, 2.0, 7)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"method": "infomap"}, "communities.method"),
        ({"levels": 0}, "communities.levels is 0. It must be between 1 and 10."),
        ({"resolution": -1}, "communities.resolution is -1. It must be greater than 0."),
        ({"seed": -5}, "communities.seed is -5."),
        ({"token_budget": 5}, "communities.token_budget"),
        ({"engine": "x"}, "communities.engine is an unknown key. Known keys: method, levels, resolution"),
    ],
)
def test_what_can_not_be_done_is_refused_with_the_key(tmp_path, section, message):
    with pytest.raises(SettingsError, match="communities") as caught:
        load(tmp_path, **section)
    assert message in str(caught.value)
