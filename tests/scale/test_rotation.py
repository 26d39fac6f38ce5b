"""Loadings and rotations, against mirt and GPArotation."""

import itertools

import numpy as np
import pytest

from irtjax.kernels.models import ItemParameters
from irtjax.scale.dimensionality import compare_factors
from irtjax.scale.rotation import communalities, loadings, oblimin, simple_target, target, varimax


def apart(found, expected):
    """Largest difference up to order and sign of the factors."""
    orders, signs = itertools.permutations(range(2)), list(itertools.product([1, -1], repeat=2))
    return min(
        np.abs(found[:, order] * sign - np.asarray(expected)).max() for order in map(list, orders) for sign in signs
    )


def test_a_communality_of_15_percent_is_a_slope_of_071():
    none = np.full(2, np.inf)
    items = ItemParameters(np.array([[0.715], [0.0]]), np.zeros(2), -none, none)
    np.testing.assert_allclose(communalities(items), [0.15, 0], atol=1e-4)


@pytest.mark.slow
def test_rotations_are_those_of_statsmodels():
    """Its private port of the authors' own code takes the same steps."""
    theirs = pytest.importorskip("statsmodels.multivariate.factor_rotation._gpa_rotation")
    rng = np.random.default_rng(3)
    simple = np.where(np.arange(24)[:, None] % 3 == np.arange(3), 0.7, 0.0) + rng.normal(0, 0.1, (24, 3))
    unrotated = simple @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
    wanted = np.where(np.abs(simple) < 0.3, 0.0, np.nan)
    for found, method, criterion in (
        (varimax(unrotated), "orthogonal", lambda L: theirs.orthomax_objective(L=L, gamma=1)),
        (oblimin(unrotated), "oblique", lambda L: theirs.oblimin_objective(L=L)),
        (
            target(unrotated, wanted),
            "oblique",
            lambda L: theirs.vgQ_partial_target(np.nan_to_num(wanted), np.isfinite(wanted), L=L),
        ),
    ):
        expected, _, turn, _ = theirs.GPA(
            unrotated @ np.linalg.svd(unrotated)[2].T, vgQ=criterion, rotation_method=method, max_tries=5000, tol=1e-8
        )
        sign = np.sign(expected.sum(axis=0))
        np.testing.assert_allclose(found.loadings, expected * sign, atol=1e-7)
        np.testing.assert_allclose(found.correlations, turn.T @ turn * np.outer(sign, sign), atol=1e-7)
        np.testing.assert_allclose(np.diag(found.correlations), 1)


def test_rotations_are_those_of_gparotation(oracle):
    expected = oracle.table("items_sim2d_exploratory")
    items = oracle.fit("sim2d", dims=2).parameters
    np.testing.assert_allclose(communalities(items), expected["h2"], atol=1e-4)
    assert apart(varimax(loadings(items)).loadings, expected[["varimax_1", "varimax_2"]]) < 5e-4
    rotated = oblimin(loadings(items))
    assert apart(rotated.loadings, expected[["oblimin_1", "oblimin_2"]]) < 5e-4
    assert rotated.correlations[0, 1] == pytest.approx(0.45483, abs=5e-4)
    # an oblique rotation changes neither what the factors explain nor what they share
    implied = rotated.loadings @ rotated.correlations @ rotated.loadings.T
    np.testing.assert_allclose(implied, loadings(items) @ loadings(items).T, atol=1e-8)


def test_a_target_of_the_true_zeros_finds_the_confirmatory_solution(oracle):
    items = oracle.fit("sim2d", dims=2).parameters
    wanted = np.full((40, 2), np.nan)
    wanted[:16, 1] = wanted[16:32, 0] = 0
    found = target(loadings(items), wanted)
    assert np.abs(found.loadings[np.isfinite(wanted)]).max() < 0.12
    assert found.correlations[0, 1] == pytest.approx(0.417, abs=0.03)  # the confirmatory fit's
    first = simple_target(oblimin(loadings(items)).loadings)
    assert np.isfinite(first[:32]).sum(axis=1).min() >= 1
    assert np.isnan(first[32:]).sum() >= 10


def test_two_factors_are_told_from_one(oracle):
    said: list[str] = []
    two = compare_factors(oracle.responses("sim2d"), "2pl", on_step=said.append)
    assert (said[0], {step.partition(",")[0] for step in said}) == ("one factor, step 1", {"one factor", "two factors"})
    assert two.num_factors == 2
    np.testing.assert_allclose(two.table["log_likelihood"], [-21230.66222, -20625.83230], atol=0.01)
    assert two.degrees_of_freedom == 39
    assert two.likelihood_ratio == pytest.approx(2 * (21230.66222 - 20625.83230), abs=0.02)
    one = compare_factors(oracle.responses("5_entailment"), "2pl")
    assert one.num_factors == 1
    np.testing.assert_allclose(one.table["log_likelihood"], [-6074.61365, -6025.73972], atol=0.01)
