"""Variational inference of counts, grades and shares: against marginal maximum likelihood, and against truth."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit

import irtjax
from irtjax import InputError
from irtjax.item_models.one_pass import Cells, log_likelihood
from irtjax.item_models.protocol import PredictorParameters
from irtjax.kernels.sharding import along_subjects, mesh_of
from irtjax.responses.from_arrays import of_counts, of_grades, of_shares
from irtjax.responses.scaled import ScaledResponses
from irtjax.responses.sparse import of_matrix
from irtjax.svi.family_fit import fit_svi_families
from irtjax.svi.family_model import ModelOfItems
from irtjax.svi.placing import answers_on_devices

SUBJECTS, ITEMS = 150, 40


def truth(items=ITEMS):
    rng = np.random.default_rng(3)
    theta, slope, b = rng.normal(size=SUBJECTS), np.exp(0.3 * rng.normal(size=items)), rng.normal(size=items)
    return rng, (theta - theta.mean()) / theta.std(), slope, b


def ids(items=ITEMS):
    return [f"s{j}" for j in range(SUBJECTS)], [f"q{i}" for i in range(items)]


@pytest.fixture(scope="module")
def counts():
    """Successes of 5 trials, a tenth of them missing, and the abilities."""
    rng, theta, slope, b = truth()
    drawn = rng.binomial(5, expit(slope * (theta[:, None] - b))).astype(float)
    drawn[rng.uniform(size=drawn.shape) < 0.1] = np.nan
    return of_counts(drawn, 5, *ids()), theta


def grades(own_slopes):
    """Grades 0 to 3 by the graded response model or, with slopes of 1, by partial credit; and the abilities."""
    rng, theta, slope, b = truth()
    places = b[:, None] + np.array([-1.0, 0.0, 1.0])
    if own_slopes:
        above = expit(slope[None, :, None] * (theta[:, None, None] - places[None]))
        drawn = (rng.random((SUBJECTS, ITEMS, 1)) < above).sum(axis=2)
    else:
        eta = np.cumsum(np.pad(theta[:, None, None] - places[None], ((0, 0), (0, 0), (1, 0))), axis=2)
        drawn = (eta + rng.gumbel(size=eta.shape)).argmax(axis=2)
    return of_grades(drawn.astype(float), *ids()), theta


def shares():
    """Shares by the Beta model, with exact ends, and the abilities."""
    rng, theta, slope, b = truth()
    p = expit(slope * (theta[:, None] - b))
    drawn = rng.beta(8 * p, 8 * (1 - p))
    return of_shares(np.where(drawn < 0.03, 0.0, np.where(drawn > 0.97, 1.0, drawn)), *ids()), theta


def agrees(fit, other, names, apart=0.4, narrower=0.65):
    """Holds estimates to those of another estimator: abilities within a quarter of an error, parameters within `apart`.

    Independent posteriors are narrower: `narrower` is the least ratio of median errors. The more a response tells of
    ability, the more the errors of an item are those of the scale, which all items share and independent ones lack.
    """
    assert fit.converged
    off = (fit.ability - other.ability) / other.ability_se
    assert np.sqrt((off**2).mean()) < 0.25
    assert np.median(fit.ability_se / other.ability_se) == pytest.approx(1.0, abs=0.1)
    for name in names:
        one, two = (each.item_columns[name] for each in (fit, other))
        error = other.item_columns[f"{name}_se"]
        assert np.sqrt(np.mean(((one - two) / error) ** 2)) < apart, name
        assert narrower < np.median(fit.item_columns[f"{name}_se"] / error) < 1.1, name


@pytest.mark.slow
def test_counts_whose_trials_agree_do_so_too():
    """Of 12 trials that correlate by 0.1 to 0.3; with precisions, and intervals that contain the abilities."""
    rng, theta, slope, b = truth()
    phi, p = np.exp(rng.normal(1.5, 0.5, ITEMS)), expit(slope * (theta[:, None] - b))
    drawn = rng.binomial(12, rng.beta(p * phi, (1 - p) * phi)).astype(float)
    drawn[rng.uniform(size=drawn.shape) < 0.1] = np.nan
    responses = of_counts(drawn, 12, *ids())
    fit, other = (irtjax.fit(responses, "beta_binomial", estimator) for estimator in ("svi", "mml"))
    agrees(fit, other, ["difficulty", "discrimination", "precision"])
    assert np.mean(np.abs(fit.ability - theta) < 1.96 * fit.ability_se) > 0.9
    assert fit.details["elbo"] < other.log_likelihood < fit.log_likelihood
    independent = irtjax.fit(responses, "binomial", "svi")
    assert np.mean(np.abs(independent.ability - theta) < 1.96 * independent.ability_se) < 0.9


@pytest.mark.slow
def test_counts_agree_with_marginal_maximum_likelihood(counts, tmp_path):
    responses, theta = counts
    fit, other = (irtjax.fit(responses, "binomial", estimator) for estimator in ("svi", "mml"))
    agrees(fit, other, ["difficulty", "discrimination"])
    assert np.mean(np.abs(fit.ability - theta) < 1.96 * fit.ability_se) > 0.88
    assert fit.details["elbo"] < other.log_likelihood < fit.log_likelihood
    assert fit.population.sd == pytest.approx(1.0)
    assert fit.ability.mean() == pytest.approx(0, abs=1e-9)
    assert repr(fit).startswith("binomial by svi of counts")
    assert f"{SUBJECTS} subjects × {ITEMS} items, converged" in repr(fit)
    fit.save(tmp_path)
    assert irtjax.load_fit(tmp_path) == fit
    assert fit.draws(7)["discrimination"].shape == (7, ITEMS)
    scored = irtjax.score(fit, responses)
    assert np.corrcoef(scored.ability, fit.ability)[0, 1] > 0.999


@pytest.mark.slow
@pytest.mark.parametrize("priors", ["vague", "hierarchical"])
def test_grades_agree_with_marginal_maximum_likelihood(priors):
    responses, theta = grades(own_slopes=True)
    fit, other = irtjax.fit(responses, "graded", "svi", priors=priors), irtjax.fit(responses, "graded")
    agrees(fit, other, ["discrimination", "threshold_1", "threshold_2", "threshold_3"], apart=0.7)
    assert np.mean(np.abs(fit.ability - theta) < 1.96 * fit.ability_se) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("model", ["pcm", "rsm"])
def test_slopes_of_one_leave_the_population_its_spread(model):
    responses, _ = grades(own_slopes=False)
    fit, other = irtjax.fit(responses, model, "svi"), irtjax.fit(responses, model)
    agrees(fit, other, ["difficulty"])
    assert (fit.item_columns["discrimination"] == 1).all()
    assert fit.population.sd == pytest.approx(np.asarray(other.population.sd), rel=0.05)


@pytest.mark.slow
def test_shares_agree_with_marginal_maximum_likelihood():
    responses, theta = shares()
    fit, other = irtjax.fit(responses, "ordered_beta", "svi"), irtjax.fit(responses, "ordered_beta")
    agrees(fit, other, ["difficulty", "discrimination", "precision"], apart=0.7, narrower=0.55)
    # ends that are cut off are not quite the model: intervals of both hold the truth less often
    covered, of_mml = (np.mean(np.abs(each.ability - theta) < 1.96 * each.ability_se) for each in (fit, other))
    assert covered > of_mml - 0.03


@pytest.mark.slow
def test_batches_lead_to_the_same_abilities():
    responses, theta = grades(own_slopes=True)
    fit = irtjax.fit(responses, "gpcm", "svi", batch_subjects=100, batch_items=20)
    assert np.corrcoef(fit.ability, theta)[0, 1] > 0.95


def some_of(responses, share=0.3):
    """The same with a share of the responses left out."""
    out = np.random.default_rng(0).uniform(size=responses.values.shape) < share
    own = responses.scales, responses.trials, responses.averaged
    return ScaledResponses(np.where(out, -1, responses.values), responses.subject_ids, responses.item_ids, *own)


OTHERS_OF = {
    "binomial": (1, 0),
    "pcm": (1, 0),  # of grades 0 and 1
    "graded": (3, 2),
    "gpcm": (3, 2),
    "nominal": (3, 6),
    "beta_binomial": (1, 1),
    "ordered_beta": (2, 3),
}


@pytest.mark.parametrize(
    "name", ["binomial", "pcm", *(pytest.param(x, marks=pytest.mark.slow) for x in list(OTHERS_OF)[2:])]
)
def test_the_likelihood_by_the_answer_is_that_of_the_matrix(name, counts):
    """With its gradients, on one device and on four, of which the last has two subjects fewer."""
    given = counts[0] if "binomial" in name else shares()[0] if name == "ordered_beta" else grades(True)[0]
    if name == "pcm":
        given = of_grades(np.minimum(given.values, 1).astype(float), *ids())
    responses, (per_item, num_others) = some_of(given), OTHERS_OF[name]
    rng, families = np.random.default_rng(1), ModelOfItems(name, per_item, num_others).families
    top = np.full(ITEMS, 3 if name in ("graded", "gpcm", "nominal") else 1)
    theta, own = rng.normal(size=SUBJECTS), (rng.uniform(0.4, 2, ITEMS), rng.normal(size=ITEMS))
    others = rng.normal(0, 0.5, (ITEMS, num_others))

    def value(theta, slope, intercept, others, cells, mesh=None):
        return log_likelihood(
            families, theta, PredictorParameters(slope[:, None], intercept, others, top), cells, mesh=mesh
        )

    program = jax.jit(jax.value_and_grad(value, argnums=(0, 1, 2, 3)), static_argnames="mesh")
    with jax.enable_x64(True):
        arrays = tuple(map(jnp.asarray, (*own, others)))
        trials = None if responses.trials is None else jnp.asarray(responses.trials)
        expected = program(jnp.asarray(theta), *arrays, Cells(jnp.asarray(responses.values), trials))
        for mesh in (None, along_subjects(mesh_of(2, 2))):
            blocks = answers_on_devices(of_matrix(responses), None, None, 0, mesh)
            cells = jax.tree.map(lambda leaf: leaf[0], blocks.answers)
            spread = jnp.pad(jnp.asarray(theta), (0, 0 if mesh is None else 2))
            found, (of_subjects, *of_items) = program(spread, *arrays, cells, mesh=mesh)
            assert not of_subjects[SUBJECTS:].any()
            both = (found, (of_subjects[:SUBJECTS], *of_items)), expected
            for mine, theirs in zip(*map(jax.tree.leaves, both), strict=True):
                # shares are held in float32
                np.testing.assert_allclose(mine, theirs, rtol=1e-5 if name == "ordered_beta" else 1e-10, atol=1e-8)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:not converged")
@pytest.mark.parametrize("model", ["graded", "rsm", "nominal", "beta_binomial", "ordered_beta"])
def test_fits_by_the_answer_are_those_of_the_matrix(model, counts):
    given = counts[0] if model == "beta_binomial" else shares()[0] if model == "ordered_beta" else grades(True)[0]
    responses = some_of(given, 0.2)  # as many answers as there must be for chunks of the length of those of the matrix
    fit = functools.partial(irtjax.fit, responses, model, "svi", max_steps=200)
    found, expected = fit(sparse=True), fit(sparse=False)
    assert found.details["num_answers"] == (responses.values >= 0).sum()
    assert found.iterations == expected.iterations
    same(found, expected)
    if model == "graded":
        same(fit(sparse=True, mesh=mesh_of(1, 4)), expected)


def same(found, expected):
    """Estimates, and the ELBO to rounding in float32."""
    np.testing.assert_allclose(found.details["elbo_trace"], expected.details["elbo_trace"], rtol=1e-5)
    np.testing.assert_allclose(found.log_likelihood, expected.log_likelihood, rtol=1e-5)
    pairs = [(one.ability, one.ability_se) for one in (found, expected)]
    for name in expected.item_columns:
        if f"{name}_se" in expected.item_columns and (expected.item_columns[f"{name}_se"] > 0).all():
            pairs += [(one.item_columns[name], one.item_columns[f"{name}_se"]) for one in (found, expected)]
    for (mine, of_mine), (theirs, of_theirs) in zip(pairs[::2], pairs[1::2], strict=True):
        assert np.nanmax(np.abs(mine - theirs) / of_theirs) < 5e-3
        np.testing.assert_allclose(of_mine, of_theirs, rtol=5e-3)


@pytest.mark.slow
@pytest.mark.parametrize("batch", [{"batch_subjects": 40}, {"batch_answers": 1200}])
def test_blocks_of_single_grades_lead_to_the_same_abilities(batch):
    responses = of_matrix(some_of(grades(own_slopes=True)[0]))
    found, expected = (fit_svi_families(responses, "graded", **options) for options in (batch, {}))
    error = (found.ability - expected.ability) / expected.ability_se
    assert np.sqrt((error**2).mean()) < 0.25
    assert abs(np.median(found.ability_se / expected.ability_se) - 1) < 0.05


def test_batches_of_single_grades_are_those_of_answers(counts):
    with pytest.raises(InputError, match="`batch_items` are not of single answers: take `batch_answers`"):
        irtjax.fit(of_matrix(counts[0]), "binomial", "svi", batch_items=5, sparse=True)
    with pytest.raises(InputError, match="`batch_answers` are of single answers: fit with `sparse=True`"):
        irtjax.fit(counts[0], "binomial", "svi", batch_answers=5, sparse=False)
