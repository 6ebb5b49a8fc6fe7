"""What a question names."""

import pytest

from resources.models.base import EntityExtractor, Extraction, Span
from resources.records import Entity
from resources.text.names import identity_key
from retrico_assets.query.plan import Plan
from retrico_assets.query.question.linking import link
from retrico_assets.query.question.names import known_names
from retrico_assets.query.question.question import LONGEST_QUESTION, Question, find_mentions, read_question
from retrico_assets.query.session import QuerySession
from retrico_assets.query.state import QueryState
from retrico_assets.query.steps import PARSE
from tests.support.query_world import empty_graph, facts, small_world


def names(question, graph, extractor=None):
    return [entity.label for entity in link(read(question, extractor), graph).entities]


def read(text, extractor=None):
    question, _ = read_question(text)
    return find_mentions(question, extractor) if extractor else question


def parsed(text, extractor):
    """The state of a question after its first step."""
    return PARSE.apply(QueryState.begin(text, Plan(("entity",))), QuerySession(given={"extractor": extractor}))


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return small_world(tmp_path_factory.mktemp("world")).graph


class Extracting(EntityExtractor):
    """An extractor that finds given surfaces, and links some."""

    def __init__(self, *surfaces, linked_ids=None):
        self.surfaces = surfaces
        self.linked_ids = linked_ids or {}

    @property
    def fingerprint(self):
        return "test"

    def extract(self, texts, on_result=None):
        found = [[(s, t.find(s)) for s in self.surfaces if s in t] for t in texts]
        return [Extraction(entities=tuple(self._span(s, i) for s, i in spans)) for spans in found]

    def _span(self, surface, place):
        return Span(place, place + len(surface), surface, "thing", 0.9, self.linked_ids.get(surface))


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
        ("Whose is Albert Einsteins’ house, whose Albert Einsteins' car?", ["Albert Einstein"]),
        ("albert einstein's, ulm, and \"princeton\" or 'geneva'", ["Albert Einstein", "Ulm", "Princeton", "Geneva"]),
        ("Is that “Albert Einstein”, of ‘Ulm’?", ["Albert Einstein", "Ulm"]),
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


def test_names_cost_one_call_and_those_left_over_one_more(graph):
    calls = []

    class Counting:
        def find_entities(self, *, ids=(), keys=()):
            calls.append(len(keys))
            return graph.find_entities(ids=ids, keys=keys)

        def search_entities(self, text, k):
            calls.append(text)
            return graph.search_entities(text, k)

    link(Question("Did Albert Einstein leave Ulm for Princeton?"), Counting())
    assert len(calls) == 1
    link(Question("did anybody leave ulm?"), Counting())
    assert len(calls) == 2
    link(Question("Did Stroustrup and Ritchie meet Knuth in Ulm?"), Counting())
    assert len(calls) == 4


def test_a_mention_inside_a_word_is_found_by_the_extractor_alone(graph):
    assert names("Einsteinhaus in Geneva", graph) == ["Geneva"]
    assert names("Einsteinhaus in Geneva", graph, Extracting("Einstein")) == ["Einstein", "Geneva"]


def test_a_mention_that_the_graph_does_not_know_names_nothing(graph):
    question = read("Where is Atlantis?", Extracting("Atlantis", "Where is Atlantis"))
    assert [mention.text for mention in question.mentions] == ["Atlantis", "Where is Atlantis"]
    assert link(question, graph).entities == ()


def test_a_failing_extractor_is_reported_and_the_graphs_names_still_work(graph):
    state = parsed("Where is Ulm?", Failing())
    assert [failure.strategy for failure in state.failures] == ["parse_question"]
    assert "too large" in state.failures[0].error
    assert "CANARY" not in state.failures[0].error
    assert [entity.label for entity in link(state.question, graph).entities] == ["Ulm"]


def test_a_question_that_the_extractor_could_not_read_is_reported():
    class Unreadable(Extracting):
        def extract(self, texts, on_result=None):
            return [Extraction(error="out of memory")]

    assert [failure.error for failure in parsed("Where is Ulm?", Unreadable()).failures] == ["out of memory"]


def test_a_blank_question_does_not_call_the_extractor():
    state = parsed(" \n", Failing())
    assert (state.question, state.failures) == (Question(" \n"), ())


def test_a_long_question_is_bounded_and_says_so(graph):
    question, failures = read_question("Ulm " * LONGEST_QUESTION + "Geneva")
    assert [entity.label for entity in link(question, graph).entities] == ["Ulm"]
    assert f"only the first {LONGEST_QUESTION} are used" in failures[0].error
    assert len(question.text) == LONGEST_QUESTION
    keys = []

    class Asked:
        def find_entities(self, *, ids=(), keys_=keys, keys=()):
            keys_.extend(keys)
            return []

    link(Question("東京都" * LONGEST_QUESTION), Asked())
    assert 0 < len(keys) < 40_000


def test_what_no_store_takes_is_replaced():
    assert read("Ulm\0 \udc80?").text == "Ulm\ufffd \ufffd?"


def test_a_question_with_names_in_other_unicode_forms_finds_them():
    class One:
        def search_entities(self, text, k):
            return []

        def find_entities(self, *, ids=(), keys=()):
            known = {"strasse ag": "Straße AG", "office": "Office", "zoë": "Zoë"}
            return [Entity(key, known[key], key, "organization") for key in keys if key in known]

    assert names("Who owns strasse ag, O\ufb03ce and Zoe\u0308?", One()) == ["Straße AG", "Office", "Zoë"]


NAMESAKES = [
    ("John Smith", "knows", "Jane Smith"),
    ("Alan Turing", "was born in", "Maida Vale"),
    ("Antonín Dvořák", "was born in", "Nelahozeves"),
    ("Zürich", "lies on", "Lake Zurich"),
    ("University of Lagos", "lies in", "Lagos"),
    ("Parisian Bakery", "lies in", "Lyon"),
    ("William Tell", "shot", "Golden Apple"),
    ("Vitamin C", "prevents", "Scurvy"),
    ("東京大学", "lies in", "日本"),
    ("Mr. Y", "knows", "J. R. R. Tolkien"),
    *((f"River {name}", "flows to", "Sea") for name in ("Abe", "Bee", "Cam", "Dee", "Eem", "Foss", "Gee", "Hull", "Ilm")),
    *((f"River {name}", "flows from", "Spring") for name in ("Jed", "Kee", "Lea")),
]


@pytest.fixture(scope="module", params=["memory", "falkordb"])
def peopled(request, tmp_path_factory):
    with empty_graph(request.param, tmp_path_factory.mktemp("peopled")) as store:
        store.replace_documents(facts(*NAMESAKES))
        yield store


def links(question, graph, extractor=None):
    linked = link(read(question, extractor), graph)
    return {entity.label: pytest.approx(linked.link_score(entity.id)) for entity in linked.entities}


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("Where was Turing born?", {"Alan Turing": 0.4}),
        ("Turing", {"Alan Turing": 0.4}),
        ("Where was Turing's house, and where Alan Turing's?", {"Alan Turing": 1.0}),
        ("Does Smith live in Lyon?", {"John Smith": 0.2, "Jane Smith": 0.2, "Lyon": 1.0}),
        ('Is that "Turing", or Dvorak?', {"Alan Turing": 0.4, "Antonín Dvořák": 0.4}),
        ("Which lake is at Zurich?", {"Zürich": 0.8}),
        ("Is it the Lagos University?", {"Lagos": 1.0, "University of Lagos": 0.4}),
        ("Where is the University of Lagos?", {"University of Lagos": 1.0}),
        ("Who met J. R. R. Tolkien?", {"J. R. R. Tolkien": 1.0}),
        ("Who met Tolkien?", {"J. R. R. Tolkien": 0.8 / 3}),
        ("Who met Tolkien.Turing was there", {"J. R. R. Tolkien": 0.8 / 3}),
        ("did turing meet smith?", {}),
        ("Where is Paris?", {}),
        ("Where is Tur, where Smi, where Smithson?", {}),
        ("Tell me more", {}),
        ("Golden days", {}),
        ("WHO IS SMITH", {}),
        ("Is C good?", {}),
        ("Where is the River?", {}),
        ("東京はどこですか", {}),
        ("Is 大学 there?", {}),
    ],
)
def test_a_part_of_a_name_links_whole_words_only_and_counts_less(peopled, question, found):
    assert links(question, peopled) == found


@pytest.mark.parametrize(
    ("question", "surface", "found"),
    [
        ("where does smith live?", "smith", {"John Smith": 0.2, "Jane Smith": 0.2}),
        ("where was alan mathison turing born?", "alan mathison turing", {"Alan Turing": 0.8 * 2 / 3}),
        ("the big apple and the golden one", "big apple and the golden one", {"Golden Apple": 0.4}),
        ("where does paris sleep?", "paris", {}),
        ("the c that he had", "c", {}),
        ("whose is lagos university", "lagos university", {"University of Lagos": 0.8, "Lagos": 1.0}),
        ("???", "???", {}),
    ],
)
def test_a_mention_without_a_key_in_the_graph_is_looked_up_by_its_words(peopled, question, surface, found):
    assert links(question, peopled, Extracting(surface)) == found


def test_the_sure_entities_and_the_guesses_come_in_order_of_place(peopled):
    linked = link(Question("Did Smith, of Lyon, meet Turing near Lagos?"), peopled)
    assert [entity.label for entity in linked.entities][2:] == ["Lyon", "Alan Turing", "Lagos"]
    assert set(linked.link_scores) == {entity.id for entity in linked.entities}


@pytest.fixture(scope="module")
def linked_graph(tmp_path_factory):
    with empty_graph("memory", tmp_path_factory.mktemp("linked")) as store:
        store.replace_documents(facts(("Paris", "is in", "Texas"), linked_ids={"Paris": "Q830149"}))
        store.replace_documents(facts(("Paris", "is in", "France"), linked_ids={"Paris": "Q90"}, first=1))
        store.replace_documents(facts(("Paris", "loved", "Helen"), first=2))
        yield store


def linked_to(question, graph, **ids):
    linked = link(read(question, Extracting(*ids, linked_ids=ids)), graph)
    return [(entity.id, linked.link_score(entity.id)) for entity in linked.entities]


def test_a_linked_id_goes_before_the_name(linked_graph):  # C22
    assert len(linked_to("Where is Paris?", linked_graph)) == 3
    assert linked_to("Where is Paris?", linked_graph, Paris="Q90") == [("Q90", 1.0)]
    assert linked_to("Where is the Paris?", linked_graph, Paris=" Q90 ") == [("Q90", 1.0)]
    assert linked_to("Where is Lutetia?", linked_graph, Lutetia="Q90") == [("Q90", 1.0)]
    assert linked_to("Where is ???", linked_graph, **{"???": "Q90"}) == [("Q90", 1.0)]


def test_a_linked_id_that_the_graph_does_not_know_leaves_the_name(linked_graph):
    assert len(linked_to("Where is Paris?", linked_graph, Paris="Q404")) == 3
    assert linked_to("Where is Lutetia?", linked_graph, Lutetia="Q404' OR 1=1") == []


def test_names_of_a_given_list_are_found_whole_and_in_order():
    keys = {"billy elliot", "elliot", "who", "ulm", "京"}
    found = known_names("Who saw Billy Elliot's film in ULM, or 東京?", keys)
    assert [name.key for name in found] == ["billy elliot", "ulm"]


@pytest.mark.parametrize(
    ("label", "question"),
    [
        ("Nukuʻalofa", "Where is Nuku'alofa?"),
        ("Nuku'alofa", "Where is NUKUʻALOFA?"),
        ("Ọ̀ṣun", "Who is ỌṢUN\u0300?".replace("ỌṢUN\u0300", "Ọ\u0300ṢUN")),
        ("Αθήνα", "Where is ΑΘΗΝΑ?"),
        ("محمد", "Who is مُحَمَّد?"),
        (".NET", "What is .NET?"),
        ("20%", "Who gets 20 % of it?"),
        ("-40", "Is it -40 there?"),
        ("$20", "Who pays $20?"),
        ("C++", "What is C++?"),
        ("A-Team", "Who is in the A-Team?"),
    ],
)
def test_a_name_is_linked_however_it_is_written(label, question):
    assert [name.key for name in known_names(question, {identity_key(label)})] == [identity_key(label)]


@pytest.mark.parametrize(
    ("label", "question"),
    [("20", "Who gets 20%?"), ("40", "Is it -40 there?"), ("C", "What is C++?"), ("-40", "What were the years 30-40?")],
)
def test_signs_that_change_a_name_keep_it_apart(label, question):
    assert known_names(question, {identity_key(label)}) == []
