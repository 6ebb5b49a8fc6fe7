"""The job train_kg_model and the commands `model` and `predict`, end to end."""

import json
import logging
import time
from concurrent.futures import ThreadPoolExecutor

import dagster as dg
import pytest
import yaml

from resources.graph import open_graph_store
from retrico_assets.kg.score import trained_model
from retrico_assets.project import held_build_lock
from tests.support.projects import REPOSITORY, TEXTS, Build, make_project

pytestmark = pytest.mark.slow

FACTS = "".join(f"person {n}\tworks at\tfirm {n % 4}\nperson {n}\tlives in\tcity {n % 4}\n" for n in range(30))
QUICK = {"epochs": 5, "embedding_dim": 8}


@pytest.fixture
def project(tmp_path):
    project = make_project(tmp_path, settings={"kg": {"triples": "facts.tsv", **QUICK}})
    (tmp_path / "facts.tsv").write_text(f"{FACTS}broken row\nfirm 0\tlocated in\tcity 0\n")
    yield project
    project.stop()


def train(project, **config):
    return Build(project.run("train_kg_model", {"ops": {"kg_model": {"config": config}}} if config else {}))


def test_triples_are_divided_a_model_is_trained_and_its_vectors_stored(project):
    made = train(project)
    triples, model, vectors = (made.metadata[name] for name in ("kg_triples", "kg_model", "kg_embeddings"))
    assert (triples["triples"], triples["entities"], triples["relations"]) == (61, 38, 3)
    assert triples["bad_rows"] == 1
    assert [record.data["what"] for record in triples["bad rows"].records] == ["facts.tsv, line 61"]
    assert model["trained"] is True
    assert (model["epochs"], model["entities"], model["device"]) == (5, 38, "cpu")
    assert [record.data["metric"] for record in model["metrics"].records] == ["MRR", "Hits@1", "Hits@3", "Hits@10"]
    assert "![loss by epoch](data:image/svg" in model["training curve"]
    assert vectors["written"] == 38 + 3
    assert made.checks == {"kg_triples.evaluation_covered_by_train": True, "kg_model.metrics_are_finite": True}


def test_a_rerun_without_change_trains_and_writes_nothing(project):
    first = train(project)
    files = {path: path.stat().st_mtime_ns for path in (project.data / "kg_model").rglob("*") if path.suffix in (".pt", ".json")}
    again = train(project)
    assert again.metadata["kg_model"]["trained"] is False
    assert "no model was trained" in again.metadata["kg_model"]["note"]
    assert again.metadata["kg_embeddings"]["written"] == 0
    assert {path: path.stat().st_mtime_ns for path in files} == files
    assert again.metadata["kg_model"]["mrr"] == first.metadata["kg_model"]["mrr"]
    assert train(project, epochs=6).metadata["kg_model"]["trained"] is True
    assert train(project, epochs=6, retrain=True).metadata["kg_model"]["trained"] is True
    with (project.file.parent / "facts.tsv").open("a") as file:
        file.write("person 1\tknows\tperson 2\n")
    changed = train(project, epochs=6)
    assert changed.metadata["kg_model"]["trained"] is True
    assert changed.metadata["kg_embeddings"]["written"] == 38 + 4


def test_the_run_config_of_the_project_and_options_of_pykeen_are_taken(project):
    config = yaml.safe_load((REPOSITORY / "configs/kg_model.yaml").read_text())
    assert Build(project.run("train_kg_model", config)).metadata["kg_model"]["model"] == "RotatE"
    stopped = train(project, model="complex", epochs=50, pipeline={"stopper": "early", "stopper_kwargs": {"frequency": 1}})
    assert stopped.metadata["kg_model"]["model"] == "ComplEx"
    assert stopped.metadata["kg_model"]["best epoch"] < stopped.metadata["kg_model"]["epochs"] < 50


def test_no_triples_are_no_error(project):
    (project.file.parent / "facts.tsv").write_text("")
    made = train(project)
    assert made.metadata["kg_triples"]["triples"] == 0
    assert "no triples" in made.metadata["kg_triples"]["note"]
    assert "no model was trained" in made.metadata["kg_model"]["note"]
    assert "No KG model is trained" in made.metadata["kg_embeddings"]["note"]


def test_one_entity_alone_with_itself_is_no_error(project):
    (project.file.parent / "facts.tsv").write_text("a\tknows\ta\n")
    made = train(project)
    assert made.metadata["kg_triples"]["triples"] == 1
    assert "no model was trained" in made.metadata["kg_model"]["note"]
    assert "No KG model is trained" in made.metadata["kg_embeddings"]["note"]
    assert all(made.checks.values())


def test_an_unknown_model_fails_in_one_sentence(project):
    run = project.run("train_kg_model", {"ops": {"kg_model": {"config": {"model": "Rotate3"}}}}, raise_on_error=False)
    failure = next(event for event in run.all_events if event.is_step_failure)
    assert "no model named 'Rotate3'. Similar names: rotate" in failure.step_failure_data.user_failure_data.description


def test_a_build_can_go_on_while_a_model_is_trained(project):
    trained = project.data / "kg_model" / "current.json"
    definitions = project.definitions()
    with ThreadPoolExecutor(1) as pool, held_build_lock(project.data, "a build", logging.getLogger()):
        run = pool.submit(definitions.resolve_job_def("train_kg_model").execute_in_process)
        while not trained.exists() and not run.done():
            time.sleep(0.05)
        assert trained.exists()
        time.sleep(1)
        assert not run.done()  # its vectors wait for the build to end
        waits = not (project.data / "vectors").exists()
    assert waits
    assert Build(run.result()).metadata["kg_embeddings"]["written"] == 38 + 3


def test_a_run_of_builds_and_training_together_does_not_wait_for_itself(project):
    definitions = project.definitions()
    everything = dg.define_asset_job("everything", selection=dg.AssetSelection.all()).resolve(
        asset_graph=definitions.resolve_asset_graph()
    )
    assert Build(everything.execute_in_process()).metadata["kg_embeddings"]["written"] == 38 + 3


def test_the_command_line_tells_what_a_run_may_not_say_and_which_rows_were_left_out(project):
    refused = project.retrico("model", "--learning-rate", "-1")
    assert refused.returncode == 1
    assert refused.stderr.strip() == "error: --learning-rate is -1.0. It must be greater than 0."
    run = project.retrico("model", "--epochs", "1")
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("left out: facts.tsv, line 61: has 1 columns")


@pytest.fixture
def built(tmp_path):
    project = make_project(tmp_path)
    project.build()
    yield project
    project.stop()


def test_the_graph_is_learned_and_asked_by_name_from_the_command_line(built):
    failed = built.retrico("model", "--kg-model", "Rotate3", "--json")
    assert failed.returncode == 1
    assert "Similar names: rotate" in json.loads(failed.stdout)["errors"][0]
    before = built.retrico("predict", "--head", "Ulm", "--relation", "born in")
    assert before.returncode == 1
    assert "No KG model is trained" in before.stderr
    trained = built.retrico("model", "--kg-model", "TransE", "--embedding-dim", "8", "--epochs", "3", "--json")
    assert trained.returncode == 0, trained.stderr
    summary = json.loads(trained.stdout)
    assert (summary["trained"], summary["model"], summary["epochs"], summary["metrics"]) == (True, "TransE", 3, {})
    assert "too few" in summary["note"]

    asked = built.retrico("predict", "--head", "albert einstein", "--relation", "Born In", "--tail", "Ulm", "--json")
    result = json.loads(asked.stdout)
    assert result["older_than_graph"] is False
    triples = [(p["head"], p["relation"], p["tail"], p["stated"]) for p in result["predictions"]]
    assert triples == [("Albert Einstein", "born in", "Ulm", True)]

    unknown = built.retrico("predict", "--head", "Albert Einstien", "--relation", "born in")
    assert unknown.returncode == 1
    assert "Similar names: Albert Einstein" in unknown.stderr

    built.write("bohr.txt", "Niels Bohr was born in Copenhagen.")
    built.build()
    stale = built.retrico("predict", "--tail", "Ulm", "--relation", "born in", "--top", "2")
    assert stale.returncode == 0
    assert len(stale.stdout.splitlines()) == 2
    assert "Albert Einstein" not in stale.stdout
    assert "older than the graph" in stale.stderr


def test_a_question_is_answered_with_the_model_of_the_project(built):
    train(built)
    config = {"question": "Where was Albert Einstein born?", "strategies": ["kg_scored"]}
    result = built.run("query", {"ops": {"parse_question": {"config": config}}}).output_for_node("reason")
    assert result["errors"] == []
    relation = next(one for one in result["relations"] if (one["head"], one["tail"]) == ("Albert Einstein", "Ulm"))
    assert relation["properties"]["score_source"] == "kg_model"


def copied(made):
    found = made.metadata["kg_embeddings"]
    return found["nodes"], found["nodes_written"], found["nodes_cleared"]


def vectors_on_nodes(project):
    with open_graph_store("falkordb_embedded", project.data / "graph") as graph:
        rows = graph.query("MATCH (e:Entity) WHERE e.kg_embedding IS NOT NULL RETURN e.id, e.kg_embedding")
    return {row["e.id"]: row["e.kg_embedding"] for row in rows}


def test_vectors_are_copied_onto_the_nodes_if_asked_for_and_removed_again_if_not(built):
    on, off = ({"ops": {"kg_embeddings": {"config": {"on_nodes": wanted}}}} for wanted in (True, False))
    assert copied(train(built)) == (0, 0, 0)
    graph = built.graph()
    first = Build(built.run("train_kg_model", on))
    ids, rows, *_ = trained_model(built.data).vectors()
    assert len(ids) > 1
    assert copied(first) == (len(ids), len(ids), 0)
    assert first.metadata["kg_embeddings"]["written"] == 0
    assert "note" not in first.metadata["kg_embeddings"]
    assert vectors_on_nodes(built) == dict(zip(ids, rows.tolist(), strict=True))
    assert built.graph() == graph

    again = Build(built.run("train_kg_model", on))
    assert copied(again) == (len(ids), 0, 0)
    assert again.metadata["kg_model"]["trained"] is False
    (built.corpus / "curie.txt").unlink()
    built.build()
    built.write("curie.txt", TEXTS["curie.txt"])
    built.build()
    came_back = copied(Build(built.run("train_kg_model", on)))
    assert came_back[0] == len(ids)
    assert 0 < came_back[1] < len(ids)

    assert copied(Build(built.run("train_kg_model", off))) == (0, 0, len(ids))
    assert vectors_on_nodes(built) == {}


def test_a_model_of_files_finds_no_nodes_and_says_so(project):
    made = Build(project.run("train_kg_model", {"ops": {"kg_embeddings": {"config": {"on_nodes": True}}}}))
    assert copied(made) == (0, 0, 0)
    assert "none of the model's entities" in made.metadata["kg_embeddings"]["note"]
