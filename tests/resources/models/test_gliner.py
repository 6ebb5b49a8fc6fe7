"""What GLiNER extractors promise, with the small real model of the demo."""

import warnings
from pathlib import Path

import pytest

from resources.errors import ExtractionError, SettingsError
from resources.models.base import Extraction, Span
from resources.models.gliner.extractors import GlinerEntityExtractor, GlinerRelationExtractor
from resources.models.gliner.model import load_gliner
from tests.support.models import entity_extractor, relation_extractor

MODEL = str(Path(__file__).parents[3] / "configs" / "demo" / "gliner-mini")
LABELS = ["person", "organization", "location", "date"]
RELATIONS = ["born in", "works at", "located in"]
EINSTEIN = "Albert Einstein was born in Ulm."

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def entities() -> GlinerEntityExtractor:
    return entity_extractor(MODEL, LABELS)


@pytest.fixture(scope="module")
def relations() -> GlinerRelationExtractor:
    return relation_extractor(MODEL, LABELS, RELATIONS)


def found(extraction: Extraction) -> list[tuple[int, int, str]]:
    assert extraction.error is None
    return [(span.start, span.end, span.text) for span in extraction.entities]


def facts(extraction: Extraction) -> set[tuple[str, str, str]]:
    return {(relation.head.text, relation.relation, relation.tail.text) for relation in extraction.relations}


def test_offsets_hold_among_emoji_and_combining_marks(entities: GlinerEntityExtractor) -> None:
    """A zero-width joiner has no subword, which shifts every later word in gliner itself."""
    text = "Thanks \u2764\ufe0f\u2764\ufe0f Ida Holm \U0001f469\u200d\U0001f52c moved to \u0141o\u0301dz\u0301."
    assert found(entities.extract([text])[0]) == [(12, 20, "Ida Holm"), (34, 40, "\u0141o\u0301dz\u0301")]


def test_every_span_says_what_the_text_says_there(entities: GlinerEntityExtractor) -> None:
    texts = [
        "Mia\u00a0Chen visited Quito.\r\n\tOmar Haddad\u200b lives in Bern.",
        "東京はMia Chenの町。" * 40,
        "\ufeffIda Holm left Ulm.",
    ]
    for text, extraction in zip(texts, entities.extract(texts), strict=True):
        assert extraction.error is None
        for span in extraction.entities:
            assert text[span.start : span.end] == span.text
            assert span.text.strip() == span.text


def test_a_long_text_is_read_to_its_end_and_no_window_passes_the_models_limits(
    entities: GlinerEntityExtractor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit counts subwords: one word of thousands of letters, CJK, emoji."""
    model = load_gliner(MODEL, "cpu", "test")._model
    words: list[int] = []
    subwords: list[int] = []
    run = model.run_batch

    def spy(batch: dict, **settings: object) -> object:
        words.extend(len(tokens) for tokens in batch["tokens"])
        subwords.append(batch["input_ids"].shape[1])
        for tokens, mask in zip(batch["tokens"], batch["words_mask"], strict=True):
            assert int(mask.max()) == len(tokens), "the tokenizer cut words off"
        return run(batch, **settings)

    monkeypatch.setattr(model, "run_batch", spy)
    plain = "lorem " * 900 + "Zed Orlan founded Kestrel Labs"
    texts = [plain, "lorem " * 900 + EINSTEIN, "A" * 5000, "由" * 1500, "\U0001f469\u200d\U0001f52c" * 400]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, second, *others = entities.extract(texts)
    assert (5418, 5430, "Kestrel Labs") in found(first)
    assert (5400, 5415, "Albert Einstein") in found(second)
    assert max(words) <= model.config.max_len
    assert max(subwords) <= 512
    for extraction in (first, second, *others):
        assert (extraction.error, extraction.words_not_read) == (None, 0)


def test_blank_texts_give_nothing_and_cost_nothing() -> None:
    extractor = entity_extractor(MODEL, LABELS)
    *blank, last = extractor.extract(["", "   \n\t", "\u200b", "\ufeff", "Mia Chen visited Quito."])
    assert blank == [Extraction()] * 4
    assert [text for _, _, text in found(last)] == ["Mia Chen", "Quito"]
    assert extractor.calls == 1


def test_control_words_and_braces_are_plain_text(entities: GlinerEntityExtractor) -> None:
    text = 'The guide says <|endoftext|> ends a sample; </s> and [SEP] too. Config: {"a": {x}} and %s and $NAME. <<ENT>> <<SEP>>'
    first, second = entities.extract([text, f"{text} {EINSTEIN}"])
    assert (first.error, first.words_not_read) == (None, 0)
    assert found(second)[-2:] == [(len(text) + 1, len(text) + 16, "Albert Einstein"), (len(text) + 29, len(text) + 32, "Ulm")]


def test_a_result_does_not_depend_on_the_other_texts(relations: GlinerRelationExtractor) -> None:
    alone = relations.extract_jointly([EINSTEIN])[0]
    among = relations.extract_jointly(["Mia Chen left.", EINSTEIN, "Ana Silva works at Kestrel Labs in Bern. " * 5])[1]
    assert facts(among) == facts(alone) == {("Albert Einstein", "born in", "Ulm")}
    for one, other in zip(alone.entities, among.entities, strict=True):
        assert (one.start, one.end, one.label) == (other.start, other.end, other.label)
        assert one.score == pytest.approx(other.score, abs=2e-4)


def test_given_entities_are_the_ends_even_where_the_model_would_not_find_them(relations: GlinerRelationExtractor) -> None:
    """Heads and tails are always mentions; labels that the model does not know and low scores stay as given."""
    given = [Span(0, 15, "Albert Einstein", "Q5", 0.01), Span(28, 31, "Ulm", "town", 0.01)]
    result = relations.extract([EINSTEIN], [given])[0]
    assert facts(result) == {("Albert Einstein", "born in", "Ulm")}
    for relation in result.relations:
        assert relation.head in given
        assert relation.tail in given


def test_joint_ends_are_mentions_and_never_the_same_place(relations: GlinerRelationExtractor) -> None:
    texts = [EINSTEIN, "Ana met Ana Silva. Ana Silva runs Silva Foods in Bern."]
    for extraction in relations.extract_jointly(texts):
        for relation in extraction.relations:
            assert relation.head in extraction.entities
            assert relation.tail in extraction.entities
            assert relation.head != relation.tail


def test_a_text_with_one_entity_costs_no_relation_call() -> None:
    extractor = relation_extractor(MODEL, LABELS, RELATIONS)
    assert extractor.extract([EINSTEIN, EINSTEIN], [[], [Span(28, 31, "Ulm", "location", 1.0)]]) == [Extraction()] * 2
    assert extractor.calls == 0


def test_entities_beyond_the_bound_are_counted() -> None:
    extractor = relation_extractor(MODEL, LABELS, RELATIONS, max_entities=2)
    text = "Albert Einstein and Mia Chen were born in Ulm, Germany."
    given = [Span(text.index(name), text.index(name) + len(name), name, "x", score) for name, score in
             (("Albert Einstein", 0.9), ("Mia Chen", 0.2), ("Ulm", 0.8), ("Germany", 0.1))]  # fmt: skip
    result = extractor.extract([text], [given])[0]
    assert result.entities_dropped == 2
    assert facts(result) == {("Albert Einstein", "born in", "Ulm")}
    assert extractor.extract_jointly([text])[0].entities_dropped >= 1


def test_many_labels_are_spread_over_passes_and_merged() -> None:
    extractor = entity_extractor(MODEL, LABELS, labels_per_pass=2)
    assert found(extractor.extract([EINSTEIN])[0]) == [(0, 15, "Albert Einstein"), (28, 31, "Ulm")]
    assert extractor.calls == 2
    joint = relation_extractor(MODEL, LABELS, ["works at", "located in", "member of", "plays for", "born in"], labels_per_pass=4)
    assert ("Albert Einstein", "born in", "Ulm") in facts(joint.extract_jointly([EINSTEIN])[0])
    assert joint.calls == 2


def test_one_bad_window_fails_its_text_alone(entities: GlinerEntityExtractor, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_gliner(MODEL, "cpu", "test")._model
    run = model.run_batch

    def choke(batch: dict, **settings: object) -> object:
        if any("Poison" in tokens for tokens in batch["tokens"]):
            raise RuntimeError("out of memory")
        return run(batch, **settings)

    monkeypatch.setattr(model, "run_batch", choke)
    reported: dict[int, Extraction] = {}
    results = entities.extract([EINSTEIN, "Poison Ivy left Ulm.", "Mia Chen visited Quito."], reported.__setitem__)
    assert results[1].error == "RuntimeError: out of memory"
    assert found(results[0]) == [(0, 15, "Albert Einstein"), (28, 31, "Ulm")]
    assert [text for _, _, text in found(results[2])] == ["Mia Chen", "Quito"]
    assert [reported[index] for index in range(3)] == results


def test_joins_only_the_same_model_with_the_same_settings(
    relations: GlinerRelationExtractor, entities: GlinerEntityExtractor
) -> None:
    assert relations.joins(entities)
    assert not relations.joins(entity_extractor(MODEL, LABELS, threshold=0.6))
    assert not relations.joins(entity_extractor(MODEL, LABELS[:2]))
    assert not relations.joins(entity_extractor("owner/other", LABELS))


def test_the_fingerprint_follows_what_changes_results(entities: GlinerEntityExtractor) -> None:
    same = entity_extractor(MODEL, LABELS, batch_size=2)
    others = [
        entity_extractor(MODEL, LABELS[:3]),
        entity_extractor(MODEL, LABELS, threshold=0.6),
        entity_extractor(MODEL, LABELS, flat_ner=False),
        entity_extractor(MODEL, LABELS, window_words=1),
        entity_extractor("owner/other", LABELS),
    ]
    assert same.fingerprint == entities.fingerprint
    assert len({entities.fingerprint, *(other.fingerprint for other in others)}) == 6


@pytest.mark.parametrize("model", ["no/such/folder", "./nowhere"])
def test_what_is_neither_a_folder_nor_a_model_id_is_refused(model: str) -> None:
    with pytest.raises(SettingsError, match=rf"models\.entities\.model: '{model}' is neither an existing folder nor a valid"):
        entity_extractor(model, LABELS)


def test_a_model_that_can_not_be_downloaded_names_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ExtractionError, match=r"models\.entities\.model is 'owner/no-such-model'"):
        entity_extractor("owner/no-such-model", LABELS).extract([EINSTEIN])


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"threshold is 1\.5"):
        entity_extractor(MODEL, LABELS, threshold=1.5)
    with pytest.raises(SettingsError, match="is not a label"):
        entity_extractor(MODEL, ["person", " "])
    with pytest.raises(ExtractionError, match="Lower labels_per_pass"):
        entity_extractor(MODEL, [f"a label of many words {n}" for n in range(90)], labels_per_pass=90).extract([EINSTEIN])
