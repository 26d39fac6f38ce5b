"""Which start variational inference takes, on small and steep matrices whose optimum is known."""

import dataclasses
import functools

import jax
import numpy as np
import pytest
from conftest import matrix
from mean_field import mean_field_optimum
from numpyro import distributions as dist
from numpyro.infer import MCMC, NUTS
from simulation import simulate

import irtjax
from irtjax.estimation.driver import Outcome
from irtjax.estimation.mml import fit_mml
from irtjax.fits.status import Status
from irtjax.svi import choice
from irtjax.svi import start as svi_start
from irtjax.svi.fit import fit_svi
from irtjax.svi.model import Size, hierarchical, response_model

NAMED = ("mml", "proportions")
NOISE = 0.4  # nats: of two means over 800 pairs of draws, and what two runs to one optimum may end apart
TINY, SMALL = (5, 4), (12, 15)


def steep(shape, seed, slope=30.0):
    """Responses to items that nearly separate the subjects."""
    rng = np.random.default_rng(seed)
    theta, b = rng.normal(size=(shape[0], 1)), rng.normal(size=shape[1])
    return (rng.random(shape) < 1 / (1 + np.exp(-slope * (theta - b)))).astype(np.int8)


def matrices(shape, seeds=(100,)):
    """Steep, separable, with extreme items, and of answers by chance with an extreme subject."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        extreme, chance = steep(shape, seed + 2, 8.0), rng.integers(0, 2, shape, np.int8)
        extreme[:, 0], extreme[:, 1], chance[0] = 1, 0, 1
        yield from (steep(shape, seed), np.sort(np.sort(chance, 0), 1), extreme, chance)


DIVERGED = steep((5, 8), 1, 20.0)


def run_off(*arguments, **options):
    """An MML estimate whose abilities and difficulties run off together, as they may by plain maximum likelihood."""
    fit = fit_mml(*arguments, **options)
    return dataclasses.replace(
        fit,
        ability=30 * fit.ability,
        population=fit.population._replace(sd=30 * np.asarray(fit.population.sd)),
        parameters=fit.parameters._replace(intercept=30 * np.asarray(fit.parameters.intercept)),
    )


@pytest.fixture
def running_off(monkeypatch):
    monkeypatch.setattr(svi_start, "fit_mml", run_off)


@pytest.fixture(scope="module")
def diverged():
    """Fits of a matrix whose MML estimate diverged, by start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(svi_start, "fit_mml", run_off)
        return {start: fit_svi(matrix(DIVERGED), start=start) for start in ("best", *NAMED)}


@pytest.mark.parametrize(
    ("model", "shape", "seeds"),
    [
        pytest.param("1pl", TINY, (100,), marks=pytest.mark.slow),
        pytest.param("2pl", TINY, (100,), marks=pytest.mark.slow),
        pytest.param("1pl", SMALL, (100, 104, 108), marks=pytest.mark.slow),
        pytest.param("2pl", SMALL, (100, 104, 108), marks=pytest.mark.slow),
    ],
)
def test_no_start_is_better_than_the_default(model, shape, seeds):
    for values in matrices(shape, seeds):
        responses = matrix(values)
        default, *named = (fit_svi(responses, model, start=start) for start in ("best", *NAMED))
        assert default.details["elbo"] > max(one.details["elbo"] for one in named) - NOISE, (default.details, values)
        if model == "1pl":
            elbo = default.details["elbo_by_start"][default.details["start"]]
            assert abs(elbo - mean_field_optimum(values, "hierarchical")[-1]) < NOISE, (default.details, values)


@pytest.mark.slow
def test_a_start_that_diverged_does_not_win_by_its_name(diverged):
    default, by_mml = diverged["best"], diverged["mml"]
    ability, _, _, _, elbo = mean_field_optimum(DIVERGED, "hierarchical")
    assert default.details["start"] == "proportions"
    assert default.details["elbo"] == diverged["proportions"].details["elbo"]
    assert abs(default.details["elbo"] - elbo) < NOISE
    assert by_mml.details["elbo"] < elbo - NOISE
    assert np.abs(default.ability - (ability - ability.mean())).max() < 0.5
    assert default.converged


def test_a_fit_says_where_its_starts_disagree(running_off, monkeypatch, tmp_path):
    monkeypatch.setattr(choice, "APART", 0.2)
    default = fit_svi(matrix(DIVERGED))
    note = next(note for note in default.notes() if "the ELBO depends on where the fit began" in note)
    assert all(f"from {start}" in note for start in NAMED)
    assert "those of the start proportions" in note
    default.save(tmp_path / "fit")
    assert irtjax.load_fit(tmp_path / "fit") == default
    monkeypatch.setattr(svi_start, "fit_mml", fit_mml)
    agreeing = fit_svi(matrix(list(matrices((5, 8)))[3]))
    assert agreeing.details["starts_agree"]
    assert not any("ELBO" in note for note in agreeing.notes())


def test_the_same_seed_takes_the_same_start(diverged, running_off):
    again = fit_svi(matrix(DIVERGED))
    assert again.details == diverged["best"].details
    np.testing.assert_array_equal(again.ability, diverged["best"].ability)


@pytest.mark.parametrize(("values", "expected"), [(DIVERGED, "proportions"), (simulate(5, 8, seed=3)[0].values, "mml")])
def test_on_many_responses_the_elbos_of_the_starts_decide(values, expected, monkeypatch):
    monkeypatch.setattr(choice, "FEW", 0)
    if expected == "proportions":
        monkeypatch.setattr(svi_start, "fit_mml", run_off)
    default = fit_svi(matrix(values))
    assert default.details["start"] == expected
    assert "elbo_by_start" not in default.details
    # one run, from that start: nothing is run on
    assert default.details["elbo_trace"] == fit_svi(matrix(values), start=expected).details["elbo_trace"]


@pytest.mark.slow
def test_all_runs_and_looks_share_one_program():
    traced = []

    def narrow(model):
        traced.append(model)
        return hierarchical(model)._replace(ability=dist.Normal(0.0, 0.5))

    fit_svi(matrix(DIVERGED), start="proportions", priors=narrow)
    before = len(traced)
    fit_svi(matrix(DIVERGED), priors=narrow)
    assert len(traced) == before + 1, "only to ask for the hyperparameters"


def run_of(elbos, status=Status.CONVERGED):
    return choice.Run(None, None, Outcome(status, 1, 0.0), np.asarray(elbos, float))


def test_a_run_is_better_by_more_than_noise():
    noise = np.random.default_rng(0).normal(size=100)
    low, high, cut = run_of(noise), run_of(noise + 0.5), functools.partial(run_of, status=Status.OUT_OF_ITERATIONS)
    better = choice._better
    assert better(high, low)
    assert not better(low, high)
    assert not better(low, low)
    assert not better(run_of(0.5 + 9 * noise), low), "three standard errors of the difference are 2.4"
    for broken in (np.nan, -np.inf, np.inf):
        assert better(low, run_of(np.where(noise > 2, broken, noise)))
        assert not better(run_of(np.where(noise > 2, broken, noise)), low)
    assert better(low, cut(noise + 0.5)), "one that has not converged is not taken for half a nat"
    assert not better(cut(noise + 0.5), low)
    assert better(cut(noise + 1.5), low)


@pytest.mark.slow
def test_abilities_of_a_tiny_matrix_agree_with_mcmc():
    """Within half a posterior standard deviation of NUTS on the same model; before, they ran off by thirty."""
    values = steep(TINY, 1, 8.0)
    subjects, items = (Size(size, None, size) for size in TINY)
    chain = MCMC(
        NUTS(functools.partial(response_model, model="1pl", priors=hierarchical, subjects=subjects, items=items)),
        num_warmup=2000,
        num_samples=8000,
        progress_bar=False,
    )
    chain.run(jax.random.key(0), values)
    draws = np.asarray(chain.get_samples()["ability"], float)
    draws -= draws.mean(1, keepdims=True)
    fit = fit_svi(matrix(values))
    assert np.abs((fit.ability - draws.mean(0)) / draws.std(0)).max() < 0.5
