"""Parameters in the terms of mirt: its formulas give the probabilities of the fit."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

import irtjax
from irtjax import InputError
from irtjax.fits.mirt_export import parameters, to_mirt_csv

THETA = np.linspace(-2, 2, 5)
PLACES = {"discrimination": 1.4, "threshold_1": -0.9, "threshold_2": 0.2, "threshold_3": 1.1, "threshold_4": np.nan}


def softmax(exponents):
    shares = np.exp(exponents)
    return shares / shares.sum(axis=0)


def test_formulas_of_mirt_give_the_same_probabilities():
    b = np.array([-0.9, 0.2, 1.1])[:, None]
    mirt = parameters("graded", PLACES)
    ours = 1 / (1 + np.exp(-1.4 * (THETA - b)))
    d = np.array([mirt["d1"], mirt["d2"], mirt["d3"]])[:, None]
    np.testing.assert_allclose(1 / (1 + np.exp(-mirt["a1"] * THETA - d)), ours, rtol=1e-12)
    assert set(mirt) == {"a1", "d1", "d2", "d3"}
    mirt = parameters("gpcm", PLACES)
    steps = np.concatenate([np.zeros((1, 5)), (1.4 * (THETA - b)).cumsum(axis=0)])
    d = np.array([mirt[f"d{k}"] for k in range(4)])[:, None]
    np.testing.assert_allclose(softmax(np.arange(4)[:, None] * mirt["a1"] * THETA + d), softmax(steps), rtol=1e-12)
    slopes, intercepts = np.array([-0.8, 0.3, 0.5]), np.array([0.1, 0.2, -0.3])
    row = {f"slope_{k}": s for k, s in enumerate(slopes)} | {f"intercept_{k}": c for k, c in enumerate(intercepts)}
    mirt = parameters("nominal", row)
    ak, d = (np.array([mirt[f"{name}{k}"] for k in range(3)])[:, None] for name in ("ak", "d"))
    ours = softmax(slopes[:, None] * THETA + intercepts[:, None])
    np.testing.assert_allclose(softmax(ak * mirt["a1"] * THETA + d), ours, rtol=1e-12)
    assert (mirt["ak0"], mirt["ak2"], mirt["d0"]) == (0, 2, 0)
    mirt = parameters("3pl", {"discrimination": 2.0, "difficulty": 0.5, "guessing": 0.2})
    assert mirt == {"a1": 2.0, "d": -1.0, "g": 0.2, "u": 1.0}
    assert parameters("graded", {"discrimination": 2.0, "threshold_1": 0.5}) == {"a1": 2.0, "d": -1.0}


def test_files_have_whole_numbers_and_a_row_per_parameter(tmp_path):
    rows = np.random.default_rng(0).integers(0, 2, (60, 3)).astype(float)
    rows[0, 1] = np.nan
    fit = irtjax.fit(rows, "rasch")
    to_mirt_csv(fit, tmp_path)
    assert (tmp_path / "responses.csv").read_text().splitlines()[1].split(",")[1] == "NA"
    responses = pd.read_csv(tmp_path / "responses.csv")
    np.testing.assert_array_equal(responses.to_numpy(float), rows)
    values = pd.read_csv(tmp_path / "values.csv")
    assert values.name.tolist() == ["a1", "d"] * 3 + ["COV_11"]
    np.testing.assert_allclose(values.value[1:6:2], -fit.difficulty)
    with pytest.raises(InputError, match="model binomial: mirt has rasch"):
        to_mirt_csv(dataclasses.replace(fit, details={"models": ["binomial"] * 3}), tmp_path)
