"""The section kg of project.yaml."""

import pytest

from resources.errors import SettingsError
from retrico_assets.kg.options import KGOptions
from retrico_assets.settings import load_settings


@pytest.fixture
def settings(tmp_path):
    def read(text):
        file = tmp_path / "project.yaml"
        file.write_text(text)
        return load_settings(file).kg

    return read


def test_a_project_learns_its_graph_with_rotate_by_default(settings):
    kg = settings("data: data\n")
    assert (kg.triples, kg.model, kg.split, kg.pipeline) == (None, "RotatE", [0.8, 0.1, 0.1], {})
    assert kg.on_nodes is False


def test_the_place_of_triples_is_relative_to_the_project_file(settings, tmp_path):
    assert settings("kg: {triples: ../facts}\n").triples == str(tmp_path.parent / "facts")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kg: {split: [0.8, 0.3, 0.1]}", r"kg\.split: .*add up to 1"),
        ("kg: {epoch: 3}", r"kg\.epoch is an unknown key\. Known keys: model, embedding_dim"),
        ("kg: {epochs: 0}", r"kg\.epochs is 0\. It must be greater than 0\."),
        ("kg: {on_nodes: nodes}", r"kg\.on_nodes is 'nodes'\. It must be true or false\."),
        ("kg: {learning_rate: -1}", r"kg\.learning_rate is -1\. It must be greater than 0\."),
    ],
)
def test_mistakes_are_named_by_their_key(settings, text, message):
    with pytest.raises(SettingsError, match=message):
        settings(f"{text}\n")


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ([0.8, 0.1], "must be three shares"),
        ([0.8, 0.3, 0.1], "must add up to 1"),
        ([0, 0.5, 0.5], "leaves nothing for training"),
        ([1.2, -0.1, -0.1], "between 0 and 1"),
        ([float("nan"), 0.5, 0.5], "between 0 and 1"),
    ],
)
def test_shares_that_are_not_a_split_are_refused(shares, message):
    with pytest.raises(SettingsError, match=message):
        KGOptions.parse({"split": shares}, "kg")
