"""The walk over the whole graph: its matrix against a dense one, what it finds, and when it is made anew."""

import numpy as np
import pytest

from resources.errors import NotBuiltError
from resources.records import Subgraph
from retrico_assets.embeddings.sync import RELATION_INDEX
from retrico_assets.graph import entity_graph_cache as module
from retrico_assets.graph.entity_graph import build_entity_graph, title_keys
from retrico_assets.graph.entity_graph_cache import current_entity_graph
from retrico_assets.query.question.linking import link
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers.base import make_retriever
from retrico_assets.query.sources import Sources
from tests.support.query_world import small_world


@pytest.fixture
def world(tmp_path):
    made = small_world(tmp_path)
    yield made
    made.texts.close()


def retrieve(world, text, k=10, cache=None, **options):
    question = link(Question(text), world.graph)
    return make_retriever("pagerank", Sources(**world.sources, cache=cache), options).retrieve(question, k)


def texts(found):
    return [one.record.text for one in found.chunks]


def test_each_node_passes_all_of_its_share_on_and_the_walk_is_that_of_the_definition(world):
    whole = build_entity_graph(world.graph, world.texts, "r")
    dense = whole.transition.toarray()
    joined = dense.sum(axis=0)
    assert np.allclose(joined[joined > 0], 1)
    seeds = np.zeros(len(dense))
    seeds[whole.entity_number[next(e.id for e in world.graph.entities() if e.label == "Ulm")]] = 1
    exact = np.linalg.solve(np.eye(len(dense)) - 0.5 * dense, 0.5 * seeds)  # p = d T p + (1 - d) s, solved directly
    assert np.allclose(whole.walk(seeds, 0.5, 40), exact, atol=1e-9)


def test_a_rare_entity_is_closer_to_its_chunk_than_a_frequent_one(world):
    whole = build_entity_graph(world.graph, world.texts, "r")
    number = {e.label: whole.entity_number[e.id] for e in world.graph.entities() if e.label in ("Germany", "Ulm")}
    chunk = whole.chunk_number["ulm.txt#0"]
    # Germany is named in one document, Ulm in three; both in this chunk, which is also titled Ulm (twice as close).
    assert whole.frequency[number["Germany"]] == 1
    assert whole.frequency[number["Ulm"]] == 3
    weight_of = whole.transition.toarray()[:, chunk]
    documents = len(world.texts.document_hashes())
    assert weight_of[number["Ulm"]] / weight_of[number["Germany"]] == pytest.approx(
        2 * np.log1p(documents / 3) / np.log1p(documents)
    )


def test_it_reaches_what_the_question_does_not_name(world):
    found = retrieve(world, "Which country is the birthplace of Albert Einstein in?")
    labels = [one.record.label for one in found.entities]
    assert labels[:2] == ["Einstein", "Albert Einstein"] or labels[0] == "Albert Einstein"
    assert "Germany" in labels
    assert any("Germany" in text for text in texts(found))


def test_the_chunk_that_says_it_comes_first(world):
    assert texts(retrieve(world, "Where was Albert Einstein born?"))[0] == "Albert Einstein was born in Ulm."


def test_a_title_that_no_text_mentions_is_a_name_too(world):
    found = retrieve(world, "What do you know of memory?")  # the title of memory.txt, in no text
    assert texts(found)[0] == "Ulm remembers Albert Einstein."


def test_a_title_counts_with_and_without_its_remark_in_brackets():
    assert title_keys("Algiers (film)") == ["algiers film", "algiers"]
    assert title_keys("The Straw Hat") == ["straw hat"]
    assert title_keys("(film)") == ["film"]
    assert title_keys("???") == []


def test_weights_of_zero_leave_a_kind_of_seed_out(world):
    nothing = retrieve(world, "Where was Albert Einstein born?", name_weight=0, triple_weight=0, chunk_weight=0, keyword_weight=0)
    assert nothing == Subgraph()
    similar = retrieve(world, "lamps", name_weight=0, triple_weight=0)
    assert texts(similar)[0] == "Straße AG sells lamps."


def test_triples_of_the_same_meaning_are_seeds(world):
    options = {"name_weight": 0, "chunk_weight": 0, "keyword_weight": 0}
    found = retrieve(world, "Dennis Ritchie created C", **options)
    assert {"Dennis Ritchie", "C"} == {one.record.label for one in found.entities[:2]}
    assert retrieve(world, "Dennis Ritchie created C", triple_score=1.0, triple_weight=0, **options) == Subgraph()


def test_the_matrix_is_kept_until_the_graph_changes(world, tmp_path):
    cache = tmp_path / "cache"
    first = current_entity_graph(world.graph, world.texts, cache)
    assert current_entity_graph(world.graph, world.texts, cache) is first
    world.graph.delete_documents(["doc:languages.txt"])
    second = current_entity_graph(world.graph, world.texts, cache)
    assert len(second.entity_ids) == len(first.entity_ids) - 4
    assert len(list(cache.iterdir())) == 1


def test_another_process_reads_the_matrix_from_disk_and_a_broken_file_is_made_again(world, tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    made = current_entity_graph(world.graph, world.texts, cache)
    monkeypatch.setattr(module, "_held", {})
    monkeypatch.setattr(module, "build_entity_graph", lambda *_: pytest.fail("it is on disk"))
    read = current_entity_graph(world.graph, world.texts, cache)
    assert (read.entity_ids, read.chunk_ids, read.names) == (made.entity_ids, made.chunk_ids, made.names)
    assert np.array_equal(read.ends, made.ends)
    assert (read.transition != made.transition).nnz == 0
    monkeypatch.undo()
    monkeypatch.setattr(module, "_held", {})
    (file,) = cache.iterdir()
    file.write_bytes(file.read_bytes()[:100])
    assert current_entity_graph(world.graph, world.texts, cache).entity_ids == made.entity_ids


def test_an_index_that_is_not_there_is_said_with_what_to_build(world):
    world.vectors.drop_index(RELATION_INDEX)
    with pytest.raises(NotBuiltError, match="relation_embeddings"):
        retrieve(world, "Where was Albert Einstein born?")


def test_an_empty_graph_finds_nothing(world):
    world.graph.delete_documents(list(world.texts.document_hashes()))
    world.texts.delete_documents(list(world.texts.document_hashes()))
    world.vectors.delete("chunk_embeddings", list(world.vectors.hashes("chunk_embeddings")))
    world.vectors.delete(RELATION_INDEX, list(world.vectors.hashes(RELATION_INDEX)))
    assert retrieve(world, "Where was Albert Einstein born?") == Subgraph()
