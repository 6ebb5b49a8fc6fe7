"""Strategy "entity": its options, and what the sureness of a link does."""

from datetime import date

import pytest

from resources.errors import SettingsError
from resources.texts.sqlite import SqliteTextStore
from resources.vectors.memory import MemoryVectorStore
from retrico_assets.query.question.linking import link
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers.base import check_options, make_retriever
from retrico_assets.query.sources import Sources
from tests.support.query_world import WordEmbedder, empty_graph, facts, fill

CAREER = facts(
    ("Ada Byron", "worked at", "Acme", "1990-01-15", "1995-06-30"),
    ("Ada Byron", "worked at", "Bolt Ltd", "2000-03-01", ""),
    ("Ada Byron", "lives in", "Delft"),
    ("Acme", "merged with", "Corex", "1993", "1993"),
    ("Ben Byron", "worked at", "Acme", "1991", "1992"),
    ("Delft", "lies in", "Holland"),
)


@pytest.fixture(scope="module", params=["memory", "falkordb"])
def career(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("career")
    with empty_graph(request.param, folder) as graph, SqliteTextStore(folder / "texts.sqlite") as texts:
        yield fill(graph, texts, MemoryVectorStore(), WordEmbedder(), CAREER)


def retrieve(world, text, k=10, **options):
    found = make_retriever("entity", Sources(**world.sources), options).retrieve(link(Question(text), world.graph), k)
    names = {one.record.id: one.record.label for one in found.entities}
    told = {f"{names[r.record.head_id]} {r.record.label} {names[r.record.tail_id]}": r.score for r in found.relations}
    return found, told


@pytest.mark.parametrize(
    ("window", "found"),
    [
        ({}, {"Acme", "Bolt Ltd", "Delft", "Corex", "Holland", "Ben Byron"}),
        ({"active_after": "1996"}, {"Bolt Ltd", "Delft", "Holland"}),
        ({"active_before": "1996"}, {"Acme", "Delft", "Corex", "Holland", "Ben Byron"}),
        ({"active_after": "1995-06-30", "active_before": "1999-12-31"}, {"Acme", "Delft", "Holland"}),
        ({"active_after": "1995-07"}, {"Bolt Ltd", "Delft", "Holland"}),
        ({"active_after": date(1996, 1, 1), "active_before": 1999}, {"Delft", "Holland"}),
    ],
)
def test_a_window_of_dates_is_kept_on_every_hop(career, window, found):  # C22
    assert {one.record.label for one in retrieve(career, "Tell me of Ada Byron", **window)[0].entities} - {"Ada Byron"} == found


@pytest.mark.parametrize(
    "wrong", ["1990s", "90", "2020-13", "2020-02-30", "2020-5", "", " 2020", "2020-01-01T00:00", "٢٠٢٠", [1]]
)
def test_a_malformed_date_is_refused_with_its_value_and_the_remedy(wrong):
    with pytest.raises(SettingsError, match=r"entity\.active_after") as raised:
        check_options("entity", {"active_after": wrong})
    if isinstance(wrong, str):
        assert f"{wrong!r} is no date; write it as 2020, 2020-05 or 2020-05-31" in str(raised.value)


def test_a_window_that_ends_before_it_begins_is_refused():
    with pytest.raises(SettingsError, match=r"entity: active_before \(2019\) is before active_after \(2020\)"):
        check_options("entity", {"active_after": "2020", "active_before": "2019"})


@pytest.mark.parametrize(("option", "value"), [("hops", -1), ("hops", 11), ("hops", "1]-(n) DETACH DELETE n //"), ("limit", 0)])
def test_numbers_out_of_range_name_the_option(option, value):
    with pytest.raises(SettingsError, match=f"entity.{option} is "):
        check_options("entity", {option: value})


def test_an_unknown_option_lists_the_known():
    with pytest.raises(SettingsError, match=r"entity\.hop is an unknown key\. Known keys: hops, active_after"):
        check_options("entity", {"hop": 1})


def test_the_limit_bounds_the_entities(career):
    assert len(retrieve(career, "Tell me of Ada Byron", limit=3)[0].entities) == 3


def test_an_entity_that_is_only_guessed_counts_less_and_so_does_what_is_around_it(career):
    found, told = retrieve(career, "What has Holland to do with Ben?", hops=1)
    scores = {one.record.label: one.score for one in found.entities}
    assert list(scores) == ["Holland", "Delft", "Ben Byron", "Acme"]
    assert scores == pytest.approx({"Holland": 1.0, "Delft": 0.5, "Ben Byron": 0.4, "Acme": 0.2})
    assert told["Delft lies in Holland"] / told["Ben Byron worked at Acme"] == pytest.approx(1 / 0.4)
    assert [one.record.text for one in found.chunks] == ["Delft lies in Holland.", "Ben Byron worked at Acme."]


def test_between_two_named_entities_the_surer_one_counts(career):
    found, told = retrieve(career, "Did Ben Byron know Ada?", hops=1)
    scores = {one.record.label: one.score for one in found.entities}
    assert scores["Ben Byron"] == 1.0
    assert scores["Acme"] == 0.5  # at one hop from both, the guess being the other
    assert scores["Bolt Ltd"] == pytest.approx(0.2)
    assert told["Ben Byron worked at Acme"] > told["Ada Byron worked at Bolt Ltd"]


def test_nothing_named_is_an_empty_result(career):
    assert retrieve(career, "Who is it?")[0].entities == ()
