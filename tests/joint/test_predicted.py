"""What networks say of difficulties, against plain formulas."""

import numpy as np
from scipy.stats import spearmanr

from irtjax.joint.predicted import against_responses, together
from irtjax.joint.train import Predictions


def test_intervals_count_both_errors_and_networks_add_up():
    rng = np.random.default_rng(0)
    difficulty, error = rng.normal(size=400), np.full(400, 0.3)
    predicted = difficulty + rng.normal(scale=np.hypot(0.3, 0.4), size=(2, 400))
    said = Predictions(np.zeros((2, 400), int), rng.random((2, 400)), predicted, np.full((2, 400), 0.4))
    found = against_responses(said, difficulty, error, predicts=True)
    assert (np.abs(found["coverage"] - 0.95) < 0.03).all()
    assert (np.abs(found["rmse"] - 0.5) < 0.05).all()
    np.testing.assert_allclose(found["spearman"][1], spearmanr(predicted[1], difficulty).statistic)
    assert list(against_responses(said, difficulty, error, predicts=False)) == ["spearman_doubt"]
    both = together(said, np.arange(400))
    np.testing.assert_allclose(both.predicted_sd**2, 0.16 + ((predicted[0] - predicted[1]) / 2) ** 2)
