"""Raw scores of a PyKEEN model for triples of numbers. They have no unit; larger is more plausible."""

from typing import Any

import numpy as np

_BATCH_SIZE = 4096


def raw_scores(model: Any, triples: np.ndarray, *, heads: bool = False) -> np.ndarray:
    """Scores (n,) of triples (n, 3), with ``heads`` on the scale by which heads are ranked.

    The scales differ only for models with inverse triples, which rank heads as tails of the inverse relation.
    """
    import torch

    model.eval()
    scores = [np.empty(0, np.float32)]
    with torch.inference_mode():
        for start in range(0, len(triples), _BATCH_SIZE):
            batch = torch.as_tensor(
                np.ascontiguousarray(triples[start : start + _BATCH_SIZE], dtype=np.int64), device=model.device
            )
            if heads and model.use_inverse_triples:
                inverted = model.relation_inverter.map(batch=batch[:, [2, 1, 0]], index=1, invert=True)
                batch_scores = model.score_hrt(inverted)
            else:
                batch_scores = model.predict_hrt(batch)
            scores.append(batch_scores.squeeze(-1).float().cpu().numpy())
    return np.concatenate(scores)


def raw_scores_of_all(model: Any, entity: int, relation: int, *, heads: bool) -> np.ndarray:
    """Scores (entities,) of every entity as the tail of (entity, relation), or with ``heads`` as the head of it."""
    import torch

    model.eval()
    with torch.inference_mode():
        pair = torch.tensor([[relation, entity] if heads else [entity, relation]], device=model.device)
        predictions = model.predict_h(pair) if heads else model.predict_t(pair)
    scores: np.ndarray = predictions.squeeze(0).float().cpu().numpy()
    return scores
