"""A graph handle in project.yaml: what it may say, and what is refused when the configuration loads."""

import json
from pathlib import Path

import pytest

from resources.errors import SettingsError
from retrico_assets.query.providers.graph_handle import strategies_of
from retrico_assets.query.providers.rule import check_retrieval
from retrico_assets.settings import load_settings


def check(settings, file=None):
    check_retrieval(settings.retrieval_facts, settings.query.strategies, file)


@pytest.fixture
def project(tmp_path):
    def load(*entries, **more):
        file = tmp_path / "project.yaml"
        file.write_text(json.dumps({"retrieval": {"knowledge": list(entries)}} | more))
        return load_settings(file)

    return load


def test_a_handle_looks_with_the_strategy_graph_and_loads_nothing(project):
    entries = project({"name": "graph", "type": "graph"}).retrieval.knowledge
    assert [(entry.name, entry.type, entry.strategy) for entry in entries] == [("graph", "graph", "graph")]
    assert strategies_of(entries) == ("graph",)
    assert strategies_of(project({"name": "graph", "type": "graph", "strategy": "graph"}).retrieval.knowledge) == ("graph",)


@pytest.mark.parametrize(
    "option",
    [
        "path",
        "connection",
        "query",
        "format",
        "include",
        "exclude",
        "unit",
        "chunk_context",
        "chunk_context_model",
        "select",
        "max_tokens",
    ],
)
def test_what_locates_or_loads_documents_is_refused_by_name(project, option):
    with pytest.raises(SettingsError, match=rf"retrieval\.knowledge\.0: {option} is a .*remove it"):
        project({"name": "graph", "type": "graph", option: "x"})


def test_several_refused_options_are_all_named(project):
    with pytest.raises(SettingsError, match=r"exclude is .*path is .*strategy is 'hybrid'"):
        project({"name": "graph", "type": "graph", "path": "a", "exclude": [], "strategy": "hybrid"})


@pytest.mark.parametrize("strategy", ["hybrid", "keyword", "GRAPH", ""])
def test_any_other_strategy_of_a_handle_is_refused(project, strategy):
    with pytest.raises(SettingsError, match=f"strategy is '{strategy}', but that of a graph handle is 'graph'"):
        project({"name": "graph", "type": "graph", "strategy": strategy})


def test_there_is_one_handle_at_most(project):
    with pytest.raises(SettingsError, match=r"retrieval\.knowledge: there are 2 graph handles \(one, two\)"):
        project({"name": "one", "type": "graph"}, {"name": "two", "type": "graph"})


def test_no_documents_stand_beside_a_handle(project):
    with pytest.raises(SettingsError, match=r"handbook \(documents\) stands beside the graph handle graph"):
        project({"name": "handbook", "strategy": "hybrid"}, {"name": "graph", "type": "graph"})


def test_documents_alone_may_have_a_strategy_that_exists(project):
    settings = project({"name": "handbook", "strategy": "hybrid"}, {"name": "letters", "strategy": "keyword"})
    check(settings)
    assert strategies_of(settings.retrieval.knowledge) == ("hybrid", "keyword")
    with pytest.raises(SettingsError, match=r"mine\.yaml: Unknown strategy 'hybird'"):
        check(project({"name": "handbook", "strategy": "hybird"}), Path("mine.yaml"))


@pytest.mark.parametrize(
    "entry", [{"name": ""}, {"type": "graph"}, {"name": "x", "type": "table"}, {"name": "x", "pth": "y"}, "x"]
)
def test_an_entry_that_says_too_little_or_too_much_is_refused(project, entry):
    with pytest.raises(SettingsError, match=r"retrieval\.knowledge\.0"):
        project(entry)


def test_two_entries_of_one_name_are_refused(project):
    with pytest.raises(SettingsError, match="'a' is given twice"):
        project({"name": "a"}, {"name": "a"})


def test_strategies_of_the_project_may_not_contradict_the_handle(project):
    handle = {"name": "graph", "type": "graph"}
    with pytest.raises(SettingsError, match=r"query\.strategies is \['keyword'\].*graph handle 'graph'.*Remove one"):
        check(project(handle, query={"strategies": ["keyword"]}))
