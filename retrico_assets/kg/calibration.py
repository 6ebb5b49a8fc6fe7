"""From a KG model's scores, which have no unit, to plausibilities from 0 to 1."""

from dataclasses import dataclass

import numpy as np

_RIDGE = 1e-6


@dataclass(frozen=True)
class Calibration:
    """plausibility = 1 / (1 + exp(-(scale x score + offset))), with scale >= 0."""

    scale: float
    offset: float

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Plausibilities of raw scores, in their shape and order."""
        from scipy.special import expit

        plausibilities: np.ndarray = expit(self.scale * np.asarray(scores, dtype=np.float64) + self.offset)
        return plausibilities


UNINFORMATIVE = Calibration(0.0, 0.0)
"""Gives 0.5 for every score."""


def calibrate(true: np.ndarray, corrupted: np.ndarray) -> Calibration:
    """Fit a logistic curve to scores of true triples and of corrupted ones; both groups have the same weight.

    A plausibility of 0.5 means that a triple is as likely true as corrupted. A model that scores true triples no better than
    corrupted ones gets scale 0, and so 0.5 for everything.

    Platt, "Probabilistic outputs for support vector machines" (1999), with his targets short of 0 and 1, which keep the fit
    finite where the scores separate well. For KG models: Tabacof and Costabello, "Probability calibration for knowledge graph
    embedding models" (2020).
    """
    if not len(true) or not len(corrupted):
        return UNINFORMATIVE
    scores = np.concatenate([true, corrupted]).astype(np.float64)
    mean, spread = scores.mean(), scores.std()
    if not np.isfinite(spread) or spread <= 1e-12 * max(1.0, abs(mean)):
        return UNINFORMATIVE
    targets = np.concatenate([np.full(len(true), 1 - 1 / (len(true) + 2)), np.full(len(corrupted), 1 / (len(corrupted) + 2))])
    weights = np.concatenate([np.full(len(true), 0.5 / len(true)), np.full(len(corrupted), 0.5 / len(corrupted))])
    scale, offset = _logistic_regression((scores - mean) / spread, targets, weights)
    if scale <= 0:
        return UNINFORMATIVE
    return Calibration(float(scale / spread), float(offset - scale * mean / spread))


def _logistic_regression(x: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Slope and offset of a weighted logistic regression of one variable, with a trace of ridge."""
    from scipy.optimize import minimize
    from scipy.special import expit

    def loss_and_gradient(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        slope, offset = parameters
        z = slope * x + offset
        loss = weights @ (np.logaddexp(0, z) - targets * z) + _RIDGE * parameters @ parameters
        residuals = weights * (expit(z) - targets)
        gradient = np.array([residuals @ x, residuals.sum()]) + 2 * _RIDGE * parameters
        return float(loss), gradient

    fit = minimize(loss_and_gradient, np.zeros(2), jac=True, method="BFGS", options={"gtol": 1e-9})
    return float(fit.x[0]), float(fit.x[1])
