"""Strategy kg_scored with a model trained on the very graph that it asks."""

from contextlib import closing

import pytest

from resources.graph.memory import MemoryGraphStore
from resources.texts.sqlite import SqliteTextStore
from retrico_assets.kg import model_folder
from retrico_assets.kg.predict import complete
from retrico_assets.kg.score import KGModel, trained_model
from retrico_assets.kg.train import train_model
from retrico_assets.kg.triples import divide, read_graph
from retrico_assets.query.question.linking import link
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers.base import make_retriever
from retrico_assets.query.sources import Sources
from tests.support.kg_worlds import PLAN, UNSTATED, true_triples
from tests.support.query_world import facts

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """The world in a graph, and a model of it in a data folder."""
    data = tmp_path_factory.mktemp("data")
    graph = MemoryGraphStore()
    documents = facts(*true_triples())
    graph.replace_documents(documents)
    read = read_graph(graph)
    divided = divide(read.frame, seed=PLAN.seed)
    folder = data / model_folder.MODEL_FOLDER
    assert trained_model(data) is None
    with model_folder.training_lock(folder):
        train_model(divided.frame, PLAN, folder, revision=read.revision)
    with closing(SqliteTextStore(data / "texts.sqlite")) as texts:
        texts.put_documents([one.document for one in documents])
        texts.replace_chunks({one.document.id: one.chunks for one in documents})
        yield Sources(graph=graph, texts=texts, kg=trained_model(data))


def ask(sources, text, **options):
    found = make_retriever("kg_scored", sources, options).retrieve(link(Question(text), sources.graph), 10)
    names = {one.record.id: one.record.label for one in found.entities}
    return {(names[r.record.head_id], r.record.label, names[r.record.tail_id]): r.record for r in found.relations}


def test_stated_relations_are_scored_by_the_model(sources):
    found = ask(sources, "Person 6 works at?", predict_tails=False)
    relation = found["Person 6", "works at", "Firm 2"]
    assert relation.properties["score_source"] == "kg_model"
    assert relation.properties["kg_score"] > 0.5
    assert "predicted" not in relation.properties


def test_what_the_graph_does_not_state_joins_the_subgraph_marked_as_predicted(sources):
    found = ask(sources, f"{UNSTATED[0]} lives in?")
    assert found[UNSTATED].properties["predicted"] is True
    assert found[UNSTATED].score > 0.8
    assert found[UNSTATED].chunk_ids == ()
    assert [triple for triple, relation in found.items() if relation.properties.get("predicted")] == [UNSTATED]


def test_what_came_after_the_training_keeps_its_own_score_and_the_model_is_older_than_the_graph(sources):
    graph, model = sources.graph, sources.kg
    assert isinstance(model, KGModel)
    assert not model.stale_against(graph.revision())
    graph.replace_documents(facts(("Newcomer", "works at", "Firm 2"), UNSTATED, first=1000))
    assert model.stale_against(graph.revision())
    relation = ask(sources, "Newcomer works at?")["Newcomer", "works at", "Firm 2"]
    assert relation.properties["score_source"] == "graph"
    assert relation.score == 0.8
    newcomer = next(entity.id for entity in graph.entities() if entity.label == "Newcomer")
    assert model.unknown([newcomer]) == [newcomer]
    old, unscored = model.caveats(graph.revision(), {entity.id: entity.label for entity in graph.entities()})
    assert "older than the graph" in old
    assert unscored.endswith(": Newcomer.")
    # what the graph has come to state is no prediction any more
    assert UNSTATED[2] not in [one.tail for one in complete(model, "lives in", head="Person 5", graph=graph)]
    assert UNSTATED[2] in [one.tail for one in complete(model, "lives in", head="Person 5")]
    assert complete(model, "lives in", head="Person 5", tail="City 1", graph=graph)[0].stated
