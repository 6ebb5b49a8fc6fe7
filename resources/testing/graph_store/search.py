"""Full-text search in a graph store: words are found however they are written, and nothing written is an operator."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resources.graph.base import GraphStore
from resources.graph.encoding import clean_text
from resources.graph.fulltext import question_phrases
from resources.testing.graphs import Says, document, pair
from tests.support.spellings import SPELLINGS


def _texts(store: GraphStore, *texts: Any) -> Any:
    store.replace_documents([document(f"d{n}", Says(text)) for n, text in enumerate(texts)])


def _named(store: GraphStore, *names: Any) -> Any:
    store.replace_documents([document("names", Says("some text", [(name, "thing", 0.5) for name in names]))])


def _chunks(store: GraphStore, question: Any, k: Any = 10) -> Any:
    return [scored.record.text for scored in store.search_chunks(question, k)]


def _entities(store: GraphStore, text: Any, k: Any = 10) -> Any:
    return [scored.record.label for scored in store.search_entities(text, k)]


PROSE = [
    "Marie Curie discovered polonium and radium in Paris.",
    "The Parisian Bakery sells croissants.",
    "Zürich is the largest city of Switzerland.",
    "由清华大学组成的联盟在北京开会。",
    "東京タワーは333メートルです。",
    "İstanbul'da bir köprü var.",
    "C++ is a language; C is another one.",
    "The .NET runtime by Microsoft runs C#.",
    "AT&T was a telephone company 🚀 launched long ago.",
    "삼성전자는 수원에 있다.",
    "ประเทศไทยมีกรุงเทพมหานคร",
    "e-mail user_name@example.com costs 20.04 dollars (or more)",
]


class SearchConformance:
    """Full-text search in a graph store: words are found however they are written, and nothing written is an operator."""

    @pytest.mark.parametrize(
        ("question", "best"),
        [
            ("Who discovered radium?", 0),
            ('"Marie Curie" (polonium | radium) -Paris', 0),
            ("What is the largest city in ZURICH", 2),
            ("Zürich", 2),
            ("清华大学", 3),
            ("北京在哪里?", 3),
            ("東京タワーの高さ", 4),
            ("istanbul", 5),
            ("İSTANBUL", 5),
            ("C++", 6),
            ("C#?", 7),
            (".NET", 7),
            ("AT&T 🚀", 8),
            ("삼성전자", 9),
            ("กรุงเทพ", 10),
            ("user_name@example.com", 11),
            ("20.04", 11),
            ("@text:{radium}", 0),
            ("%radium%", 0),
            ("~radium => {$weight: 5}", 0),
            ("\\radium\\", 0),
            ("radium*", 0),
            ("-radium", 0),
            ("radium'; MATCH (n) DETACH DELETE n //", 0),
            ('radium" RETURN 1', 0),
        ],
    )
    def test_a_question_is_taken_as_it_is_written(self, store: GraphStore, question: Any, best: Any) -> None:
        _texts(store, *PROSE)
        assert _chunks(store, question)[0] == PROSE[best]
        assert store.stats().chunks == len(PROSE)

    @pytest.mark.parametrize(
        "question", ["", " ", "?!", "***", "()", '"', "\\", "|-~@%{}[]:", "🚀", "\0", "\ud83d", "the of and", "$q"]
    )
    def test_a_question_without_words_finds_nothing(self, store: GraphStore, question: Any) -> None:
        _texts(store, *PROSE)
        assert _chunks(store, question) == []
        if question != "the of and":
            assert _entities(store, question) == []

    @pytest.mark.parametrize("asked", ["Paris*", "radi*", "%radiun%", "polo", "parisia", "curies"])
    def test_a_word_is_never_found_by_a_part_or_a_likeness_of_it(self, store: GraphStore, asked: Any) -> None:
        _texts(store, *PROSE)
        _named(store, "Marie Curie", "Parisian Bakery", "radium", "Polonium")
        assert all("Paris." in text for text in _chunks(store, asked))
        assert _entities(store, asked) == []

    def test_a_very_long_question_is_answered(self, store: GraphStore) -> None:
        _texts(store, *PROSE)
        assert _chunks(store, "radium " + " ".join(f"word{n}" for n in range(20_000)))[0] == PROSE[0]
        assert _entities(store, "radium " * 20_000) == []
        assert _chunks(store, "x" * 100_000) == []

    def test_words_of_any_length_are_found_whole(self, store: GraphStore) -> None:
        word, other = "a" * 150, "a" * 149 + "b"
        _texts(store, f"some {word} here", f"some {other} here", "ü" * 120)
        assert _chunks(store, word) == [f"some {word} here"]
        assert _chunks(store, "Ü" * 120) == ["ü" * 120]
        _named(store, word, other)
        assert _entities(store, word) == [word]

    @settings(
        max_examples=60,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
    )
    @given(st.text(max_size=40) | st.text("radium \"'()|-~*@:%\\{}[]$^<>=;,.!?", max_size=30))
    def test_no_question_is_an_error(self, store: GraphStore, question: Any) -> None:
        if store.stats().documents != len(PROSE):
            _texts(store, *PROSE)
        found = store.search_chunks(question, 3)
        assert len(found) <= 3
        assert all(scored.score > 0 for scored in found)
        assert [s.score for s in found] == sorted((s.score for s in found), reverse=True)
        store.search_entities(question, 3)

    @settings(
        max_examples=60,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
    )
    @given(st.text(max_size=30))
    def test_any_text_with_words_is_found_by_itself(self, store: GraphStore, text: Any) -> None:
        graph = document("any", Says(text, [("x" + text, "thing", 0.5)]))
        store.replace_documents([replace(graph, mentions=(replace(graph.mentions[0], entity_id="it"),))])
        (named,) = store.search_entities("x" + text, 1)
        assert (named.record.id, named.score) == ("it", 1.0)
        if question_phrases(text):
            assert [scored.record.text for scored in store.search_chunks(text, 1)] == [clean_text(text)]

    def test_more_and_rarer_words_of_the_question_come_first(self, store: GraphStore) -> None:
        texts = ["common rare", "common common common", "common other " * 30 + "rare", "rare words here"]
        _texts(store, *texts, *["common filler"] * 5)
        found = _chunks(store, "common rare", k=3)
        assert found[0] == texts[0]
        assert set(found) == {texts[0], texts[2], texts[3]}
        assert len(_chunks(store, "common", k=4)) == 4
        assert _chunks(store, "common", k=0) == []

    def test_equally_good_chunks_are_ordered_by_id(self, store: GraphStore) -> None:
        _texts(store, *["same words"] * 5)
        assert [s.record.id for s in store.search_chunks("same", 3)] == ["d0/0", "d1/0", "d2/0"]

    def test_the_same_name_comes_first_however_it_is_written(self, store: GraphStore) -> None:
        _named(store, "Marie Curie", "Marie Curie University", "Curie", "Marie", "Pierre Curie", "Zürich", "AT&T", "C", "C++")
        assert _entities(store, "marie CURIE!")[:2] == ["Marie Curie", "Marie Curie University"]
        assert _entities(store, "zurich") == ["Zürich"]
        assert _entities(store, "at&t") == ["AT&T"]
        assert _entities(store, "C++")[0] == "C++"
        assert _entities(store, "C")[0] == "C"
        assert _entities(store, "Curie")[0] == "Curie"
        scores = [scored.score for scored in store.search_entities("Marie Curie", 10)]
        assert scores[0] == 1
        assert all(0 < score <= 1 for score in scores)

    def test_every_word_of_a_mention_counts(self, store: GraphStore) -> None:
        _named(store, "University of Oxford", "University of Cambridge", "Cambridge", "University", "Oxford Street")
        assert _entities(store, "University of Oxford")[0] == "University of Oxford"
        assert _entities(store, "the Oxford university")[0] == "University of Oxford"
        long = [f"John Smith {n} of somewhere far away" for n in range(3)]
        _named(store, "John", "Smith", "Smith Smith", *long)
        assert set(_entities(store, "John Smith")[:3]) == set(long)

    def test_paris_does_not_find_the_parisian_bakery(self, store: GraphStore) -> None:
        _named(store, "Parisian Bakery", "Paris", "Comparison")
        assert _entities(store, "Paris") == ["Paris"]

    def test_all_namesakes_are_found(self, store: GraphStore) -> None:
        graph = document("d", Says("x", [("Mercury", "planet", 0.9), ("Mercury", "element", 0.9), ("Mercury Records", "o", 0.5)]))
        mentions = (graph.mentions[0], replace(graph.mentions[1], entity_id="element"), graph.mentions[2])
        store.replace_documents([replace(graph, mentions=mentions)])
        assert [(s.record.id, s.score) for s in store.search_entities("mercury", 2)] == [("e-mercury", 1.0), ("element", 1.0)]

    def test_names_in_scripts_without_blanks_are_no_bags_of_characters(self, store: GraphStore) -> None:
        _named(store, "李明", "李强", "清华大学", "北京大学", "北京", "東京タワー", "삼성전자")
        assert _entities(store, "李明") == ["李明"]
        assert _entities(store, "清华大学的")[0] == "清华大学"
        assert _entities(store, "北京大学")[0] == "北京大学"
        assert _entities(store, "東京タワー")[0] == "東京タワー"
        assert _entities(store, "삼성전자는")[0] == "삼성전자"
        assert _entities(store, "明李") == []

    def test_search_follows_what_is_written(self, store: GraphStore) -> None:
        store.replace_documents([pair("d1", "Ana Holm", "hired", "Bo"), pair("d2", "Ana Holm", "met", "Cy")])
        assert _entities(store, "holm") == ["Ana Holm"]
        assert set(_chunks(store, "Ana")) == {"Ana Holm hired Bo", "Ana Holm met Cy"}
        store.replace_documents([pair("d1", "Di", "left", "Bo")])
        assert _chunks(store, "Holm") == ["Ana Holm met Cy"]
        store.delete_documents(["d2"])
        assert _entities(store, "holm") == []
        assert _chunks(store, "holm") == []
        assert _entities(store, "DI") == ["Di"]

    def test_an_entity_that_is_called_otherwise_is_found_by_its_new_name(self, store: GraphStore) -> None:
        def says(id_: Any, *surfaces: Any) -> Any:
            graph = document(id_, Says("x", [(surface, "person", 0.5, {"search_text": "mine"}) for surface in surfaces]))
            return replace(graph, mentions=tuple(replace(m, entity_id="her", key="her") for m in graph.mentions))

        store.replace_documents([says("a", "Maria", "Maria")])
        store.replace_documents([says("b", "Zoë Müller", "Zoë Müller", "Zoë Müller")])
        assert _entities(store, "Muller") == ["Zoë Müller"]
        assert _entities(store, "Maria") == []
        store.replace_documents([says("b", "Zoë Müller")])
        assert _entities(store, "Maria") == ["Maria"]
        assert _entities(store, "zoe") == []
        assert store.find_entities(ids=["her"])[0].properties == {"search_text": "mine"}
        store.delete_documents(["a"])
        assert _entities(store, "zoe") == ["Zoë Müller"]

    @pytest.mark.parametrize("spellings", SPELLINGS)
    def test_each_spelling_of_a_word_finds_the_other_in_texts_and_names(self, store: GraphStore, spellings: Any) -> None:
        one, other = spellings
        store.replace_documents(
            [
                document("one", Says(f"It is about {one}.", [(one, "thing", 0.5)])),
                document("other", Says(f"It is about {other}.", [(other, "thing", 0.5)])),
                document("neither", Says("It is about kites.", [("kites", "thing", 0.5)])),
            ]
        )
        for question, its_own, the_other in ((one, one, other), (other, other, one)):
            assert set(_chunks(store, question)) == {f"It is about {its_own}.", f"It is about {the_other}."}
            assert set(_entities(store, question)) == {its_own, the_other}
        if one == "e-mail":
            assert (_entities(store, one)[0], _entities(store, other)[0]) == (one, other)
