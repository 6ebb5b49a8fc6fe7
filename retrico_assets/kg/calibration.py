"""From a KG model's scores, which have no unit, to plausibility from 0 to 1."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Calibration:
    """plausibility = 1 / (1 + exp(-(scale x score + offset))), scale >= 0."""

    scale: float
    offset: float

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Plausibilities of raw scores, in their shape and order."""
        return 0.5 * (1 + np.tanh(0.5 * (self.scale * np.asarray(scores, dtype=np.float64) + self.offset)))


def calibrate(true: np.ndarray, corrupted: np.ndarray) -> Calibration:
    """Fit to scores of true triples and of corrupted ones, both counting the same: 0.5 means as likely the one as the other.

    Platt, "Probabilistic outputs for support vector machines" (1999), with his targets short of 0 and 1, which keep the fit
    finite where scores separate well; for KG models: Tabacof and Costabello, "Probability calibration for knowledge graph
    embedding models" (2020). A model that scores true triples no better than corrupted ones gets scale 0: it says 0.5 to all.
    """
    if not len(true) or not len(corrupted):
        return Calibration(0.0, 0.0)
    scores = np.concatenate([true, corrupted]).astype(np.float64)
    mean, spread = scores.mean(), scores.std()
    if not np.isfinite(spread) or spread <= 1e-12 * max(1.0, abs(mean)):
        return Calibration(0.0, 0.0)
    standard = (scores - mean) / spread
    target = np.r_[np.full(len(true), 1 - 1 / (len(true) + 2)), np.full(len(corrupted), 1 / (len(corrupted) + 2))]
    weight = np.r_[np.full(len(true), 0.5 / len(true)), np.full(len(corrupted), 0.5 / len(corrupted))]
    scale, offset = _logistic(standard, target, weight)
    return Calibration(float(scale / spread), float(offset - scale * mean / spread)) if scale > 0 else Calibration(0.0, 0.0)


def _logistic(x: np.ndarray, target: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Slope and offset of a weighted logistic regression with a trace of ridge, by Newton's method with halved steps."""
    ridge = 1e-6
    columns = np.column_stack([x, np.ones_like(x)])

    def loss(parameters: np.ndarray) -> float:
        z = columns @ parameters
        return float(weight @ (np.logaddexp(0, z) - target * z) + ridge * parameters @ parameters)

    parameters = np.zeros(2)
    best = loss(parameters)
    for _ in range(100):
        p = 0.5 * (1 + np.tanh(0.5 * (columns @ parameters)))
        gradient = columns.T @ (weight * (p - target)) + 2 * ridge * parameters
        hessian = (columns * (weight * p * (1 - p))[:, None]).T @ columns + 2 * ridge * np.eye(2)
        step = np.linalg.solve(hessian, gradient)
        size = 1.0
        while (found := loss(parameters - size * step)) > best and size > 1e-6:
            size /= 2
        if best - found < 1e-12:
            break
        parameters, best = parameters - size * step, found
    return float(parameters[0]), float(parameters[1])
