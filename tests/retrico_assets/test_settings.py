from pathlib import Path

import pytest

from resources.errors import SettingsError
from retrico_assets.project import project_resources
from retrico_assets.settings import load_settings, project_file

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path):
    def write(text):
        file = tmp_path / "project.yaml"
        file.write_text(text)
        return file

    return write


@pytest.mark.parametrize("name", ["configs/project.yaml", "configs/demo/project.yaml"])
def test_the_projects_that_come_with_the_repository_are_valid(name):
    settings = load_settings(REPOSITORY / name)
    assert Path(settings.models.entities.options.model).is_dir()
    assert settings.models.entities.options.model == settings.models.relations.options.model


def test_an_empty_file_is_a_project_of_defaults(project, tmp_path):
    settings = load_settings(project(""))
    assert settings.stores.graph.backend == "falkordb_embedded"
    assert settings.data_folder == tmp_path / "data"
    assert settings.corpus.path == str(tmp_path / "corpus")


def test_paths_are_relative_to_the_file_and_a_hub_id_stays_one(project, tmp_path):
    (tmp_path / "mine").mkdir()
    settings = load_settings(project("models: {entities: {model: mine}, relations: {model: some/hub-id}}"))
    assert settings.models.entities.options.model == str(tmp_path / "mine")
    assert settings.models.relations.options.model == "some/hub-id"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("corpus: {pth: x}", ["corpus.pth", "unknown key", "path"]),
        ("corpse: {}", ["corpse", "unknown key", "corpus"]),
        ("stores: {graph: {backend: oracle}}", ["stores.graph.backend", "falkordb_embedded"]),
        ("corpus: {chunking: {method: fixed, size: 100, overlap: 100}}", ["corpus.chunking", "overlap", "size"]),
        ("corpus: {chunking: {overlap: 5}}", ["corpus.chunking", "overlap", "fixed"]),
        ("labels: {entities: []}", ["labels.entities"]),
        ("labels: {entities: [person, ' ']}", ["labels.entities", "blank"]),
        ('labels: {relations: ["\\u200b"]}', ["labels.relations", "blank"]),
        ("models: {relations: null}", ["labels.relations", "models.relations"]),
        ("models: {entities: {threshold: 3}}", ["models.entities.threshold"]),
        ("models: {entities: {model: ./nowhere}}", ["models.entities.model", "'./nowhere'", "existing folder", "owner/name"]),
        ("models: {entities: {model: nowhere}}", ["models.entities.model", "'nowhere'", "existing folder", "owner/name"]),
        ("models: {entities: {backend: oracle}}", ["models.entities.backend", "'oracle'", "gliner", "module:Class"]),
        ("models: {embedder: {backend: 'nowhere:Embedder'}}", ["models.embedder.backend", "nowhere"]),
        ("models: {llm: {model: m, base_url: 'ftp://x'}}", ["models.llm.base_url", "http"]),
        ("models: {llm: {model: ' '}}", ["models.llm.model", "at least 1 character"]),
        ("query: {strategies: [entity, oracle]}", ["query.strategies", "'oracle'", "Known", "pagerank"]),
        ("query: {strategies: []}", ["query.strategies", "list of names"]),
        ("query: {options: {oracle: {}}}", ["query.options", "'oracle'", "Known"]),
        ("query: {options: {entity: {hopz: 1}}}", ["query.options", "entity.hop", "hopz", "unknown key", "hops"]),
        ("query: {options: {entity: {hops: 99}}}", ["query.options", "entity.hop", "hops", "10"]),
        ("query: {fusion: {method: magic}}", ["query.fusion.method", "rrf", "weighted", "union", "intersection"]),
        ("query: {fusion: {weights: {oracle: 1}}}", ["query.fusion", "'oracle'", "Known"]),
        ("query: {fusion: {weights: {entity: 0}}}", ["query.fusion.weights.entity", "greater than 0"]),
        ("query: {fusion: rrf}", ["query.fusion", "keys and values", "method, k"]),
        ("query: {fusion: {kay: 1}}", ["query.fusion.kay", "unknown key", "min_sources"]),
        (
            "query: {strategies: [entity, keyword], fusion: {method: intersection, min_sources: 3}}",
            ["query", "fusion.min_sources is 3", "only 2 strategies"],
        ),
        ("query: {reranker: {backend: cross_encoder}}", ["query.reranker.model", "missing"]),
        ("query: {reranker: {backend: embedder, model: m}}", ["query.reranker.model", "unknown key", "no options"]),
        ("query: {reranker: {backend: cross_encoder, model: ./nowhere}}", ["query.reranker.model", "nowhere"]),
        ("query: {top_k: 0}", ["query.top_k"]),
        ("query: {hops: 11}", ["query.hops", "10"]),
        ("query: {chunk_source: middle}", ["query.chunk_source", "head"]),
        ("- a list", ["top level"]),
        ("a: [", ["not valid YAML, line 1, column 5"]),
        ("stores: {graph: {port: 1}}", ["stores.graph.port is an unknown key. Known keys: idle_seconds."]),
        ("stores: {graph: falkordb}", ["stores.graph: The section must be keys and values"]),
        ("stores: {graph: {backend: 'nowhere:Store'}}", ["stores.graph.backend: 'nowhere:Store' can't be imported"]),
        ("stores: {graph: {backend: 'resources.texts.sqlite:SqliteTextStore'}}", ["stores.graph.backend", "not a subclass"]),
        ("stores: {graph: {idle_seconds: -1}}", ["stores.graph.idle_seconds is -1. It must be"]),
        ("data: /", ["data: / is the root folder"]),
        ("data: ''", ["data: A path can't be empty"]),
        ("communities: {levels: 0}", ["communities.levels is 0. It must be between 1 and 10."]),
    ],
)
def test_a_message_names_the_file_the_key_and_what_to_do(project, text, words):
    file = project(text)
    with pytest.raises(SettingsError) as error:
        load_settings(file)
    for word in [str(file), *words]:
        assert word in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "models: {llm: {model: m, api_key: sk-CANARY-1}}",
        "models: {llm: {model: m, base_url: 'http://user:CANARY-2@host/v1'}}",
    ],
)
def test_a_secret_in_the_file_is_refused_and_not_repeated(project, text):
    with pytest.raises(SettingsError, match="env") as error:
        load_settings(project(text))
    assert "CANARY" not in str(error.value)


def test_a_key_is_a_reference_to_the_environment(project):
    settings = load_settings(project("models: {llm: {model: m, api_key: {env: MY_KEY}}}"))
    assert settings.models.llm.api_key.env == "MY_KEY"


def test_a_missing_package_is_named(project, monkeypatch):
    monkeypatch.setattr("resources.plugins.find_spec", lambda name: None if name == "faiss" else object())
    with pytest.raises(SettingsError, match=r"stores\.vectors\.backend: 'faiss' needs the package faiss\. Install it\."):
        load_settings(project("{}"))


def test_the_environment_names_the_project(project, monkeypatch):
    file = project("{}")
    monkeypatch.setenv("RETRICO_PROJECT", str(file))
    assert project_file() == file


def test_without_a_project_file_the_error_says_how_to_name_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RETRICO_PROJECT", raising=False)
    with pytest.raises(SettingsError, match="--project"):
        project_file()
    with pytest.raises(SettingsError, match=r"elsewhere\.yaml"):
        project_file("elsewhere.yaml")


def test_a_changed_file_is_read_again(project):
    file = project("identity: name")
    assert load_settings(file).identity == "name"
    file.write_text("identity: name_and_type")
    assert load_settings(file).identity == "name_and_type"


def test_the_query_section_says_how_questions_are_answered(project, tmp_path):
    (tmp_path / "mine").mkdir()
    settings = load_settings(
        project(
            "query: {strategies: [keyword, entity], options: {entity: {hops: 1}}, fusion: {weights: {keyword: 2}}, "
            "reranker: {backend: cross_encoder, model: mine}}"
        )
    )
    query = settings.query
    assert query.strategies == ["keyword", "entity"]
    assert query.options == {"entity": {"hops": 1}}
    assert (query.fusion.method, query.fusion.weights) == ("rrf", {"keyword": 2.0})
    assert (query.reranker.options.model, query.reranker.top) == (str(tmp_path / "mine"), 30)
    models = project_resources(tmp_path / "project.yaml", settings)["models"]
    assert models.reranker().name == "mine"


def test_a_key_that_is_there_twice_is_refused_with_both_lines(project):
    file = project("data: a\ncorpus:\n  path: x\n  include: []\n  path: y\n")
    with pytest.raises(SettingsError) as error:
        load_settings(file)
    assert str(error.value) == f"{file}: The key 'path' is in line 3 and again in line 5. Remove one of them."


def test_merged_keys_may_be_overridden(project):
    settings = load_settings(project("kg: {<<: {seed: 5}, seed: 1}\n"))
    assert settings.kg.seed == 1


@pytest.mark.parametrize(
    "text",
    [
        "models: {llm: {api_key: CANARY-1: x}}",
        "api_key: 'CANARY-2\nmore: 1",
        "api_key: *CANARY-3",
        "api_key: !CANARY-4 x",
        "\tapi_key: CANARY-5",
        "api_key: CANARY-6\n  more: [",
    ],
)
def test_a_syntax_error_does_not_quote_the_file(project, text):
    with pytest.raises(SettingsError, match="YAML") as error:
        load_settings(project(text))
    assert "CANARY" not in str(error.value)


def test_a_file_in_another_encoding_and_one_that_is_nested_too_deeply_are_refused(project):
    file = project("")
    file.write_bytes("data: Gr\u00fcn".encode("latin-1"))
    with pytest.raises(SettingsError, match="not encoded in UTF-8"):
        load_settings(file)
    with pytest.raises(SettingsError, match="nested too deeply"):
        load_settings(project("[" * 5000))


def test_a_store_of_a_file_beside_the_project_is_used_with_its_own_options(project, tmp_path):
    (tmp_path / "loud_store.py").write_text(
        "from resources.options import Options\n"
        "from resources.vectors.memory import MemoryVectorStore\n"
        "class LoudOptions(Options):\n    volume: int = 3\n"
        "class LoudStore(MemoryVectorStore):\n    options = LoudOptions\n"
    )
    file = project("stores: {vectors: {backend: 'loud_store:LoudStore', volume: 7}}")
    section = load_settings(file).stores.vectors
    assert (section.backend, section.options.volume) == ("loud_store:LoudStore", 7)
    resource = project_resources(file, load_settings(file))["vector_store"]
    assert resource.options == {"volume": 7}
    with resource.connect() as store:
        assert type(store).__name__ == "LoudStore"
    with pytest.raises(SettingsError, match=r"stores\.vectors\.volume is 'high'\. It must be a whole number\."):
        load_settings(project("stores: {vectors: {backend: 'loud_store:LoudStore', volume: high}}"))
