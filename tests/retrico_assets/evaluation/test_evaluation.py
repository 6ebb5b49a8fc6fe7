"""Measures of retrieval: figures computed by hand, and a small world."""

import json

import pytest

from resources.errors import SettingsError
from retrico_assets.evaluation.assets import ways_to_measure
from retrico_assets.evaluation.measure import Way, measure
from retrico_assets.evaluation.metrics import all_at, recall_at
from retrico_assets.evaluation.questions import GoldQuestion, read_questions
from retrico_assets.query.session import QuerySession
from tests.support.query_world import small_world


def test_recall_counts_the_expected_documents_among_the_first():
    ranked = ["a", "b", "c", "d"]
    assert recall_at(ranked, {"b", "d"}, 2) == 0.5
    assert recall_at(ranked, {"b", "d"}, 4) == 1
    assert recall_at([], {"b"}, 5) == 0
    assert (all_at(ranked, {"a", "b"}, 2), all_at(ranked, {"a", "c"}, 2)) == (1, 0)


def test_ways_are_scored_and_errors_are_counted(tmp_path):
    world = small_world(tmp_path)
    questions = [
        GoldQuestion("Where was Albert Einstein born?", frozenset(["einstein.txt"])),
        GoldQuestion("Who created C++?", frozenset(["languages.txt", "paris.txt"])),
    ]
    session = QuerySession(given={"graph": world.graph, "texts": world.texts})
    ways = [Way("keyword", ("keyword",)), Way("none", ("chunk_embedding",)), Way("both", ("keyword", "chunk_embedding"))]
    keyword, none, both = measure(questions, ways, session).scores
    assert (keyword.questions, keyword.recall_at_2, keyword.all_at_8) == (2, 75, 50)
    assert (none.recall_at_10, sum(none.errors.values())) == (0, 2)
    assert "chunk_embedding" in next(iter(none.errors))
    assert both.recall_at_2 == keyword.recall_at_2
    assert keyword.milliseconds > 0
    world.texts.close()


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("{", "is not JSON"),
        ('{"question": "Who?"}', "sources"),
        ('{"question": " ", "sources": ["a.txt"]}', "question"),
        ('{"question": "Who?", "sources": []}', "sources"),
        ('{"question": "Who?", "sources": [1]}', "must be a list of texts"),
        ("[]", "must have"),
        ("", "empty"),
    ],
)
def test_a_wrong_line_is_an_error_that_names_the_line(tmp_path, line, fault):
    file = tmp_path / "questions.jsonl"
    file.write_text(line)
    with pytest.raises(SettingsError, match=fault) as error:
        read_questions(file)
    assert str(file) in str(error.value)


def test_questions_keep_their_letters(tmp_path):
    file = tmp_path / "questions.jsonl"
    asked = "東京?\u2028\x85"  # which are line ends to str.splitlines, not to JSON Lines
    file.write_text(json.dumps({"question": asked, "sources": ["tokyo.txt"], "id": 3}, ensure_ascii=False) + "\r\n\n")
    assert read_questions(file) == [GoldQuestion(asked, frozenset(["tokyo.txt"]))]
    with pytest.raises(SettingsError, match="can't be read"):
        read_questions(tmp_path / "none.jsonl")


def test_a_repeated_set_of_strategies_is_measured_once():
    ways = ways_to_measure(["keyword", "entity"], [["keyword"], ["entity", "keyword"], ["entity", "keyword"]])
    assert [way.name for way in ways] == ["keyword", "entity", "entity + keyword"]
