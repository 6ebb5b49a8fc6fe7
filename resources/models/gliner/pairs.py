"""Limits between how many candidate entities a relex model scores relations."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def best_candidates(core: Any, most: int) -> Iterator[None]:
    """While the context is open, the relex model ``core`` scores relations between the ``most`` best candidates of a window.

    gliner 0.2.29 scores every ordered pair of all candidates above the threshold, and has no setting for it: hundreds of
    candidates take tens of gigabytes. Its method ``represent_spans`` gives the candidates, so its result is cut here.
    """
    all_candidates = core.represent_spans

    def represent_spans(*arguments: Any, **options: Any) -> Any:
        return _keep_best(all_candidates(*arguments, **options), most, core.config.span_mode)

    core.represent_spans = represent_spans
    try:
        yield
    finally:
        del core.represent_spans  # the attribute of the instance: the class's method is visible again


def _keep_best(candidates: Any, most: int, span_mode: str) -> Any:
    import torch

    scores, embeddings, mask, spans, *rest = candidates
    if embeddings is None or embeddings.size(1) <= most:
        return candidates
    rows = torch.arange(spans.size(0), device=spans.device).unsqueeze(1)
    first, last = spans.unbind(-1)
    if span_mode == "token_level":
        best = (scores[rows, first, :, 0] + scores[rows, last, :, 1]).amax(-1)
    else:
        best = scores[rows, first, last - first].amax(-1)
    best = best.masked_fill(~mask.bool(), float("-inf"))
    kept = best.topk(most, dim=1).indices.sort(dim=1).values
    return (scores, embeddings[rows, kept], mask[rows, kept], spans[rows, kept], *rest)
