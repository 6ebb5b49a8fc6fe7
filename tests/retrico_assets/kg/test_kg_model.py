"""Real models of PyKEEN, trained on a small world (reference C36, B1.2, B1.3; OPEN-39)."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from resources.errors import NotBuiltError, SettingsError, StoreError
from resources.vectors.memory import MemoryVectorStore
from retrico_assets.kg import model_folder
from retrico_assets.kg.model_folder import current_version, read_card
from retrico_assets.kg.predict import complete
from retrico_assets.kg.report import training_curve
from retrico_assets.kg.score import KGModel
from retrico_assets.kg.vectors import KG_ENTITY_INDEX, KG_RELATION_INDEX, store_vectors
from tests.support.kg_worlds import FIRMS, GOOD, PEOPLE, PLAIN, PLAN, UNSTATED, frame_of, plain, train, true_triples
from tests.support.projects import REPOSITORY

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kg") / "kg_model"
    train(folder, PLAN, revision="rev-1")
    return KGModel.open(folder)


def elsewhere(code, *arguments, **options):
    """Run code in another process, at the root of the repository."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, timeout=120, check=True, **options).stdout


def test_known_facts_are_plausible_and_false_ones_are_not(model):
    true = model.score(true_triples())
    false = model.score([(person, "lives in", FIRMS[f"Firm {(int(firm[-1]) + 1) % 4}"]) for person, firm in PEOPLE.items()])
    assert all(0 <= score <= 1 for score in [*true, *false])
    assert np.median(true) > 0.9 > 0.1 > np.median(false)


def test_what_nobody_said_is_predicted_from_what_was_said(model):
    head, relation, tail = UNSTATED
    for best, second in (model.predict(head, relation, None, 2), model.predict(None, relation, tail, 2)):
        assert best[:3] == UNSTATED
        assert best[3] > 0.8 > 0.3 > second[3]


def test_predictions_leave_out_what_is_known_and_are_ranked(model):
    known = set(true_triples())
    for found in (model.predict("Person 2", "lives in", None, 100), model.predict(None, "lives in", "City 3", 100)):
        assert found
        assert not known & {one[:3] for one in found}
        assert all(head != tail for head, _, tail, _ in found)
        assert [one[3] for one in found] == sorted((one[3] for one in found), reverse=True)
    assert model.predict("Person 2", "lives in", None, 2) == model.predict("Person 2", "lives in", None, 100)[:2]


def test_a_prediction_scores_as_the_triple_itself_does(model):
    found = model.predict("Person 2", "works at", None, 5)
    assert model.score([one[:3] for one in found]) == pytest.approx([one[3] for one in found], abs=1e-5)


def test_unknown_names_have_no_score_and_the_others_are_scored(model):
    triples = [("Person 1", "works at", "Firm 1"), ("newcomer", "works at", "Firm 1"), ("Person 1", "NEW_REL", "Firm 1")]
    scores = model.score([*triples, triples[0]])
    assert scores[1:3] == [None, None]
    assert scores[0] == scores[3] > 0.5
    assert model.score([]) == []
    assert model.unknown(["Person 1", "newcomer", "other", "newcomer"]) == ["newcomer", "other"]
    assert model.predict("newcomer", "works at", None, 5) == []
    assert model.predict(None, "NEW_REL", "Firm 1", 5) == []
    for ends in ((None, None), ("Person 1", "Firm 1")):
        with pytest.raises(SettingsError, match="leave the other open"):
            model.predict(ends[0], "works at", ends[1], 5)


def test_the_card_holds_counts_losses_and_metrics(model):
    card = model.card
    assert card.model == "ComplEx"
    assert card.counts["entities"] == 40
    assert card.counts["train"] + card.counts["validation"] + card.counts["test"] == len(true_triples())
    assert set(card.metrics) == {"mrr", "hits_at_1", "hits_at_3", "hits_at_10"}
    assert 0 < card.metrics["mrr"] <= 1
    assert card.losses[-1] < card.losses[0]
    assert len(card.losses) == 60
    measured = json.loads((model.version / "metrics.json").read_text())
    assert measured["both.realistic.inverse_harmonic_mean_rank"] == card.metrics["mrr"]
    assert "data:image/svg+xml;base64," in training_curve(card)


def test_a_model_knows_when_it_is_older_than_the_graph(model, tmp_path):
    assert not model.stale_against("rev-1")
    assert model.stale_against("rev-2")
    train(tmp_path, PLAIN)
    assert not KGModel.open(tmp_path).stale_against("any")  # made of files


def test_another_process_loads_the_model_and_gives_the_same_scores(model):
    # B1.3: the reference can't load what it saved
    asked = [*true_triples()[:20], UNSTATED, ("newcomer", "works at", "Firm 1")]
    code = (
        "import json, sys; from pathlib import Path; from retrico_assets.kg.score import KGModel\n"
        "m = KGModel.open(Path(sys.argv[1])); a = json.loads(sys.argv[2])\n"
        "print(json.dumps([m.score([tuple(t) for t in a]), m.predict('Person 5', 'lives in', None, 4)]))"
    )
    scores, predicted = json.loads(elsewhere(code, model.version.parent, json.dumps(asked)))
    assert scores == model.score(asked)
    assert [tuple(one) for one in predicted] == model.predict("Person 5", "lives in", None, 4)


@pytest.mark.parametrize("name", ["RotatE", "ComplEx", "TransE", "TuckER", "SimplE", "TransR", "ConvE"])
def test_any_model_is_trained_loaded_and_its_vectors_stored(name, tmp_path):
    # B1.2: the reference can't store the vectors of RotatE, its default, nor of ComplEx, since they are complex numbers
    plan = plain(model=name, inverse_triples=name == "ConvE", learning_rate=0.01)
    version = train(tmp_path, plan)
    trained = KGModel(version)
    loaded = KGModel(version)
    assert trained.score(true_triples()) == loaded.score(true_triples())
    assert len(trained.predict(None, "lives in", "City 1", 3)) == 3
    store = MemoryVectorStore()
    written = store_vectors(store, loaded)
    ids, entities, labels, relations = loaded.vectors()
    assert np.isrealobj(entities)
    assert entities.shape[0] == 40
    if name in ("RotatE", "ComplEx"):
        assert entities.shape == (40, 32)
    assert written[KG_ENTITY_INDEX].written == 40
    assert written[KG_RELATION_INDEX].written == 3 == len(labels)
    stored = store.get(KG_ENTITY_INDEX, ["Person 1"])["Person 1"]
    row = entities[ids.index("Person 1")]
    assert stored == pytest.approx(row / np.linalg.norm(row), abs=1e-5)
    assert set(store.get(KG_RELATION_INDEX, labels)) == {"works at", "lives in", "located in"}
    assert relations.shape[1] == store.describe(KG_RELATION_INDEX).dimension


def test_complex_vectors_are_stored_as_pairs_of_real_ones(tmp_path):
    trained = KGModel(train(tmp_path, plain(model="ComplEx")))
    _, entities, _, _ = trained.vectors()
    complex_ = trained._loaded().entity_representations[0](None).detach().numpy()
    assert entities[:, 0::2] == pytest.approx(complex_.real)
    assert entities[:, 1::2] == pytest.approx(complex_.imag)


def test_vectors_of_the_same_training_are_left_and_those_of_a_new_one_replace_them(tmp_path):
    store = MemoryVectorStore()
    first = KGModel(train(tmp_path, PLAIN))
    assert store_vectors(store, first)[KG_ENTITY_INDEX].written == 40
    assert {one.written for one in store_vectors(store, first).values()} == {0}
    store.delete(KG_ENTITY_INDEX, ["Person 1", "Person 2"])  # as if the writing had been cut short
    assert store_vectors(store, first)[KG_ENTITY_INDEX].written == 2
    second = KGModel(train(tmp_path, plain(embedding_dim=8)))
    assert store_vectors(store, second)[KG_ENTITY_INDEX].written == 40
    assert store.describe(KG_ENTITY_INDEX).dimension == 8


def test_the_same_seed_gives_the_same_model_and_another_seed_another(tmp_path):
    def losses_and_scores(name, seed):
        version = train(tmp_path / name, plain(seed=seed), shares=(1, 0, 0))  # only the training is drawn anew
        return read_card(version).losses, KGModel(version).score(true_triples())

    assert losses_and_scores("a", 7) == losses_and_scores("b", 7)
    assert losses_and_scores("a", 7) != losses_and_scores("c", 8)


@pytest.mark.parametrize(
    "case", [[("ana", "WORKS_AT", "kestrel"), ("bo", "WORKS_AT", "kestrel"), ("cy", "KNOWS", "ana")], [("a", "R", "b")]]
)
def test_too_few_triples_are_trained_on_without_evaluation(case, tmp_path):
    # OPEN-39
    plan = plain(pipeline={"stopper": "early"})
    trained = KGModel(train(tmp_path, plan, case))
    assert trained.card.metrics == {}
    assert "too few" in trained.card.no_evaluation
    assert None not in trained.score(case)


def test_early_stopping_keeps_the_best_weights_and_tells_the_curve(tmp_path):
    stopper = {"stopper": "early", "stopper_kwargs": {"frequency": 2, "patience": 2}}
    card = read_card(train(tmp_path, plain(epochs=200, pipeline=stopper)))
    assert len(card.losses) < 200
    assert [epoch for epoch, _ in card.validation] == list(range(2, len(card.losses) + 1, 2))
    assert dict(card.validation)[card.best_epoch] == pytest.approx(max(value for _, value in card.validation), rel=0.02)
    assert card.validation_metric.endswith("inverse_harmonic_mean_rank")
    assert "MRR of validation" not in training_curve(card)  # it is inside of the picture
    assert not [path for path in card_files(tmp_path) if path.endswith("best.pt")]


def card_files(folder):
    return [str(path.relative_to(folder)) for path in folder.rglob("*")]


def test_every_option_of_the_pipeline_is_passed_on(tmp_path):
    pipeline = {
        **GOOD,
        "optimizer_kwargs": {"lr": 0.1},
        "lr_scheduler": "ExponentialLR",
        "lr_scheduler_kwargs": {"gamma": 0.99},
        "training_kwargs": {"label_smoothing": 0.1},
        "evaluator_kwargs": {"filtered": True},
        "evaluation_kwargs": {"batch_size": 8},
    }
    plan = plain(model="complex", inverse_triples=True, pipeline=pipeline)
    version = train(tmp_path, plan)
    assert read_card(version).options["loss"] == "crossentropy"
    assert KGModel(version).score(true_triples()) == KGModel(version).score(true_triples())
    sampled = {"negative_sampler": "bernoulli", "loss": "nssa", "loss_kwargs": {"margin": 6.0, "adversarial_temperature": 1.0}}
    version = train(tmp_path, plain(negatives=4, pipeline=sampled))
    assert read_card(version).options["negative_sampler_kwargs"] == {"num_negs_per_pos": 4}
    by_interaction = {"interaction": "transe", "interaction_kwargs": {"p": 2}, "dimensions": {"d": 6}}
    assert KGModel(train(tmp_path, plain(pipeline=by_interaction))).vectors()[1].shape == (40, 6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "Rotat"}, "no model named 'Rotat'. Similar names: rotate"),
        ({"pipeline": {"los": "nssa"}}, "'los', which PyKEEN's pipeline doesn't have. Did you mean loss"),
        ({"pipeline": {"loss": "crossentropi"}}, "no loss named 'crossentropi'. Similar names: crossentropy"),
        ({"pipeline": {"optimizer": "adaam"}}, "no optimizer named 'adaam'. Similar names: adam"),
        ({"pipeline": {"training": "x"}}, "kg.pipeline sets training. Set kg.triples instead."),
        ({"pipeline": {"random_seed": 3}}, "Set kg.seed instead"),
        ({"pipeline": {"loss_kwargs": 3}}, "loss_kwargs is 3. It must be names and values"),
        ({"pipeline": {"model_kwargs": {"embeding_dim": 3}}}, "PyKEEN can't train DistMult .*embeding_dim"),
        ({"pipeline": {"training_kwargs": {"num_epochs": 0}}}, "num_epochs is 0. It must be a whole number greater than 0"),
        ({"pipeline": {"training_kwargs": {"batch_size": "a"}}}, "batch_size is 'a'. It must be a whole number greater than 0"),
        ({"pipeline": {"training_loop": "lcwa"}, "negatives": 3}, "Remove kg.negatives"),
        ({"learning_rate": 1e30, "model": "ComplEx"}, "diverged: its loss is not a number. kg.learning_rate is 1e.30. Lower it"),
    ],
)
def test_invalid_options_are_refused_and_the_earlier_model_stays(change, message, tmp_path):
    before = train(tmp_path, PLAIN)
    with pytest.raises(SettingsError, match=message):
        train(tmp_path, plain(**change))
    assert current_version(tmp_path) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([before.name, "current.json", "training.lock"])
    assert None not in KGModel.open(tmp_path).score(true_triples())


def test_a_killed_training_leaves_the_earlier_model(tmp_path):
    before = train(tmp_path, PLAIN)
    scores = KGModel.open(tmp_path).score(true_triples())
    code = (
        "import sys; from pathlib import Path\n"
        "sys.path.insert(0, '.')\n"
        "from tests.support.kg_worlds import plain, train\n"
        "train(Path(sys.argv[1]), plain(epochs=100000), on_epoch=lambda e, n, loss: print(e, flush=True))"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline().strip() == "1"  # the training has begun
        assert list(tmp_path.glob(".training-*"))
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait(10) == -signal.SIGKILL
    finally:
        process.kill()
        process.stdout.close()
    assert current_version(tmp_path) == before
    assert KGModel.open(tmp_path).score(true_triples()) == scores
    after = train(tmp_path, plain(epochs=4))  # it needs no lock to be freed, and removes what the killed one left
    assert current_version(tmp_path) == after
    assert not list(tmp_path.glob(".training-*"))


def test_the_previous_version_is_kept_for_its_readers_and_older_ones_are_removed(tmp_path):
    versions = [train(tmp_path, plain(epochs=epochs)) for epochs in (1, 2, 3)]
    assert [version.exists() for version in versions] == [False, True, True]
    assert None not in KGModel(versions[1]).score(true_triples())


def test_a_missing_or_damaged_file_is_named(tmp_path):
    with pytest.raises(NotBuiltError, match="Train one"):
        KGModel.open(tmp_path)
    version = train(tmp_path, PLAIN)
    weights = (version / "weights.pt").read_bytes()
    (version / "weights.pt").write_bytes(weights[: len(weights) // 2])
    with pytest.raises(StoreError, match=r"weights\.pt can't be read"):
        KGModel(version).score(true_triples())
    (version / "entities.json").write_text("[")
    with pytest.raises(StoreError, match=r"entities\.json can't be read"):
        KGModel(version)


@pytest.mark.parametrize("name", ["entities.json", "relations.json"])
@pytest.mark.parametrize("content", ["[", "{}", "[1]", '[["a"]]', "null"])
def test_a_file_of_another_shape_is_reported_as_damaged(name, content, tmp_path):
    version = train(tmp_path, PLAIN)
    (version / name).write_text(content)
    with pytest.raises(StoreError, match=rf"{name} can't be read .* Train again"):
        KGModel(version)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": null}', '{"version": "gone"}'])
def test_training_again_replaces_a_model_whose_current_version_is_damaged(content, tmp_path):
    train(tmp_path, PLAIN)
    (tmp_path / "current.json").write_text(content)
    version = train(tmp_path, plain(epochs=2))
    assert current_version(tmp_path) == version
    assert None not in KGModel.open(tmp_path).score(true_triples())


def test_training_leaves_no_files_in_the_home_folder_or_the_temporary_folder(tmp_path):
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    home.mkdir()
    temporary.mkdir()
    code = (
        "import sys; from pathlib import Path\n"
        "sys.path.insert(0, '.')\n"
        "from tests.support.kg_worlds import plain, train\n"
        "train(Path(sys.argv[1]), plain(epochs=4, pipeline={'stopper': 'early', 'stopper_kwargs': {'frequency': 1}}))"
    )
    environment = {n: v for n, v in os.environ.items() if n not in ("PYSTOW_HOME", "PYKEEN_HOME")}
    elsewhere(code, tmp_path / "model", env={**environment, "HOME": str(home), "TMPDIR": str(temporary)})
    assert not [path for path in home.rglob("*") if path.is_file() and ".cache" not in path.parts]
    assert not (home / ".data").exists()
    assert not list(temporary.rglob("pykeen"))
    assert not [path for path in (tmp_path / "model").rglob("*") if path.name == "checkpoints"]


def test_a_thousand_triples_and_a_prediction_among_thousands_are_quick(tmp_path):
    triples = [(f"e{n % 5000}", f"r{n % 5}", f"e{(n * 7 + 1) % 5000}") for n in range(8000)]
    trained = KGModel(
        train(tmp_path, plain(model="RotatE", embedding_dim=128, epochs=1, batch_size=1024), triples, shares=(1, 0, 0))
    )
    trained.score(triples[:10])
    trained.predict("e1", "r1", None, 10)

    def cpu_seconds(call):
        started = time.process_time()
        call()
        return time.process_time() - started

    assert min(cpu_seconds(lambda: trained.score(triples[:1000])) for _ in range(3)) < 0.2
    assert min(cpu_seconds(lambda: trained.predict("e1", "r1", None, 10)) for _ in range(5)) < 0.05
    assert min(cpu_seconds(lambda: trained.predict(None, "r1", "e1", 10)) for _ in range(5)) < 0.05


def test_names_are_resolved_by_identity_key(model):
    found = complete(model, "Lives  IN", head="person 5", top=2)
    assert (found[0].head, found[0].relation, found[0].tail) == UNSTATED
    assert not found[0].stated
    assert len(found) == 2
    one = complete(model, "works at", head="Person 1", tail="the firm 1")
    assert [(p.tail, p.stated) for p in one] == [("Firm 1", True)]
    assert complete(model, "lives in", tail="City 2", threshold=1.0) == []


def test_for_unknown_names_and_labels_similar_ones_are_listed(model):
    with pytest.raises(SettingsError, match=r"doesn't know the entity 'Firm 11'. Similar names: .*Firm 1"):
        complete(model, "works at", tail="Firm 11")
    with pytest.raises(SettingsError, match=r"doesn't know the relation 'work at'. .*works at"):
        complete(model, "work at", tail="Firm 1")
    with pytest.raises(SettingsError, match="Neither a head nor a tail"):
        complete(model, "works at")


def test_namesakes_are_listed_with_their_ids(tmp_path):
    triples = [("id1", "r", "b"), ("id2", "r", "b"), ("b", "s", "id1")]
    frame = frame_of(triples).replace({"head": {"id1": "Paris", "id2": "Paris"}}).assign(split="train")
    frame["tail"] = frame["tail"].replace("id1", "Paris")
    with model_folder.training_lock(tmp_path):
        from retrico_assets.kg.train import train_model

        train_model(frame, PLAIN, tmp_path, no_evaluation="too few")
    namesakes = KGModel.open(tmp_path)
    with pytest.raises(SettingsError, match=r"is the name of 2 entities .* Give the id of one: id1 \(Paris\); id2 \(Paris\)"):
        complete(namesakes, "r", head="paris")
    assert complete(namesakes, "r", head="id2", tail="b")[0].stated
