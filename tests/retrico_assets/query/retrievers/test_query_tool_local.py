"""What the tool strategy sends, against llama.cpp's own server: it reads the tools' schemas and the history as few others do."""

import pytest

from resources.texts.sqlite import SqliteTextStore
from resources.vectors.memory import MemoryVectorStore
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers.base import make_retriever
from retrico_assets.query.sources import Sources
from tests.support.llm_stub import chat_model, says, scripted_llm
from tests.support.local_llm import NEEDS_LOCAL_LLM, local_llm
from tests.support.query_world import WordEmbedder, empty_graph, fill

pytestmark = NEEDS_LOCAL_LLM


@pytest.fixture(scope="module")
def base_url():
    with local_llm(8192) as url:
        yield url


@pytest.fixture
def sent(tmp_path):
    """The requests of a question whose model made good and broken calls, until it was asked once more without tools."""
    broken = ['{"query": "Einstein"}', '{"query": "kites", "limit": ', '["kites"]', ""]
    made = [
        {"id": f"c{n}", "type": "function", "function": {"name": "search_chunks", "arguments": arguments}}
        for n, arguments in enumerate(broken)
    ]
    with (
        empty_graph("falkordb", tmp_path / "graph") as graph,
        SqliteTextStore(tmp_path / "texts.sqlite") as texts,
        scripted_llm(says(None, tool_calls=made, finish_reason="tool_calls")) as stub,
    ):
        world = fill(graph, texts, MemoryVectorStore(), WordEmbedder())
        llm = chat_model(stub.base_url, "scripted")
        retriever = make_retriever("tool", Sources(graph=world.graph, texts=world.texts, llm=llm), {"max_rounds": 2})
        retriever.retrieve(Question("Where was Albert Einstein born?"), 5)
        return stub.requests


def test_the_tools_and_a_history_of_broken_calls_are_taken_by_a_real_server(base_url, sent):
    llm = chat_model(base_url, "smollm2", timeout=300, max_retries=0)
    for request in sent:
        reply = llm.complete(request["messages"], tools=request.get("tools"), max_tokens=8)
        assert reply.finish_reason in ("stop", "length", "tool_calls")
        assert reply.usage.completion_tokens <= 8
