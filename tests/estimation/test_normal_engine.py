"""Marginal maximum likelihood on long tests: against fixed nodes, against truth, and spread over devices."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from conftest import matrix
from scipy.special import expit
from simulation import by_difficulty, draw, simulate_model

import irtjax
from irtjax import FitWarning, InputError
from irtjax.estimation import driver, mml
from irtjax.estimation.driver import Problem
from irtjax.estimation.normal import engine as normal_posteriors
from irtjax.estimation.normal import iteration as normal_iteration
from irtjax.estimation.normal.engine import NormalPosteriors
from irtjax.estimation.priors import GUESSING_PRIOR, NormalPrior, Priors
from irtjax.estimation.specify import specify, start_items
from irtjax.kernels.sharding import mesh_of
from irtjax.responses import blocks
from irtjax.responses.matrix import counts

fit_kept = functools.partial(irtjax.fit, extremes="keep")
LONG = 300, 1203  # of most responses here: fits of one shape share compiled programs


@pytest.fixture(scope="module")
def long():
    return simulate_model("2pl", *LONG, seed=3, missing=0.1)


@pytest.fixture(scope="module")
def long_fit(long):
    return mml.fit_mml(long[0], "2pl", extremes="keep", tolerance=1e-4)


@pytest.mark.parametrize(
    ("model", "nats", "in_se", "se"),
    [
        pytest.param("rasch", 0.01, 0.002, 0.01, marks=pytest.mark.slow),
        ("1pl", 0.01, 0.002, 0.01),
        ("2pl", 0.01, 0.005, 0.03),
        pytest.param("3pl", 0.2, 0.03, 0.25, marks=pytest.mark.slow),
    ],
)
def test_equals_fine_nodes(model, nats, in_se, se):
    responses, _, _ = simulate_model("1pl" if model == "rasch" else model, 600, 300, seed=3, missing=0.1)
    options = {"extremes": "keep", "slope_prior": None, "guessing_prior": GUESSING_PRIOR}
    nodes = mml.fit_mml(responses, model, num_nodes=241, tolerance=1e-4, **options)
    normal = mml.fit_mml(responses, model, integration="normal", tolerance=0.01, **options)
    assert (nodes.details["posteriors"], normal.details["posteriors"]) == ("fixed nodes", "normal")
    assert normal.log_likelihood == pytest.approx(nodes.log_likelihood, abs=nats)
    for name in ("difficulty", "discrimination")[: 1 if model == "rasch" else 2]:
        error = nodes.item_columns[f"{name}_se"]
        assert (np.abs(normal.item_columns[name] - nodes.item_columns[name]) / error).max() < in_se, name
        ratio = normal.item_columns[f"{name}_se"] / error
        assert abs(np.median(ratio) - 1) < max(se / 3, 0.01), name
        assert np.abs(ratio - 1).max() < se, name
    np.testing.assert_allclose(normal.ability, nodes.ability, atol=0.01)
    np.testing.assert_allclose(normal.ability_se, nodes.ability_se, rtol=0.02)


@pytest.mark.slow
def test_the_posterior_width_decides():
    short, _, _ = simulate_model("2pl", 200, 60, seed=1)
    assert irtjax.fit(short, "2pl").details["posteriors"] == "fixed nodes"
    medium = irtjax.fit(simulate_model("2pl", 200, 250, seed=1)[0], "1pl", extremes="keep")
    assert medium.details["nodes"] == 121
    many, theta, _ = simulate_model("2pl", 100, 1400, seed=1)
    fit = fit_kept(many, "2pl")
    assert fit.details["posteriors"] == "normal"
    # fixed nodes snap every subject to one of them, and say that their errors are far smaller than they are
    with pytest.warns(FitWarning, match="snap to them"):
        snapped = fit_kept(many, "1pl", num_nodes=25)
    scale = theta.std()
    residual = (fit.ability - (theta - theta.mean()) / scale) / fit.ability_se
    assert 0.8 < np.sqrt((residual**2).mean()) < 1.4
    assert len(np.unique(np.round(snapped.ability, 2))) < 50 < 80 < len(np.unique(np.round(fit.ability, 2)))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the data hardly support asymptotes")
def test_few_subjects_of_a_long_3pl_test():
    responses, theta, _ = simulate_model("3pl", 50, 2000, seed=3)
    fit = fit_kept(responses, "3pl")
    assert fit.converged
    assert set(fit.details["priors"]) == {"discrimination", "logit_guessing"}, "none of intercepts"
    truth = (theta - theta.mean()) / theta.std()
    assert np.sqrt((((fit.ability - truth) / fit.ability_se) ** 2).mean()) < 1.4


def test_nodes_follow_posteriors_that_are_narrower_than_expected():
    rng = np.random.default_rng(0)
    theta = rng.normal(size=300)
    a, b = rng.uniform(3, 4, 220), rng.normal(0, 1, 220)
    responses = matrix(draw(rng, by_difficulty(theta, a, b)))
    fit = fit_kept(responses, "2pl")
    assert fit.details["nodes"] > 121
    assert fit.log_likelihood_error < 1e-5 * 300
    assert np.median(fit.ability_se) < 0.1
    assert np.corrcoef(fit.ability, theta)[0, 1] > 0.995


@pytest.mark.parametrize("shape", [pytest.param((1, 2), marks=pytest.mark.slow), (2, 2)])
def test_sharded_equals_unsharded(long, long_fit, shape):
    sharded = mml.fit_mml(long[0], "2pl", extremes="keep", tolerance=1e-4, mesh=mesh_of(*shape))
    assert sharded.converged
    np.testing.assert_allclose(sharded.ability, long_fit.ability, atol=1e-4)
    error = (sharded.difficulty - long_fit.difficulty) / long_fit.difficulty_se
    assert np.abs(error).max() < 2e-3
    assert sharded.log_likelihood == pytest.approx(long_fit.log_likelihood, abs=0.02)


@pytest.mark.parametrize(
    ("model", "dims"), [("2pl", 1), *(pytest.param(*case, marks=pytest.mark.slow) for case in (("3pl", 1), ("2pl", 2)))]
)
@pytest.mark.filterwarnings("ignore:the data hardly support asymptotes", "ignore:not converged after 10")
def test_chunks_equal_the_whole(monkeypatch, long, model, dims):
    monkeypatch.setattr(blocks, "BLOCK_RESPONSES", 2**16)
    responses = long[0] if model == "2pl" else simulate_model(model, *LONG, seed=3)[0]

    def fit(chunk_bytes, enough_items, **options):
        monkeypatch.setattr(blocks, "CHUNK_BYTES", chunk_bytes)
        monkeypatch.setattr(normal_posteriors, "ENOUGH_ITEMS", enough_items)
        return fit_kept(responses, model, dims=dims, tolerance=1e-3 if dims == 1 else None, **options)

    # the way is one and the same; after how many iterations it ends is rounding's to say, where it is long
    early_whole, early_chunked = (fit(size, 1000, max_iterations=10) for size in (2**30, 2**16))
    assert blocks.Chunks(responses.values).num_items > 1203, "a last chunk that is not full"
    assert early_whole.iterations == early_chunked.iterations
    equal(early_chunked, early_whole, in_se=5e-3)
    whole, chunked, few_first = fit(2**30, 1000), fit(2**16, 1000), fit(2**16, 1)
    assert few_first.iterations > chunked.iterations
    assert abs(whole.iterations - chunked.iterations) <= (1 if model == "2pl" else 0.1 * whole.iterations)
    equal(chunked, whole)
    if dims == 1:  # in two dimensions the last of the way is long, and where it ends depends on where it began
        equal(few_first, whole)


def equal(fit, whole, in_se=0.02):
    # sums of another order, in float32
    assert np.abs((fit.ability - whole.ability) / whole.ability_se).max() < in_se / 4
    np.testing.assert_allclose(fit.ability_se, whole.ability_se, rtol=1e-3)
    estimates = [name for name in whole.item_columns if not name.endswith("_se")]
    for name in estimates:
        se = np.where(whole.item_columns[f"{name}_se"] > 0, whole.item_columns[f"{name}_se"], 1)
        off = np.abs(fit.item_columns[name] - whole.item_columns[name]) / se
        # asymptotes of a few items lie on flat ridges, and stop anywhere there
        assert np.quantile(off, 0.99) < in_se, name
    assert fit.log_likelihood == pytest.approx(whole.log_likelihood, abs=0.1)


def test_padding_is_not_an_asymptote(monkeypatch, long):
    monkeypatch.setattr(blocks, "BLOCK_RESPONSES", 2**16)
    specification = specify(("2pl",) * LONG[1], priors=Priors(slope=NormalPrior(1.0, 1.0)))
    items = start_items(specification, *counts(long[0].values, axis=0))
    engine = NormalPosteriors()
    state = engine.init(Problem(long[0].values, items, specification))
    assert state.chunks.num_items > LONG[1]
    assert not state.asymptotes
    assert engine.revise(state) is None


def test_missing_equals_dropped(long, long_fit):
    values = long[0].values
    nobody = np.full((3, values.shape[1]), -1, np.int8)
    nobody[:, 0] = (1, 0, 1)
    padded = np.concatenate([values, nobody])
    fit = fit_kept(matrix(padded), "2pl", tolerance=1e-4)
    # three subjects who answered one item each hardly change the others
    np.testing.assert_allclose(fit.ability[:300] - fit.ability[:300].mean(), long_fit.ability, atol=0.05)
    assert (fit.ability_se[300:] > 0.5).all()


def test_permuting_subjects_and_items_permutes_the_estimates(long, long_fit):
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(300), rng.permutation(1203)
    fit = fit_kept(matrix(long[0].values[rows][:, columns]), "2pl", tolerance=1e-4)
    np.testing.assert_allclose(fit.ability, long_fit.ability[rows], atol=1e-3)
    error = (fit.difficulty - long_fit.difficulty[columns]) / long_fit.difficulty_se[columns]
    assert np.abs(error).max() < 0.01


def test_a_second_fit_compiles_nothing_and_holds_no_data(long):
    before = normal_iteration._item_steps._cache_size()
    other, _, _ = simulate_model("2pl", *LONG, seed=4)
    fit_kept(other, "2pl")
    fit_kept(long[0], "2pl")
    assert normal_iteration._item_steps._cache_size() <= before + 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "num_subjects", "num_items"), [("1pl", 400, 4000), ("2pl", 1000, 4000), ("2pl", 100, 10_000)]
)
def test_recovery_with_honest_standard_errors(model, num_subjects, num_items):
    responses, theta, truth = simulate_model(model, num_subjects, num_items, seed=5)
    fit = fit_kept(responses, model)
    assert fit.converged
    assert fit.iterations < 20, "items at the extremes are holding up the rest"
    items = fit.items()
    # against the truth on the scale of this sample: what is left is each item's own error
    mean, sd = theta.mean(), theta.std()
    varied = ((responses.values == 1).sum(0) > 2) & ((responses.values == 0).sum(0) > 2)
    for name, true in (("difficulty", (truth.b - mean) / sd), ("discrimination", truth.a * sd))[
        : 1 if model == "1pl" else 2
    ]:
        z = ((items[name] - true) / items[f"{name}_se"])[varied]
        assert 0.92 < (np.abs(z) < 1.96).mean() < 0.98, name
    residual = (fit.ability - (theta - mean) / sd) / fit.ability_se
    assert np.sqrt((residual**2).mean()) < (1.3 if num_subjects > 100 else 2)  # 100 answers say little of an item


@pytest.mark.slow
def test_anchors_put_a_new_population_on_the_old_scale():
    responses, theta, truth = simulate_model("2pl", 500, 1500, seed=6, mean=0.8, sd=1.4)
    anchors = truth.head(30).rename(columns={"a": "discrimination", "b": "difficulty"})
    fit = fit_kept(responses, "2pl", anchors=anchors[["item_id", "discrimination", "difficulty"]])
    items = fit.items()
    assert fit.iterations < 20, "a few anchors among many items need the scale moved as a whole"
    np.testing.assert_allclose(items.difficulty[:30], anchors.difficulty, rtol=1e-5)
    assert abs(fit.population.mean[0] - theta.mean()) < 0.1
    assert abs(fit.population.sd[0] - theta.std()) < 0.1
    z = ((items.difficulty - truth.b) / items.difficulty_se)[30:]
    assert 0.9 < (np.abs(z) < 1.96).mean() < 0.99


@pytest.mark.parametrize("dims", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_several_dimensions(dims):
    rng = np.random.default_rng(dims)
    theta = rng.normal(size=(800, dims))
    a = np.abs(rng.normal(0.8, 0.4, (2000, dims))) * (rng.random((2000, dims)) < 0.7)
    a[:dims], d = np.tril(a[:dims]), rng.normal(size=2000)
    a[np.arange(dims), np.arange(dims)] = 1.2
    responses = matrix(draw(rng, expit(theta @ a.T + d)))
    fit = fit_kept(responses, "2pl", dims=dims)
    assert fit.converged
    assert fit.details["posteriors"] == "normal"
    slope = fit.parameters.slope
    assert (np.triu(slope[:dims], 1) == 0).all()
    means = [fit.details["priors"][f"discrimination_{k + 1}"]["mean"] for k in range(dims)]
    np.testing.assert_allclose(means, slope.mean(axis=0), atol=0.02)  # in the frame of the estimates
    # up to the rotation, which one item fixes badly, slopes and abilities are those of the truth
    turn = np.linalg.lstsq(slope, a, rcond=None)[0]
    np.testing.assert_allclose(turn @ turn.T, np.eye(dims), atol=0.12)
    assert np.sqrt(((slope @ turn - a) ** 2).mean()) < 0.12
    for k in range(dims):
        assert np.corrcoef((fit.ability @ turn)[:, k], theta[:, k])[0, 1] > 0.98
    se = pd.DataFrame(fit.items())[[f"discrimination_{k + 1}_se" for k in range(dims)]].to_numpy()[dims:]
    z = (slope - a)[dims:] / se
    assert 0.6 < np.sqrt((z**2).mean()) < 1.6


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the data hardly support asymptotes")
def test_asymptotes_on_a_long_test():
    responses, theta, truth = simulate_model("3pl", 2000, 1000, seed=8)
    fit = fit_kept(responses, "3pl")
    assert fit.details["posteriors"] == "normal"
    assert fit.converged
    items = fit.items()
    for name, true in (("difficulty", truth.b), ("discrimination", truth.a), ("guessing", truth.c)):
        z = (items[name] - true) / items[f"{name}_se"]
        assert 0.9 < (np.abs(z) < 1.96).mean() <= 1, name
    assert np.corrcoef(fit.ability, theta)[0, 1] > 0.99


@pytest.mark.slow
def test_anchors_of_a_rasch_model_set_the_origin_only():
    responses, _, _ = simulate_model("1pl", 150, 700, seed=10)
    rasch = irtjax.fit(responses, "rasch", extremes="keep")
    anchors = pd.DataFrame({"item_id": responses.item_ids, "difficulty": rasch.difficulty + 0.5}).iloc[5:9]
    fit = fit_kept(responses, "rasch", anchors=anchors)
    nodes = fit_kept(responses, "rasch", anchors=anchors, num_nodes=161)
    assert (fit.details["posteriors"], nodes.details["posteriors"]) == ("normal", "fixed nodes")
    np.testing.assert_allclose(fit.population.mean, nodes.population.mean, atol=0.01)
    np.testing.assert_allclose(fit.population.sd, nodes.population.sd, atol=0.01)
    assert fit.log_likelihood == pytest.approx(nodes.log_likelihood, abs=0.1)
    ratio = fit.difficulty_se[20:] / nodes.difficulty_se[20:]
    assert abs(np.median(ratio) - 1) < 0.05


def test_short_tests_of_several_dimensions_keep_their_nodes():
    responses, _, _ = simulate_model("2pl", 150, 60, seed=11)
    fit = mml.fit_mml(responses, "2pl", extremes="keep", dims=2, max_iterations=3, standard_errors=False)
    assert fit.details["posteriors"] == "fixed nodes"


def test_rotations_and_priors_that_do_not_go_together_are_refused():
    responses, _, _ = simulate_model("2pl", 80, 200, seed=12)
    values = responses.values.copy()
    values[:, 1] = 1
    with pytest.raises(InputError, match="item 2 is one of the first 2, which fix the rotation"):
        fit_kept(matrix(values), "2pl", dims=2)
    with pytest.raises(InputError, match="dims 2 needs a slope prior of mean 0"):
        fit_kept(responses, "2pl", dims=2, slope_prior=NormalPrior(1.0, 0.5))


def test_an_item_that_separates_the_subjects_stays_finite():
    responses, theta, _ = simulate_model("2pl", *LONG, seed=9)
    values = responses.values.copy()
    values[:, 7] = theta > 0.3  # its slope has no maximum
    fit = fit_kept(matrix(values), "2pl")
    assert fit.converged
    assert 2 < fit.parameters.slope[7, 0] < 15
    assert abs(fit.difficulty[7] - (0.3 - theta.mean()) / theta.std()) < 0.3


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::irtjax.FitWarning")
def test_curvature_of_the_wrong_sign_leaves_posteriors_proper():
    """Without a prior some slopes of a 3PL run off, and answers that they make unlikely bend the log-likelihood up."""
    responses, _, _ = simulate_model("3pl", 250, 600, seed=12, missing=0.1)
    options = {"slope_prior": None, "guessing_prior": GUESSING_PRIOR, "max_iterations": 60}
    fit = fit_kept(responses, "3pl", integration="normal", **options)
    assert (fit.ability_se > 0).all()
    assert np.isfinite(fit.log_likelihood)


def test_a_fit_without_progress_ends(long):
    fit = mml.fit_mml(long[0], "2pl", extremes="keep", tolerance=0.0)
    assert not fit.converged
    assert driver.PATIENCE < fit.iterations < 300


def test_runs_in_float32_only(long_fit):
    assert not jax.config.jax_enable_x64
    assert long_fit.parameters.slope.dtype == np.float64  # as a result of any estimator


@pytest.mark.parametrize("num_items", [37, 10_240])
def test_the_best_candidate_is_the_same_compiled(num_items):
    """XLA's CPU compiler was seen to mix up the candidates of 10,240 items, in a `vmap` over them."""
    rng = np.random.default_rng(0)
    steps = np.concatenate([rng.normal(size=(num_items, 6, 3)), np.full((num_items, 6, 1), np.inf)], axis=2)
    steps, gains = jnp.asarray(steps, jnp.float32), jnp.asarray(rng.normal(size=(num_items, 6)), jnp.float32)
    specification = specify(("3pl",) * num_items, priors=Priors(slope=NormalPrior(1.0, 0.3)))
    distance = np.asarray(steps)[:, :, (0, 2)] - (1.0, -1.4)
    priors = -0.5 * (distance**2 / np.array([0.3, 1.0]) ** 2).sum(axis=2)
    best = (np.asarray(gains) + priors).argmax(axis=1)
    chosen = normal_iteration._best(steps, gains, jax.tree.map(jnp.asarray, specification))
    np.testing.assert_array_equal(chosen.intercept, np.asarray(steps)[np.arange(num_items), best, 1])
