"""Items that everyone or no one answered right, on many simulated data sets: their order, and the likelihood."""

import itertools

import numpy as np
import pytest
from conftest import matrix
from scipy.special import expit

import irtjax
from irtjax import ResponseMatrix
from irtjax.estimation.mml import fit_mml
from irtjax.integration.prediction import log_likelihood_of_subjects

SHAPE = 30, 40
SETS = [(sd, slope, seed) for (sd, slope), seed in itertools.product([(0.3, 1.0), (1.0, 0.6), (1.5, 2.0)], range(3))]


def simulated(sd, slope, seed, shape=SHAPE, missing=0.0):
    """Answers to items of equal slopes, of which many are too easy or too hard for all."""
    rng = np.random.default_rng(seed)
    b = rng.normal(0, 2.5, shape[1])
    b[:2] = -30, 30
    values = (rng.random(shape) < expit(slope * (rng.normal(0, sd, (shape[0], 1)) - b))).astype(np.int8)
    values[rng.random(shape) < missing] = -1
    return matrix(values)


def without(responses, extreme):
    return ResponseMatrix(responses.values[:, ~extreme], responses.subject_ids, responses.item_ids[~extreme])


@pytest.fixture(scope="module", params=[pytest.param(None, marks=pytest.mark.slow), "auto"])
def fits(request):
    """Of each set: the responses, and the fits of the Rasch model and the 1PL."""
    found = []
    for one in SETS:
        responses = simulated(*one)
        rasch, one_pl = (fit_mml(responses, model, priors=request.param) for model in ("rasch", "1pl"))
        found.append((responses, rasch, one_pl))
    return found


def test_difficulty_falls_as_proportion_correct_rises(fits):
    for responses, *pair in fits:
        right, _ = responses.counts(axis=0)
        assert {0, SHAPE[0]} <= set(right)
        for fit in pair:
            levels = [fit.difficulty[right == number] for number in np.unique(right)]
            assert all(level.min() > following.max() for level, following in itertools.pairwise(levels))
            assert (fit.difficulty_se > 0).all()


def test_rasch_and_1pl_are_the_same_model(fits):
    for _, rasch, one_pl in fits:
        unit = float(rasch.population.sd[0])
        assert one_pl.parameters.slope[:, 0] == pytest.approx(np.full(SHAPE[1], unit), rel=1e-4)
        np.testing.assert_allclose(rasch.parameters.intercept, one_pl.parameters.intercept, atol=1e-4)
        np.testing.assert_allclose(rasch.ability, unit * one_pl.ability, atol=1e-4)
        assert rasch.log_likelihood == pytest.approx(one_pl.log_likelihood, abs=1e-4)
        assert rasch.without_extremes() == pytest.approx(one_pl.without_extremes(), abs=1e-4)
        assert rasch.num_parameters == one_pl.num_parameters


def test_the_likelihood_without_extremes_is_that_of_a_fit_without_them(fits):
    for responses, _, one_pl in fits[::4]:
        if one_pl.details["priors"]:  # then extreme items move the others
            exact = log_likelihood_of_subjects(
                one_pl.parameters.take(~one_pl.extreme),
                responses.values[:, ~one_pl.extreme],
                *one_pl.population,
            ).sum()
            assert one_pl.without_extremes() == (pytest.approx(exact, abs=1e-4), (~one_pl.extreme).sum() + 1)
            continue
        alone = fit_mml(without(responses, one_pl.extreme), "1pl", priors=None)
        assert one_pl.without_extremes() == (pytest.approx(alone.log_likelihood, abs=1e-4), alone.num_parameters)
        number = int(one_pl.extreme.sum())
        assert one_pl.num_parameters == alone.num_parameters + number
        # about 0.3 of an answer to each is missing to certainty
        assert -0.5 * number < one_pl.log_likelihood - alone.log_likelihood < -0.2 * number


def test_extreme_items_are_placed_as_if_a_fraction_of_an_answer_was_of_the_other_kind():
    responses = simulated(1.5, 2.0, 1)
    for model in ("rasch", "1pl", "2pl"):
        fit = fit_mml(responses, model, priors=None)
        nodes, weights = np.polynomial.hermite_e.hermegauss(31)
        abilities = fit.ability[:, None] + fit.ability_se[:, None] * nodes
        slope, intercept = fit.parameters.slope[:, 0], fit.parameters.intercept
        for item in np.flatnonzero(fit.extreme):
            p = expit(slope[item] * abilities + intercept[item]) @ weights / weights.sum()
            other = p.sum() if responses.values[0, item] == 0 else (1 - p).sum()
            assert other == pytest.approx(0.3, rel=1e-3)
        rest = ~fit.extreme
        assert (slope[fit.extreme] == slope[fit.extreme][0]).all()
        assert slope[fit.extreme][0] == pytest.approx(np.median(np.abs(slope[rest])))


@pytest.mark.slow
def test_the_test_of_slopes_does_not_depend_on_the_spelling_of_the_restriction():
    responses = simulated(0.3, 1.0, 5)
    rasch, one_pl, two_pl = (fit_mml(responses, model, priors=None) for model in ("rasch", "1pl", "2pl"))
    one, other = (irtjax.likelihood_ratio_test(fit, two_pl) for fit in (rasch, one_pl))
    assert one == pytest.approx(other, abs=1e-4)
    alone = [fit_mml(without(responses, rasch.extreme), model, priors=None) for model in ("1pl", "2pl")]
    assert one == pytest.approx(irtjax.likelihood_ratio_test(*alone), abs=1e-3)


@pytest.mark.slow
def test_extreme_items_of_few_answers_are_beyond_the_others_of_equal_slope():
    for seed in range(4):
        responses = simulated(1.0, 1.2, seed, missing=0.8)
        right, observed = responses.counts(axis=0)
        responses = ResponseMatrix(
            responses.values[:, observed > 0], responses.subject_ids, responses.item_ids[observed > 0]
        )
        responses = ResponseMatrix(
            responses.values[(responses.values >= 0).any(axis=1)],
            responses.subject_ids[(responses.values >= 0).any(axis=1)],
            responses.item_ids,
        )
        fit = fit_mml(responses, "1pl", priors=None)
        right, _ = responses.counts(axis=0)
        assert fit.difficulty[fit.extreme & (right == 0)].min() > fit.difficulty[~fit.extreme].max()
        assert fit.difficulty[fit.extreme & (right > 0)].max() < fit.difficulty[~fit.extreme].min()


@pytest.mark.parametrize("priors", [pytest.param("auto", marks=pytest.mark.slow), None])
def test_long_tests(priors):
    responses = simulated(1.0, 1.0, 3, shape=(60, 900))
    rasch, one_pl = (fit_mml(responses, model, priors=priors) for model in ("rasch", "1pl"))
    assert one_pl.details["posteriors"] == "normal"
    right, _ = responses.counts(axis=0)
    for fit in (rasch, one_pl):
        levels = [fit.difficulty[right == number] for number in np.unique(right)]
        # in float32, and at rest where no item moves by 0.01 standard errors
        assert all(level.mean() > following.mean() for level, following in itertools.pairwise(levels))
        assert levels[0].min() > max(level.max() for level in levels[1:])
        assert levels[-1].max() < min(level.min() for level in levels[:-1])
    assert rasch.log_likelihood == pytest.approx(one_pl.log_likelihood, abs=0.05)
    rest = without(responses, one_pl.extreme)
    log_likelihood, number = one_pl.without_extremes()
    assert number == rest.num_items + 1
    if one_pl.details["priors"]:
        of_rest = one_pl.parameters.take(~one_pl.extreme)
        expected = log_likelihood_of_subjects(of_rest, rest.values, *one_pl.population).sum()
    else:
        expected = fit_mml(rest, "1pl", priors=None).log_likelihood
    assert log_likelihood == pytest.approx(expected, abs=0.1)
    exact = log_likelihood_of_subjects(one_pl.parameters, responses.values, *one_pl.population).sum()
    assert one_pl.log_likelihood == pytest.approx(exact, abs=0.1)


def test_a_summary_does_not_count_what_was_not_estimated():
    responses = simulated(0.3, 1.0, 5)
    one_pl = fit_mml(responses, "1pl", priors=None)
    slope, error = one_pl.parameters.slope[0, 0], one_pl.item_columns["discrimination_se"][0]
    assert f"{slope:.2f} for all items, standard error {error:.2f}" in str(one_pl.summary())
    rasch = fit_mml(responses, "rasch", priors=None)
    assert "1.00 for all items (held)" in repr(rasch)
    two_pl = fit_mml(responses, "2pl", priors=None)
    estimated = two_pl.item_columns["discrimination"][~two_pl.extreme]
    assert f"median {np.median(estimated):.2f}" in repr(two_pl)
    number = int(two_pl.extreme.sum())
    assert (
        f"{two_pl.without_extremes()[0]:,.2f} with {2 * (SHAPE[1] - number)} parameters, without {number} extreme"
        in (repr(two_pl))
    )
    assert two_pl.record()["without_extremes"]["num_parameters"] == 2 * (SHAPE[1] - number)
