"""What warnings tell a user to do can be done, and helps."""

import dataclasses
import inspect
import re
import warnings

import numpy as np
import pytest
from conftest import matrix
from scipy.special import expit
from simulation import simulate

import irtjax
from irtjax import FitWarning, NormalPrior
from irtjax.estimation import diagnostics
from irtjax.estimation.mml import fit_mml
from irtjax.fits.status import Status
from irtjax.svi.fit import fit_svi


def noise(num_subjects=80, num_items=12):
    return matrix(np.random.default_rng(0).integers(0, 2, (num_subjects, num_items)).astype(np.int8))


def steps(num_items=10):
    """Everyone who has an item right has all easier ones right."""
    return matrix((np.arange(num_items + 2)[:, None] > np.arange(1, num_items + 1)).astype(np.int8))


def warned(responses, **options):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        fit = irtjax.fit(responses, **options)
    return fit, [str(one.message) for one in found if issubclass(one.category, FitWarning)]


def below_guessing():
    responses, _, _ = simulate(300, 10, seed=1)
    values = np.array(responses.values)
    values[:, 0] = np.random.default_rng(0).random(300) < 0.05
    return matrix(values)


def flat_asymptotes():
    return simulate(150, 8, seed=2)[0]


PRIOR = {"slope_prior": (0, 2)}
CASES = [
    (steps, {"model": "rasch", "priors": None},
     "take the 1pl, the same model in other units, with a `slope_prior` such as (0, 2)",
     [{"model": "1pl", **PRIOR}]),
    (steps, {"model": "1pl", "priors": None}, "give a `slope_prior` such as (0, 2), or take more subjects", [PRIOR]),
    (steps, {"model": "2pl", "priors": None}, "give a `slope_prior` such as (0, 2), or take more subjects", [PRIOR]),
    (noise, {"model": "2pl", "dims": 2}, "give a `slope_prior` such as (0, 2), or take fewer dimensions",
     [PRIOR, {"dims": 1}]),
    (flat_asymptotes, {"max_iterations": 2}, "raise `max_iterations`", [{"max_iterations": 3000}]),
    (below_guessing, {"guessing": 0.25}, "fix a lower guessing there, or none",
     [{"guessing": [0.01] + [0.25] * 9}, {"guessing": [np.nan] + [0.25] * 9}]),
    (flat_asymptotes, {"model": "3pl", "priors": None}, "use the 2pl", [{"model": "2pl"}]),
]  # fmt: skip


FAST = 1, 4  # positions


@pytest.mark.parametrize(
    ("make", "options", "advice", "remedies"),
    [pytest.param(*case, marks=[] if at in FAST else [pytest.mark.slow]) for at, case in enumerate(CASES)],
)
def test_advice_is_followed(make, options, advice, remedies):
    responses = make()
    _, messages = warned(responses, **options)
    assert any(advice in message for message in messages), messages
    for remedy in remedies:
        fit, after = warned(responses, **options | remedy)
        assert fit.converged
        assert not any(advice in message for message in after)


def test_a_pair_is_a_prior():
    responses, _, _ = simulate(100, 8, seed=3)
    one, other = (irtjax.fit(responses, slope_prior=prior) for prior in ((0, 2), NormalPrior(0.0, 2.0)))
    np.testing.assert_array_equal(one.difficulty, other.difficulty)
    for bad in ((0,), (0, 1, 2), "flat", 3, ("a", "b")):
        with pytest.raises(irtjax.InputError, match=re.escape("expected mean and sd such as (0, 2), None or 'auto'")):
            irtjax.fit(responses, slope_prior=bad)
    with pytest.raises(irtjax.InputError, match="`priors` 'vague', expected 'auto', or None"):
        irtjax.fit(responses, priors="vague")


def test_what_is_said_of_signs_names_what_was_counted():
    rng = np.random.default_rng(0)
    theta = rng.normal(0, 2, (200, 1))
    sign = np.where(np.arange(12) < 6, 1.0, -1.0)
    values = (rng.random((200, 12)) < expit(theta * sign + rng.normal(0, 0.5, 12))).astype(np.int8)
    _, messages = warned(matrix(values), model="2pl")
    found = next(message for message in messages if "one dimension" in message)
    assert re.search(r"\d+ correlate negatively with the rest, beyond chance, and 6 have a slope below 0 by", found)
    assert found.endswith("or the 1pl")
    _, messages = warned(matrix(values), model="1pl")
    assert all("1pl" not in message for message in messages)


def test_one_person_on_anchors_has_an_error():
    responses, _, _ = simulate(300, 20, seed=4)
    anchors = irtjax.fit(responses, "2pl")
    fit, _ = warned(matrix(np.array(responses.values[:1])), model="2pl", anchors=anchors)
    a, b = anchors.item_columns["discrimination"], anchors.difficulty
    p = expit(a * (fit.ability[0] - b))
    assert fit.ability_se[0] == pytest.approx((a**2 * p * (1 - p)).sum() ** -0.5, rel=0.01)


BY_SVI = Status.CONVERGED, Status.STOPPED, Status.OUT_OF_ITERATIONS  # the ends that a search has


def troubled(fit, status):
    """A fit that ended so, of steep and falling items; by MML with too few nodes, which SVI has none of."""
    slope = np.where(np.arange(fit.responses.num_items) % 2, -1, 99.0)[:, None]
    return dataclasses.replace(
        fit,
        status=status,
        parameters=fit.parameters._replace(slope=slope),
        population=fit.population._replace(sd=np.ones(1)),
        log_likelihood_error=1e9 if fit.estimator == "mml" else fit.log_likelihood_error,
        item_columns=fit.item_columns | {"discrimination_se": np.full(len(slope), 99.0)},
        integration="nodes" if fit.estimator == "mml" else None,
        unbounded=np.arange(len(slope)) == 0,
        details={"nodes": 61} | fit.details | {"rounds": 3},
    )


@pytest.mark.parametrize(
    ("estimator", "estimate"), [("mml", fit_mml), pytest.param("svi", fit_svi, marks=pytest.mark.slow)]
)
def test_advice_names_options_of_the_estimator(estimator, estimate):
    responses, _, _ = simulate(150, 80)
    fit = irtjax.fit(responses, "1pl", estimator)
    names = [name for name, one in inspect.signature(estimate).parameters.items() if one.kind is one.KEYWORD_ONLY]
    advised = set()
    for status in BY_SVI if estimator == "svi" else Status:
        with pytest.warns(diagnostics.FitWarning) as caught:
            diagnostics.warn(troubled(fit, status))
        advised |= {name for one in caught for name in re.findall(r"`(\w+)`", str(one.message))}
    assert advised <= set(names), advised - set(names)
    assert {"mml": "max_iterations", "svi": "max_steps"}[estimator] in advised
