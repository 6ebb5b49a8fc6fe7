"""Rerankers: a real cross-encoder, made small and trained on the spot, and the embedder in its place."""

import itertools
import random

import numpy as np
import pytest

from resources.errors import ExtractionError, SettingsError
from resources.models.rerankers.embedder import EmbedderReranker
from tests.support.models import cross_encoder, sentence_embedder

QUESTIONS = {"which colour": ("red", "green", "blue"), "which city": ("ulm", "paris", "kiel")}
FILLERS = ("the", "is", "near", "door")


def make_cross_encoder(folder, labels=1, weight=None):
    """A BERT of one layer that has learnt which words answer which of two questions; saved as the hub would give it."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    words = [word for question, answers in QUESTIONS.items() for word in (*question.split(), *answers)]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *dict.fromkeys([*words, *FILLERS])]
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    tokenizer = BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=24)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=24,
        num_labels=labels,
        initializer_range=0.2,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model = BertForSequenceClassification(config)
    if labels == 1:
        train(model, tokenizer)
    if weight is not None:
        torch.nn.init.constant_(model.classifier.weight, weight)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def train(model, tokenizer):
    import torch

    answers = [word for words in QUESTIONS.values() for word in words]
    pairs = [
        (question, " ".join(text), float(word in right))
        for question, right in QUESTIONS.items()
        for word in (*answers, "door")
        for text in itertools.permutations((word, *random.Random(word).sample(FILLERS[:3], 2)))
    ]
    batch = tokenizer([q for q, _, _ in pairs], [t for _, t, _ in pairs], padding=True, return_tensors="pt")
    wanted = torch.tensor([score for _, _, score in pairs])
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(300):
        optimizer.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(**batch).logits[:, 0], wanted)
        loss.backward()
        optimizer.step()
        if loss.item() < 0.01:
            return
    raise AssertionError(f"the model did not learn: loss {loss.item()}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_cross_encoder(tmp_path_factory.mktemp("models") / "tiny")


TEXTS = ["the door is", "the is red", "ulm is near", "near the blue"]


@pytest.mark.slow
def test_a_cross_encoder_reads_question_and_text_together(folder):
    reranker = cross_encoder(folder)
    colour = reranker.scores("which colour", TEXTS)
    city = reranker.scores("which city", TEXTS)
    assert set(np.argsort(colour)[-2:]) == {1, 3}
    assert int(np.argmax(city)) == 2
    assert all(isinstance(score, float) for score in colour)
    assert reranker.name == "tiny"


@pytest.mark.slow
def test_scores_do_not_depend_on_the_batch_or_the_order(folder):
    whole = cross_encoder(folder).scores("which colour", TEXTS)
    assert cross_encoder(folder, batch_size=1).scores("which colour", TEXTS) == pytest.approx(whole, abs=1e-5)
    assert cross_encoder(folder).scores("which colour", TEXTS[::-1]) == pytest.approx(whole[::-1], abs=1e-5)
    assert cross_encoder(folder).scores("which colour", []) == []


@pytest.mark.slow
def test_any_text_can_be_scored(folder):
    texts = ["", " ", "🤔", "東京", "\ud800", "red " * 500, "[SEP] which city [SEP] ulm", "\0"]
    scores = cross_encoder(folder).scores("which colour? \udcff", texts)
    assert len(scores) == len(texts)
    assert np.isfinite(scores).all()


@pytest.mark.slow
def test_a_control_word_in_a_text_is_a_word_like_any_other(folder):
    control, plain = cross_encoder(folder).scores("which city", ["[SEP] ulm [PAD]", "{sep} ulm {pad}"])
    assert control == pytest.approx(plain, abs=1e-6)


@pytest.mark.slow
def test_a_classifier_and_damaged_weights_are_refused(tmp_path):
    classifier = cross_encoder(make_cross_encoder(tmp_path / "classifier", labels=3))
    with pytest.raises(ExtractionError, match="'classifier' gives 3 scores for each text"):
        classifier.scores("which colour", TEXTS)
    damaged = cross_encoder(make_cross_encoder(tmp_path / "damaged", weight=float("nan")))
    with pytest.raises(ExtractionError, match="not numbers"):
        damaged.scores("which colour", TEXTS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("./nowhere", ["neither an existing folder nor a valid Hugging Face model id"]),
        ("cross-encoder/no-such-model-here", ["not in the local cache", "cross-encoder/ms-marco-MiniLM-L6-v2"]),
        ("a/b/c", ["neither an existing folder nor a valid Hugging Face model id"]),
    ],
)
def test_a_model_that_is_not_there_says_which_setting_to_change(model, words):
    with pytest.raises((ExtractionError, SettingsError)) as error:
        cross_encoder(model).scores("q", ["t"])
    for word in [model, "query.reranker.model", *words]:
        assert word in str(error.value)


@pytest.mark.slow
def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(ExtractionError, match="The folder could not be loaded"):
        cross_encoder(str(tmp_path)).scores("q", ["t"])


@pytest.mark.parametrize("options", [{"model": " "}, {"model": "a/b", "batch_size": 0}])
def test_settings_that_can_not_be_are_refused(options):
    with pytest.raises(SettingsError, match=r"query\.reranker"):
        cross_encoder(**options)


@pytest.mark.slow
def test_the_embedder_can_stand_in():
    reranker = EmbedderReranker(sentence_embedder("all-MiniLM-L6-v2"))
    scores = reranker.scores("Where was Einstein born?", ["Bananas are yellow.", "Albert Einstein was born in Ulm."])
    assert scores[1] > 0.5 > scores[0]
    assert reranker.name == "all-MiniLM-L6-v2"
    assert reranker.scores("Where?", []) == []
