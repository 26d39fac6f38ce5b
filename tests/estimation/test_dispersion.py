"""Counts whose trials agree more than chance, against the distribution of SciPy."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

from irtjax.estimation.families import fit_families
from irtjax.responses.from_arrays import of_counts

RNG = np.random.default_rng(0)
TRIALS = RNG.integers(1, 9, (150, 8))
SUCCESSES = RNG.binomial(TRIALS, expit(RNG.normal(size=(150, 1)) * 1.2 - np.linspace(-1.5, 1.5, 8))).astype(float)
SUCCESSES[3, 2] = SUCCESSES[7, :4] = np.nan
IDS = [f"s{j}" for j in range(150)], [f"i{i}" for i in range(8)]


def test_trials_that_agree_more_than_chance_are_told():
    """Every trial answered four times alike has four times the variance, and no more information."""
    once, fourfold = (
        fit_families(of_counts(many * SUCCESSES, many * TRIALS, *IDS), "binomial", priors=None, standard_errors=False)
        for many in (1, 4)
    )
    assert once.details["dispersion"] == pytest.approx(1, abs=0.25)
    assert not any("counts" in note for note in once.notes())
    assert fourfold.details["dispersion"] > 2
    (note,) = [note for note in fourfold.notes() if "counts" in note]
    assert "standard errors are about" in note
    x = fourfold.ability[:, None] * fourfold.parameters.slope[:, 0] + fourfold.parameters.intercept
    moments = binom(4 * TRIALS, expit(x))
    several = np.isfinite(SUCCESSES)  # four trials and more
    squares = (4 * SUCCESSES - moments.mean())[several] ** 2
    assert fourfold.details["dispersion"] == pytest.approx(squares.sum() / moments.var()[several].sum(), rel=1e-6)
