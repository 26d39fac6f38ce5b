"""M2 and its indices, against mirt and against the matrices written out."""

import itertools

import numpy as np
import pytest
from references import matrix, simulated

import irtjax
from irtjax import InputError
from irtjax.kernels.models import ItemParameters, derivatives, probabilities
from irtjax.kernels.quadrature import rectangular
from irtjax.scale.overall_fit import overall_fit

SETS = [f"{final}5_{label}" for final in ("", "final_") for label in ("contradiction", "entailment", "neutral")]


@pytest.mark.parametrize(("name", "model"), [*((name, "2PL") for name in (*SETS, "lsat7")), ("lsat7", "Rasch")])
def test_it_is_that_of_mirt(oracle, name, model):
    expected = oracle.table("m2").set_index(["set", "model"]).loc[(name, model)]
    found = overall_fit(oracle.fit(name, model.lower()))
    assert found.degrees_of_freedom == expected["df"]
    assert found.m2 == pytest.approx(expected["M2"], rel=1e-5)
    assert found.p_value == pytest.approx(expected["p"], rel=1e-3, abs=1e-12)
    for ours, theirs in (("rmsea", "RMSEA"), ("srmsr", "SRMSR"), ("tli", "TLI"), ("cfi", "CFI")):
        assert getattr(found, ours) == pytest.approx(expected[theirs], rel=1e-4)
    # mirt divides by J here, and by J - 1 for RMSEA itself
    assert found.rmsea_low == pytest.approx(expected["RMSEA_5"], rel=1e-3)
    assert found.rmsea_high == pytest.approx(expected["RMSEA_95"], rel=1e-3)


def test_ninety_items_and_two_dimensions(oracle):
    with pytest.warns(irtjax.FitWarning, match="negative slope"):
        everything = oracle.fit("5_all")
    assert overall_fit(everything).m2 == pytest.approx(28559.621, rel=1e-5)
    expected = oracle.table("m2_sim2d").set_index("model")
    for dims, row in ((1, "1F"), (2, "2F_exploratory")):
        found = overall_fit(oracle.fit("sim2d", dims=dims))
        assert found.degrees_of_freedom == expected.loc[row, "df"]
        assert found.m2 == pytest.approx(expected.loc[row, "M2"], rel=1e-5)


def test_it_is_what_the_matrices_say():
    """Ξ and Δ written out over all response patterns, for a 3PL of four items."""
    values = simulated(0, np.array([1.0, 1.5, 0.8, 1.2]), np.array([0.5, 0.0, -0.5, 0.3]), 500)
    fit = irtjax.fit(matrix(values), "3pl", standard_errors=False)
    fit = fit.__class__(**{**fit.__dict__, "parameters": ItemParameters(*map(np.asarray, fit.parameters))})
    quadrature = rectangular()
    weights = np.exp(quadrature.log_weights)
    p, q = probabilities(fit.parameters, quadrature.nodes)
    patterns = np.array(list(itertools.product((0, 1), repeat=4)))
    of_pattern = np.prod(np.where(patterns[None] == 1, p[:, None], q[:, None]), axis=2)
    probability = weights @ of_pattern
    pairs = list(itertools.combinations(range(4), 2))
    margins = np.stack([*(patterns[:, i] for i in range(4)), *(patterns[:, i] * patterns[:, j] for i, j in pairs)])
    expected = margins @ probability
    covariance = (margins * probability) @ margins.T - np.outer(expected, expected)
    slopes = derivatives(fit.parameters, quadrature.nodes)[..., :2]  # slope and intercept: a 2PL's parameters
    jacobian = np.zeros((10, 8))
    for row, items in enumerate([(i,) for i in range(4)] + pairs):
        for i in items:
            others = np.prod([p[:, j] for j in items if j != i], axis=0)
            jacobian[row, 2 * i : 2 * i + 2] = weights @ (slopes[:, i] * np.reshape(others, (-1, 1)) * np.ones((61, 1)))
    observed = margins @ np.array([(values == pattern).all(1).mean() for pattern in patterns])
    residual, inverse = observed - expected, np.linalg.inv(covariance)
    middle = jacobian.T @ inverse @ jacobian
    projected = inverse - inverse @ jacobian @ np.linalg.solve(middle, jacobian.T @ inverse)
    assert overall_fit(fit, "2pl").m2 == pytest.approx(500 * residual @ projected @ residual, rel=1e-6)


def test_a_true_model_is_not_rejected():
    p_values = []
    for seed in range(40):
        values = simulated(seed, np.full(8, 1.2), np.linspace(-1, 1, 8), 800)
        p_values.append(overall_fit(irtjax.fit(matrix(values), "2pl", standard_errors=False)).p_value)
    assert 0.3 < np.mean(p_values) < 0.7
    assert np.mean(np.array(p_values) < 0.05) < 0.15


def test_what_it_cannot_do():
    values = simulated(0, np.ones(3), np.zeros(3), 200)
    with pytest.raises(InputError, match="M2 of 3 items has no degrees of freedom"):
        overall_fit(irtjax.fit(matrix(values), "2pl"))
    values[0, 0] = -1
    with pytest.raises(InputError, match="M2 needs complete responses"):
        overall_fit(irtjax.fit(matrix(values), "1pl"))
