"""A strategy of another package: named as "module:Class", and a failure of its own when its result is wrong."""

import math
from dataclasses import replace

import pytest
from pydantic import Field

from resources.errors import RetrievalError, SettingsError
from resources.options import Options
from resources.records import Chunk, Entity, Relation, Scored, Subgraph
from retrico_assets.query.answer import answer
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers.base import Retriever, check_strategies, make_retriever
from retrico_assets.query.sources import Sources

QUESTION = "Where was Albert Einstein born?"
CHUNK = Chunk("c", "d", 0, "Text.", 0, 5)
ENTITY = Entity("e", "Ulm", "ulm", "location")
RELATION = Relation("r", "e", "knows", "e", 0.5, ())


class CustomOptions(Options):
    result: object = Field(default=Subgraph(), description="What it returns.")


class Custom(Retriever):
    """Returns what its option says."""

    name = "custom"
    needs = frozenset(("texts",))
    options = CustomOptions
    config: CustomOptions

    def search(self, question, k):
        return self.config.result


class Unneeded(Retriever):
    """Uses a source that it does not name."""

    name = "unneeded"

    def search(self, question, k):
        return Subgraph(chunks=tuple(self.texts.search(question.text, k)))


CUSTOM = f"{__name__}:Custom"

WRONG_RESULTS = [
    (None, "returned None. It must return a Subgraph"),
    ([CHUNK], "It must return a Subgraph"),
    (Subgraph(chunks=(Scored(replace(CHUNK, id=7), 1.0),)), "chunk 1 with id 7, which is not text"),
    (Subgraph(chunks=(Scored(CHUNK, 1.0), Scored(replace(CHUNK, id=None), 0.5))), "chunk 2 with id None, which is not text"),
    (Subgraph(chunks=(Scored(replace(CHUNK, text=None), 1.0),)), "chunk 1 with text None, which is not text"),
    (Subgraph(entities=(Scored(replace(ENTITY, id=""), 1.0),)), "entity 1 with an empty id"),
    (Subgraph(relations=(Scored(replace(RELATION, tail_id=None), 1.0),)), "relation 1 with tail_id None, which is not text"),
    (Subgraph(entities=(Scored(ENTITY, math.nan),)), "entity 'e' with the score nan, which is not a finite number"),
    (Subgraph(entities=(Scored(ENTITY, math.inf),)), "entity 'e' with the score inf"),
    (Subgraph(relations=(Scored(RELATION, None),)), "relation 'r' with the score None"),
    (Subgraph(chunks=(CHUNK,)), "as chunk 1, which is not a scored chunk"),
    (Subgraph(chunks=(Scored(ENTITY, 1.0),)), "as chunk 1, which is not a scored chunk"),
]


@pytest.mark.parametrize(("result", "fault"), WRONG_RESULTS, ids=[fault for _, fault in WRONG_RESULTS])
def test_a_wrong_result_is_refused_with_the_strategy_and_the_fault(world, result, fault):
    retriever = Custom(Sources(**world.sources), CustomOptions(result=result))
    with pytest.raises(RetrievalError) as raised:
        retriever.retrieve(Question(QUESTION), 5)
    assert str(raised.value).startswith("Strategy 'custom' returned ")
    assert fault in str(raised.value)


@pytest.mark.parametrize(("result", "fault"), WRONG_RESULTS, ids=[fault for _, fault in WRONG_RESULTS])
def test_a_wrong_result_fails_its_strategy_alone_and_the_others_answer(world, result, fault):
    options = {CUSTOM: {"result": result}}
    given = answer(QUESTION, **world.sources, strategies=[CUSTOM, "entity"], options=options)
    assert [failure.strategy for failure in given.failures] == [CUSTOM]
    assert fault in given.failures[0].error
    assert given.evidence.chunks[0].chunk.text == "Albert Einstein was born in Ulm."


def test_a_right_result_is_returned_as_it_is(world):
    result = Subgraph((Scored(ENTITY, 1.0),), (Scored(RELATION, 0.5),), (Scored(CHUNK, 1),))
    assert Custom(Sources(**world.sources), CustomOptions(result=result)).retrieve(Question(QUESTION), 5) is result


def test_a_custom_strategy_is_named_by_module_and_class_and_has_its_options_checked(world):
    assert check_strategies([CUSTOM, "entity", CUSTOM]) == (CUSTOM, "entity")
    assert isinstance(make_retriever(CUSTOM, Sources(**world.sources)), Custom)
    with pytest.raises(SettingsError, match=r"Custom\.resalt is an unknown key\. Known keys: result"):
        make_retriever(CUSTOM, Sources(**world.sources), {"resalt": 1})
    with pytest.raises(SettingsError, match="'custom' needs texts"):
        make_retriever(CUSTOM, Sources())


@pytest.mark.parametrize(
    "name", ["no.such.module:X", f"{__name__}:Missing", f"{__name__}:CustomOptions", "json:loads", ":X", "os:"]
)
def test_a_name_that_is_not_a_strategy_is_refused(name):
    with pytest.raises(SettingsError, match=r"can't be imported|is not a subclass"):
        check_strategies([name])


def test_a_source_that_is_not_in_the_needs_is_an_error_that_says_so():
    with pytest.raises(SettingsError, match=r"'unneeded' uses texts, which is missing\. Add texts to its needs"):
        Unneeded(Sources()).retrieve(Question(QUESTION), 5)
