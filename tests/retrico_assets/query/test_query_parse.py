"""What a question names."""

import pytest
from query_world import small_world

from resources.models.base import EntityExtractor, Extraction, Span
from resources.records import Entity
from retrico_assets.query.parse import LONGEST_QUESTION, Question, link, parse


def names(question, graph, extractor=None):
    return [entity.label for entity in link(parse(question, extractor)[0], graph).entities]


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return small_world(tmp_path_factory.mktemp("world")).graph


class Extracting(EntityExtractor):
    """An extractor that finds given surfaces."""

    def __init__(self, *surfaces):
        self.surfaces = surfaces

    @property
    def fingerprint(self):
        return "test"

    def extract(self, texts, on_result=None):
        found = [[(s, t.find(s)) for s in self.surfaces if s in t] for t in texts]
        return [Extraction(entities=tuple(Span(i, i + len(s), s, "thing", 0.9) for s, i in spans)) for spans in found]


class Failing(Extracting):
    def extract(self, texts, on_result=None):
        raise MemoryError("the model at http://u:CANARY@h is too large")


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("Where was Albert Einstein born?", ["Albert Einstein"]),
        ("where was ALBERT  EINSTEIN, born??", ["Albert Einstein"]),
        ("Where was Albert\u00a0Einstein’s wife born", ["Albert Einstein"]),
        ("Did Albert Einstein leave Ulm for Princeton?", ["Albert Einstein", "Ulm", "Princeton"]),
        ("Ulm 🤔? ¿Ulm? (Ulm)", ["Ulm"]),
        ("東京はどこですか", ["東京"]),
        ("日本の首都は東京ですか？", ["日本", "東京"]),
        ("京都はどこですか", []),
        ("京 とは", ["京"]),
        ("İstanbul'da nerede yenir?", ["İstanbul"]),
        ("Türkiye'nin başkenti neresi?", ["Türkiye"]),
        ("Who created C++?", ["C++"]),
        ("Who created C?", ["C"]),
        ("was sells strasse ag", ["Straße AG"]),
        ("was sells ＳＴＲＡＳＳＥ　ＡＧ", ["Straße AG"]),
        ("Who founded the WHO?", ["WHO"]),
        ("Who was that, who are they?", []),
        ("Parisians bake", []),
        ("Berlin", []),
        ("the of and", []),
        ("???", []),
        ("🤔🤷‍♀️", []),
        ("  \n", []),
        ("", []),
    ],
)
def test_a_question_names_entities_of_the_graph(graph, question, found):
    assert names(question, graph) == found


def test_the_longest_name_wins_over_its_parts(graph):
    assert names("Albert Einstein", graph) == ["Albert Einstein"]
    assert names("the Einstein in Ulm", graph) == ["Einstein", "Ulm"]
    assert names("Parisian Bakery", graph) == ["Parisian Bakery"]


def test_namesakes_are_all_kept(graph):
    assert sorted(entity.type for entity in link(Question("Where is Paris?"), graph).entities) == ["location", "person"]


def test_names_cost_one_round_trip(graph):
    calls = []

    class Counting:
        def find_entities(self, *, ids=(), keys=()):
            calls.append(len(keys))
            return graph.find_entities(ids=ids, keys=keys)

    link(Question("Did Albert Einstein leave Ulm for Princeton?"), Counting())
    assert len(calls) == 1


def test_a_mention_inside_a_word_is_found_by_the_extractor_alone(graph):
    assert names("Einsteinhaus in Geneva", graph) == ["Geneva"]
    assert names("Einsteinhaus in Geneva", graph, Extracting("Einstein")) == ["Einstein", "Geneva"]


def test_a_mention_that_the_graph_does_not_know_names_nothing(graph):
    question, failures = parse("Where is Atlantis?", Extracting("Atlantis", "Where is Atlantis"))
    assert [mention.text for mention in question.mentions] == ["Atlantis", "Where is Atlantis"]
    assert link(question, graph).entities == ()
    assert failures == ()


def test_a_failing_extractor_is_reported_and_the_graphs_names_still_work(graph):
    question, failures = parse("Where is Ulm?", Failing())
    assert [failure.strategy for failure in failures] == ["parse"]
    assert "too large" in failures[0].error
    assert "CANARY" not in failures[0].error
    assert [entity.label for entity in link(question, graph).entities] == ["Ulm"]


def test_a_question_that_the_extractor_could_not_read_is_reported():
    class Unreadable(Extracting):
        def extract(self, texts, on_result=None):
            return [Extraction(error="out of memory")]

    assert [failure.error for failure in parse("Where is Ulm?", Unreadable())[1]] == [
        "the entity extractor failed: out of memory"
    ]


def test_a_blank_question_asks_no_extractor():
    assert parse(" \n", Failing()) == (Question(" \n"), ())


def test_a_long_question_is_bounded_and_says_so(graph):
    question, failures = parse("Ulm " * LONGEST_QUESTION + "Geneva", None)
    assert [entity.label for entity in link(question, graph).entities] == ["Ulm"]
    assert f"the first {LONGEST_QUESTION} are asked" in failures[0].error
    assert len(question.text) == LONGEST_QUESTION
    keys = []

    class Asked:
        def find_entities(self, *, ids=(), keys_=keys, keys=()):
            keys_.extend(keys)
            return []

    link(Question("東京都" * LONGEST_QUESTION), Asked())
    assert 0 < len(keys) < 40_000


def test_what_no_store_takes_is_replaced():
    assert parse("Ulm\0 \udc80?", None)[0].text == "Ulm\ufffd \ufffd?"


def test_a_question_with_names_in_other_unicode_forms_finds_them():
    """OPEN-15, the part of the query."""

    class One:
        def find_entities(self, *, ids=(), keys=()):
            known = {"strasse ag": "Straße AG", "office": "Office", "zoë": "Zoë"}
            return [Entity(key, known[key], key, "organization") for key in keys if key in known]

    assert names("Who owns strasse ag, O\ufb03ce and Zoe\u0308?", One()) == ["Straße AG", "Office", "Zoë"]
