"""M2 and its indices, against mirt and against the matrices written out."""

import itertools

import numpy as np
import pytest
from references import matrix, simulated
from scipy.linalg import block_diag

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


@pytest.mark.slow
def test_ninety_items_and_two_dimensions(oracle):
    with pytest.warns(irtjax.FitWarning, match="slope below 0"):
        everything = oracle.fit("5_all")
    assert overall_fit(everything).m2 == pytest.approx(28559.621, rel=1e-5)
    expected = oracle.table("m2_sim2d").set_index("model")
    for dims, row in ((1, "1F"), (2, "2F_exploratory")):
        found = overall_fit(oracle.fit("sim2d", dims=dims))
        assert found.degrees_of_freedom == expected.loc[row, "df"]
        assert found.m2 == pytest.approx(expected.loc[row, "M2"], rel=1e-5)


@pytest.mark.parametrize("forms", [[(0, 1, 2, 3)], [(0, 1, 2), (1, 2, 3), (0, 1, 3)]])
def test_it_is_what_the_matrices_say(forms):
    """Ξ and Δ written out over all response patterns, for a 3PL of four items, all asked or three of them."""
    values = simulated(0, np.array([1.0, 1.5, 0.8, 1.2]), np.array([0.5, 0.0, -0.5, 0.3]), 500)
    form_of = np.arange(500) % len(forms) * (np.arange(500) > 30)  # forms of 180, 160 and 160 subjects
    for number, items in enumerate(forms):
        values[np.ix_(form_of == number, np.setdiff1d(range(4), items))] = -1
    fit = irtjax.fit(matrix(values), "3pl", standard_errors=False)
    fit = fit.__class__(**{**fit.__dict__, "parameters": ItemParameters(*map(np.asarray, fit.parameters))})
    quadrature = rectangular()
    weights = np.exp(quadrature.log_weights)
    p, q = probabilities(fit.parameters, quadrature.nodes)
    slopes = derivatives(fit.parameters, quadrature.nodes)[..., :2]  # slope and intercept: a 2PL's parameters
    residuals, covariances, jacobians = [], [], []
    for number, chosen in enumerate(forms):
        answers = values[form_of == number][:, chosen]
        patterns = np.array(list(itertools.product((0, 1), repeat=len(chosen))))
        of_pattern = np.prod(np.where(patterns[None] == 1, p[:, None, chosen], q[:, None, chosen]), axis=2)
        probability = weights @ of_pattern
        of_margins = [(i,) for i in range(len(chosen))] + list(itertools.combinations(range(len(chosen)), 2))
        margins = np.stack([patterns[:, at].prod(axis=1) for at in of_margins])
        expected = margins @ probability
        covariances.append((margins * probability) @ margins.T - np.outer(expected, expected))
        jacobian = np.zeros((len(of_margins), 8))
        for row, at in enumerate(of_margins):
            items = [chosen[k] for k in at]
            for i in items:
                others = np.prod([p[:, j] for j in items if j != i], axis=0)
                by_item = weights @ (slopes[:, i] * np.reshape(others, (-1, 1)) * np.ones((61, 1)))
                jacobian[row, 2 * i : 2 * i + 2] = by_item
        observed = margins @ np.array([(answers == pattern).all(1).mean() for pattern in patterns])
        root = np.sqrt(len(answers))
        residuals.append(root * (observed - expected))
        jacobians.append(root * jacobian)
    residual, inverse, jacobian = (
        np.concatenate(residuals),
        np.linalg.inv(block_diag(*covariances)),
        np.vstack(jacobians),
    )
    middle = jacobian.T @ inverse @ jacobian
    projected = inverse - inverse @ jacobian @ np.linalg.solve(middle, jacobian.T @ inverse)
    found = overall_fit(fit, "2pl")
    assert found.m2 == pytest.approx(residual @ projected @ residual, rel=1e-6)
    assert found.degrees_of_freedom == len(residual) - 8


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [1, 3])
def test_a_true_model_is_not_rejected(blocks):
    p_values = []
    for seed in range(40):
        values = simulated(seed, np.full(8, 1.2), np.linspace(-1, 1, 8), 800)
        if blocks > 1:  # every subject is asked two blocks of three
            values[np.arange(800)[:, None] % blocks == np.arange(8) % blocks] = -1
        p_values.append(overall_fit(irtjax.fit(matrix(values), "2pl", standard_errors=False)).p_value)
    assert 0.3 < np.mean(p_values) < 0.7
    assert np.mean(np.array(p_values) < 0.05) < 0.15


def test_what_it_cannot_do():
    values = simulated(0, np.ones(3), np.zeros(3), 200)
    with pytest.raises(InputError, match="M2 of 3 items has no degrees of freedom"):
        overall_fit(irtjax.fit(matrix(values), "2pl"))
    values = values[:100]
    values[np.arange(100)[:, None] // 25 == np.arange(3)] = -1  # 25 subjects with each pattern
    with pytest.raises(InputError, match="M2 needs 30 subjects who answered the same items"):
        overall_fit(irtjax.fit(matrix(values), "1pl"))
