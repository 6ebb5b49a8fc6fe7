"""Scores without a unit become plausibilities."""

import numpy as np
import pytest

from retrico_assets.kg.calibration import calibrate


def test_scores_like_those_of_true_triples_are_above_the_middle_and_in_the_same_order():
    random = np.random.default_rng(0)
    fitted = calibrate(random.normal(-3, 1, 400), random.normal(-6, 1, 4000))
    assert fitted.scale > 0
    assert fitted(np.array([-4.5]))[0] == pytest.approx(0.5, abs=0.05)
    plausible = fitted(np.linspace(-9, 0, 50))
    assert (np.diff(plausible) > 0).all()
    assert plausible[0] < 0.05
    assert plausible[-1] > 0.95


def test_it_recovers_the_odds_that_scores_were_drawn_with():
    random = np.random.default_rng(1)
    scores = random.normal(0, 2, 20_000)
    true = random.random(20_000) < 1 / (1 + np.exp(-(1.5 * scores)))
    fitted = calibrate(scores[true], scores[~true])
    assert fitted.scale == pytest.approx(1.5, rel=0.05)
    assert fitted.offset == pytest.approx(0, abs=0.05)


def test_scores_that_separate_at_any_scale_give_finite_parameters():
    for scale in (1e-6, 1.0, 1e6):
        fitted = calibrate(np.array([5.0, 6.0]) * scale, np.array([-5.0, -6.0, -7.0]) * scale)
        assert np.isfinite([fitted.scale, fitted.offset]).all()
        assert fitted(np.array([5.5 * scale]))[0] > 0.6 > 0.4 > fitted(np.array([-6.0 * scale]))[0]
        assert fitted(np.array([1e300, -1e300])).tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("true", "corrupted"),
    [([1.0, 1.0], [1.0, 1.0]), ([], [1.0]), ([1.0], []), ([-2.0, -1.0], [3.0, 4.0]), ([float("nan")], [1.0])],
)
def test_scores_that_tell_nothing_apart_all_mean_the_middle(true, corrupted):
    fitted = calibrate(np.array(true), np.array(corrupted))
    assert fitted(np.array([-10.0, 0.0, 10.0])).tolist() == [0.5, 0.5, 0.5]
