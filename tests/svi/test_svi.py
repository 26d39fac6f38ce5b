"""Variational inference against the exact optimum of its own objective, against truth, and against mirt."""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pandas as pd
import pytest
from conftest import matrix
from mean_field import mean_field_optimum
from numpyro import distributions as dist
from numpyro.infer import MCMC, NUTS
from scipy.optimize import minimize
from simulation import by_difficulty, draw, simulate

import irtjax
from irtjax import InputError
from irtjax.estimation import mml
from irtjax.estimation.diagnostics import FitWarning
from irtjax.kernels.sharding import mesh_of
from irtjax.svi import fit as svi
from irtjax.svi import guide, programs
from irtjax.svi import model as svi_model
from irtjax.svi import start as svi_start

fit = functools.partial(irtjax.fit, model="1pl", estimator="svi")
# of most responses here: fits of one shape share a compiled program
SHAPE = 150, 80
SHAPE_2PL = 150, 40


@pytest.mark.parametrize(
    ("priors", "shape", "missing"),
    [
        pytest.param("vague", SHAPE, 0.0, marks=pytest.mark.slow),
        ("vague", SHAPE, 0.3),
        ("hierarchical", SHAPE, 0.0),
        pytest.param("hierarchical", (12, 6), 0.0, marks=pytest.mark.slow),
    ],
)
def test_reaches_the_mean_field_optimum(priors, shape, missing):
    responses, _, _ = simulate(*shape, seed=1, missing=missing)
    right, observed = irtjax.responses.matrix.counts(responses.values, axis=0)
    if priors == "vague":
        assert ((right > 0) & (right < observed)).all(), "an extreme item has no useful optimum under vague priors"
    # standard deviations of a single run are off by up to 8% with six items: what is tested there is their mean
    results = [svi.fit_svi(responses, priors=priors, seed=seed) for seed in range(1 if shape == SHAPE else 3)]
    ability, ability_sd, difficulty, difficulty_sd, elbo = mean_field_optimum(responses.values, priors)
    origin = ability.mean()
    for name, expected, expected_sd in (
        ("ability", ability, ability_sd),
        ("difficulty", difficulty, difficulty_sd),
    ):
        for result in results:
            error = (getattr(result, name) - (expected - origin)) / expected_sd  # in posterior standard deviations
            assert np.sqrt((error**2).mean()) < 0.1
            assert np.abs(error).max() < 0.4
        sd = np.mean([getattr(result, f"{name}_se") for result in results], axis=0)
        assert abs(np.median(sd / expected_sd) - 1) < 0.03
        assert np.sqrt(((sd / expected_sd - 1) ** 2).mean()) < 0.06
    for result in results:
        assert result.converged
        assert abs(result.details["elbo"] - elbo) < 0.002 * abs(elbo) + 0.3


@pytest.mark.slow
@pytest.mark.parametrize("priors", svi.PRIORS)
def test_recovers_simulated_parameters_with_honest_intervals(priors):
    responses, theta, b = simulate(400, 500, seed=2)
    result = fit(responses, priors=priors)
    assert result.iterations < 1000, "hundreds of steps, not thousands"
    for estimate, se, truth in (
        (result.ability, result.ability_se, theta - theta.mean()),
        (result.difficulty, result.difficulty_se, b - theta.mean()),
    ):
        z = (estimate - truth) / se
        rmse = np.sqrt(((estimate - truth) ** 2).mean())
        assert 0.85 < rmse / se.mean() < 1.15
        assert 0.92 < (np.abs(z) < 1.96).mean() < 0.98


@pytest.mark.slow
def test_missing_equals_dropped():
    # two groups of subjects and items that never met: one fit of both must be the two fits of each
    one, two = (simulate(*SHAPE, seed=seed)[0].values for seed in (4, 5))
    unseen = np.full(SHAPE, -1, np.int8)
    with pytest.warns(FitWarning, match="no answer links 2 blocks"):
        both = fit(matrix(np.block([[one, unseen], [unseen, two]])), priors="vague")
    for at, values in enumerate((one, two)):
        alone = fit(matrix(values), priors="vague")
        rows, columns = (slice(size * at, size * (at + 1)) for size in SHAPE)
        origin = both.ability[rows].mean()
        error = (both.difficulty[columns] - origin - alone.difficulty) / alone.difficulty_se
        assert np.sqrt((error**2).mean()) < 0.2
        assert abs(np.median(both.difficulty_se[columns] / alone.difficulty_se) - 1) < 0.03


def test_permuting_subjects_and_items_permutes_the_estimates():
    responses, _, _ = simulate(*SHAPE, seed=5)
    rng = np.random.default_rng(0)
    rows, columns = (rng.permutation(size) for size in SHAPE)
    result = fit(responses)
    other = fit(matrix(responses.values[rows][:, columns]))
    error = (other.difficulty - result.difficulty[columns]) / result.difficulty_se[columns]
    assert np.sqrt((error**2).mean()) < 0.15  # other random draws, the same optimum


def test_same_seed_same_result_and_no_second_compilation():
    responses, _, _ = simulate(*SHAPE)
    first = fit(responses, seed=7)
    sizes = [svi_model.Size(size, None, size) for size in SHAPE]
    _, advance = programs.programs(programs.Settings("1pl", svi_model.hierarchical, *sizes))
    compiled = advance._cache_size()
    second = fit(responses, seed=7)
    np.testing.assert_array_equal(first.difficulty, second.difficulty)
    assert advance._cache_size() == compiled
    assert np.any(fit(responses, seed=8).difficulty != first.difficulty)


@pytest.mark.parametrize("priors", svi.PRIORS)
def test_items_and_subjects_at_the_extremes_stay_finite_and_ordered(priors):
    responses, _, _ = simulate(*SHAPE, seed=6)
    values = responses.values.copy()
    values[:, 0], values[:, 1] = 1, 0
    values[0], values[1] = 1, 0
    result = fit(matrix(values), priors=priors)
    assert np.isfinite([result.difficulty, result.difficulty_se]).all()
    assert result.difficulty.argmin() == 0
    assert result.difficulty.argmax() == 1
    assert result.ability.argmax() == 0
    assert result.ability.argmin() == 1


def test_origin_and_log_likelihood():
    responses, _, _ = simulate(*SHAPE)
    result = fit(responses)
    assert abs(result.ability.mean()) < 1e-9
    logit = result.ability[:, None] - result.difficulty[None, :]
    expected = np.where(responses.values == 1, logit, 0).sum() - np.logaddexp(0, logit).sum()
    np.testing.assert_allclose(result.log_likelihood, expected, rtol=1e-5)
    assert result.details["elbo"] < result.log_likelihood


def test_an_unfinished_fit_says_so():
    responses, _, _ = simulate(*SHAPE)
    with pytest.warns(FitWarning, match="not converged after 100 iterations"):
        result = fit(responses, max_steps=100)
    assert not result.converged
    assert result.iterations == 100


def test_bad_requests_are_named():
    responses, _, _ = simulate(10, 10)
    with pytest.raises(InputError, match="unknown priors 'flat', expected one of vague, hierarchical"):
        fit(responses, priors="flat")
    with pytest.raises(InputError, match="estimator svi fits the 1pl or the 2pl, not '3pl'"):
        fit(responses, model="3pl")
    with pytest.raises(InputError, match="unknown start 'zero', expected one of best, mml, proportions"):
        fit(responses, start="zero")
    with pytest.raises(InputError, match="`batch_items` 11, expected a whole number, 1 to 10"):
        fit(responses, batch_items=11)
    with pytest.raises(InputError, match="unknown estimator 'guess'"):
        fit(responses, estimator="guess")
    with pytest.raises(InputError, match="`max_steps` 0, expected a whole number, at least 1"):
        fit(responses, max_steps=0)
    with pytest.raises(InputError, match="subject 's0' has no responses"):
        fit(matrix(np.array([[-1, -1], [0, 1]])))


def test_result_files(tmp_path):
    responses, _, _ = simulate(*SHAPE, missing=0.1)
    result = fit(responses)
    result.save(tmp_path / "new" / "fit")
    items = pd.read_csv(tmp_path / "new" / "fit" / "items.csv")
    subjects = pd.read_csv(tmp_path / "new" / "fit" / "subjects.csv")
    summary = json.loads((tmp_path / "new" / "fit" / "fit.json").read_text())
    assert list(items) == ["item_id", "difficulty", "difficulty_se", "num_responses", "proportion_correct", "extreme"]
    assert list(subjects) == ["subject_id", "ability", "ability_se", "num_responses", "proportion_correct"]
    assert list(items.item_id) == list(responses.item_ids)
    np.testing.assert_allclose(items.difficulty, result.difficulty, rtol=1e-5)
    np.testing.assert_array_equal(items.num_responses, (responses.values >= 0).sum(0))
    required = (
        "model estimator log_likelihood elbo num_parameters aic bic sabic iterations converged seconds versions seed"
    )
    assert set(required.split()) <= set(summary)
    np.testing.assert_allclose(summary["aic"], 2 * 229 - 2 * result.log_likelihood)
    np.testing.assert_allclose(summary["bic"], 229 * np.log(150) - 2 * result.log_likelihood)
    np.testing.assert_allclose(summary["sabic"], 229 * np.log(152 / 24) - 2 * result.log_likelihood)


@pytest.mark.slow
@pytest.mark.parametrize("priors", svi.PRIORS)
def test_agrees_with_mirt_on_human_responses(shared, priors):
    responses = irtjax.read_responses(shared / "human_responses" / "snli_emnlp2016" / "irt_file_5_coded.csv")
    mirt = pd.read_csv(shared / "oracle" / "items_5_all_Rasch_wide.csv")
    assert list(mirt["item"]) == list(responses.item_ids)
    result = fit(responses, priors=priors)
    difference = result.difficulty - mirt.b.to_numpy()  # both have mean ability 0
    assert np.sqrt((difference**2).mean()) < 0.06


@pytest.mark.parametrize("start", ["mml", "proportions"])
def test_both_starts_lead_to_one_result(start):
    responses, _, _ = simulate(*SHAPE, seed=7)
    result = fit(responses, priors="vague", start=start)
    other = fit(responses, priors="vague", start="proportions", seed=1)
    assert result.converged
    error = (result.difficulty - other.difficulty) / other.difficulty_se
    assert np.sqrt((error**2).mean()) < 0.05


def simulate_2pl(num_subjects, num_items, seed=0):
    rng = np.random.default_rng(seed)
    theta, a, b = rng.normal(size=num_subjects), rng.lognormal(0, 0.3, num_items), rng.normal(size=num_items)
    return matrix(draw(rng, by_difficulty(theta, a, b))), theta, a, b


@pytest.mark.slow
@pytest.mark.parametrize("priors", svi.PRIORS)
def test_the_2pl_agrees_with_marginal_maximum_likelihood(priors):
    responses, *_ = simulate_2pl(600, 150, seed=2)
    result, reference = (
        irtjax.fit(responses, "2pl", "svi", priors=priors),
        mml.fit_mml(responses, "2pl", slope_prior=None),
    )
    assert result.converged
    assert (result.parameters.slope > 0).all()
    for name in ("difficulty", "discrimination"):
        typical = np.abs(reference.difficulty) < 2
        error = (result.item_columns[name] - reference.item_columns[name]) / reference.item_columns[f"{name}_se"]
        assert np.sqrt((error[typical] ** 2).mean()) < 0.5, name  # priors and mean field against maximum likelihood
    assert np.corrcoef(result.ability, reference.ability)[0, 1] > 0.999
    assert abs((result.ability**2 + result.ability_se**2).mean() - 1) < 1e-3


def mean_field_optimum_2pl(values: np.ndarray, pivots: np.ndarray):
    """Locations and standard deviations of θ, c and log a that maximise the ELBO under vague priors, and that ELBO.

    As `mean_field_optimum`; the logit a (θ - t) + c is normal for a given a, so 13 × 9 nodes. With a independent of c,
    b = t - c/a has E b² = t² - 2 t m E a⁻¹ + (m² + s²) E a⁻², and the entropy of b given a is that of c less log a.
    """
    num_subjects, num_items = values.shape
    (nodes, weights), (nodes_a, weights_a) = (np.polynomial.hermite_e.hermegauss(n) for n in (13, 9))
    weights = np.outer(weights_a, weights) / weights_a.sum() / weights.sum()
    sizes = [num_subjects, num_subjects] + [num_items] * 4
    observed, right = values >= 0, values == 1

    def negative_elbo(x):
        theta, log_sd, c, log_sd_c, log_a, log_sd_a = jnp.split(x, np.cumsum(sizes)[:-1].tolist())
        variance, sd_a = jnp.exp(2 * log_sd), jnp.exp(log_sd_a)

        def expected(node_a, weights):
            a = jnp.exp(log_a + node_a * sd_a)
            mean = jnp.outer(theta, a) + (c - a * pivots)[None]
            sd = jnp.sqrt(jnp.outer(variance, a**2) + jnp.exp(2 * log_sd_c)[None])
            logit = mean[..., None] + sd[..., None] * nodes[None, None]
            return ((right[..., None] * logit - observed[..., None] * jax.nn.softplus(logit)) @ weights).sum()

        elbo = jax.lax.map(lambda at: expected(*at), (nodes_a, weights)).sum()
        first, second = (jnp.exp(-k * log_a + k**2 * sd_a**2 / 2) for k in (1, 2))
        square = pivots**2 - 2 * pivots * c * first + (c**2 + jnp.exp(2 * log_sd_c)) * second
        for squares, prior in ((theta**2 + variance, 1.0), (square, 1e3), (log_a**2 + sd_a**2, 1.0)):
            elbo += (-0.5 * squares / prior - 0.5 * jnp.log(2 * jnp.pi * prior)).sum()
        for log_sds in (log_sd, log_sd_c - log_a, log_sd_a):
            elbo += (log_sds + 0.5 * jnp.log(2 * jnp.pi * jnp.e)).sum()
        return -elbo

    with jax.enable_x64(True):
        function = jax.jit(jax.value_and_grad(negative_elbo))
        start = np.concatenate([np.full(n, x) for n, x in zip(sizes, (0.0, -1, 0, -2, 0, -2), strict=True)])
        start[: sizes[0]] = np.where(observed, right - 0.5, 0).mean(1)  # abilities whose slopes are positive
        found = minimize(
            lambda x: tuple(np.asarray(part, float) for part in function(x)),
            start,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 5000, "maxfun": 8000, "ftol": 1e-15, "gtol": 1e-5},
        )
    theta, log_sd, c, log_sd_c, log_a, log_sd_a = np.split(found.x, np.cumsum(sizes)[:-1])
    normals = ((theta, log_sd), (c, log_sd_c), (log_a, log_sd_a))
    return *(guide.Normal(loc, np.exp(log_sd)) for loc, log_sd in normals), -found.fun


@pytest.mark.slow
def test_the_2pl_reaches_the_mean_field_optimum():
    responses, *_ = simulate_2pl(*SHAPE_2PL, seed=4)
    result = svi.fit_svi(responses, "2pl", priors="vague")
    pivots = np.asarray(svi_start.starting_point(responses, "2pl", "mml", {}).pivots, float)
    theta, intercept, log_slope, elbo = mean_field_optimum_2pl(responses.values, pivots)
    slope, difficulty = guide.item_moments(intercept, log_slope, pivots)
    origin, unit = theta.loc.mean(), np.sqrt(theta.loc.var() + (theta.scale**2).mean())
    assert result.converged
    for got, sd, expected, expected_sd in (
        (result.ability, result.ability_se, (theta.loc - origin) / unit, theta.scale / unit),
        (result.difficulty, result.difficulty_se, (difficulty.loc - origin) / unit, difficulty.scale / unit),
        (*(result.item_columns[x] for x in ("discrimination", "discrimination_se")), *(unit * x for x in slope)),
    ):
        error = (got - expected) / expected_sd
        assert np.sqrt((error**2).mean()) < 0.1
        assert np.abs(error).max() < 0.4
        assert abs(np.median(sd / expected_sd) - 1) < 0.03
        assert np.sqrt(((sd / expected_sd - 1) ** 2).mean()) < 0.06
    assert abs(result.details["elbo"] - elbo) < 0.002 * abs(elbo) + 0.3


def test_item_moments_are_those_of_draws():
    intercept, log_slope = (guide.Normal(*np.array(x)) for x in ([[3.0], [0.4]], [[-0.2], [0.3]]))
    slope, difficulty = guide.item_moments(intercept, log_slope, np.array([-1.5]))
    noise = np.random.default_rng(0).normal(size=(2, 10**6))
    c, a = intercept.loc + intercept.scale * noise[0], np.exp(log_slope.loc + log_slope.scale * noise[1])
    np.testing.assert_allclose([slope.loc[0], slope.scale[0]], [a.mean(), a.std()], rtol=0.01)
    np.testing.assert_allclose(difficulty.loc[0], -1.5 - c.mean() / a.mean(), rtol=0.01)
    np.testing.assert_allclose(difficulty.scale[0], (c / a).std(), rtol=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("priors", svi.PRIORS)
def test_the_2pl_recovers_simulated_parameters_with_honest_intervals(priors):
    responses, theta, a, b = simulate_2pl(300, 800, seed=3)
    result = irtjax.fit(responses, "2pl", "svi", priors=priors)
    mean, sd = theta.mean(), theta.std()
    for estimate, se, truth in (
        (result.ability, result.ability_se, (theta - mean) / sd),
        (result.difficulty, result.difficulty_se, (b - mean) / sd),
        (result.item_columns["discrimination"], result.item_columns["discrimination_se"], a * sd),
    ):
        z = (estimate - truth) / se
        assert 0.85 < np.sqrt((z**2).mean()) < 1.15
        assert 0.92 < (np.abs(z) < 1.96).mean() < 0.98


@pytest.mark.slow
def test_priors_of_the_caller():
    responses, _, _ = simulate(*SHAPE, seed=8)

    def narrow(model):
        spread = numpyro.sample("spread", dist.HalfNormal(1.0))
        return svi_model.Priors(dist.Normal(0.0, spread), dist.Normal(0.0, 0.01), dist.LogNormal(0.0, 1.0))

    result = fit(responses, priors=narrow)
    assert result.details["priors"] == "narrow"
    assert np.abs(result.difficulty - result.difficulty.mean()).max() < 0.1  # the prior holds them together
    assert fit(responses).difficulty.std() > 0.8


@pytest.mark.slow
@pytest.mark.parametrize(("model", "shape"), [("1pl", SHAPE), ("2pl", SHAPE_2PL)])
def test_batches_lead_near_the_whole(model, shape):
    responses, _, _ = simulate(*shape, seed=9)
    batch = {"batch_subjects": shape[0] // 2, "batch_items": shape[1] // 2}
    whole, part = (fit(responses, model=model, priors="vague", **options) for options in ({}, batch))
    error = (part.difficulty - whole.difficulty) / whole.difficulty_se
    assert np.sqrt((error**2).mean()) < 0.2
    assert abs(np.median(part.difficulty_se / whole.difficulty_se) - 1) < 0.1


@pytest.mark.slow  # of one step: tests/test_accelerators.py
@pytest.mark.parametrize(
    ("devices", "model", "priors", "shape"),
    [
        ((1, 2), "1pl", "hierarchical", SHAPE),
        ((2, 2), "1pl", "hierarchical", SHAPE),
        ((2, 2), "2pl", "vague", SHAPE_2PL),
        ((2, 2), "2pl", "hierarchical", SHAPE),
    ],
)
def test_sharded_equals_unsharded(devices, model, priors, shape):
    responses, _, _ = simulate(*shape, seed=10)
    one = functools.partial(fit, responses, model=model, priors=priors)
    single, sharded = one(), one(mesh=mesh_of(*devices))
    np.testing.assert_allclose(sharded.difficulty, single.difficulty, atol=2e-3)
    np.testing.assert_allclose(sharded.ability_se, single.ability_se, rtol=5e-3)


@pytest.mark.slow
def test_agrees_with_mml_on_human_responses(shared):
    """RMSD of difficulty and ability: published 0.158 and 0.154 (Lalor, Wu and Yu 2019)."""
    folder = shared / "human_responses" / "snli_emnlp2016"
    for group in (4, 5):
        responses = irtjax.read_responses(folder / f"irt_file_{group}_coded.csv")
        one, other = fit(responses), mml.fit_mml(responses, "rasch")
        for name in ("difficulty", "ability"):
            difference = getattr(one, name) - getattr(other, name)
            assert np.sqrt(((difference - difference.mean()) ** 2).mean()) < 0.06, (group, name)


def one_label(shared, label: str) -> irtjax.ResponseMatrix:
    """Responses (983, 30) to the items of group 5 with one gold label."""
    folder = shared / "human_responses" / "snli_emnlp2016"
    responses = irtjax.read_responses(folder / "irt_file_5_coded.csv")
    gold = pd.read_csv(folder / "group_5.txt", sep=r"\s+", header=None, index_col=0)[1]
    at = np.array([gold[item] == label for item in responses.item_ids])
    return irtjax.ResponseMatrix(responses.values[:, at], responses.subject_ids, responses.item_ids[at])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("label", "difficulty_rmsd"), [("contradiction", 0.06), ("neutral", 0.06), ("entailment", 0.2)]
)
def test_the_2pl_agrees_with_mml_on_each_gold_label(shared, label, difficulty_rmsd):
    """Entailment pairs are so easy (difficulties to -5) that the exact posterior is no nearer: see the next test."""
    responses = one_label(shared, label)
    one, other = irtjax.fit(responses, "2pl", "svi", priors="vague"), mml.fit_mml(responses, "2pl")
    unit, origin = np.polyfit(one.ability, other.ability, 1)  # onto one scale
    for name, most in (("ability", 0.06), ("difficulty", difficulty_rmsd)):
        difference = unit * getattr(one, name) + origin - getattr(other, name)
        assert np.sqrt((difference**2).mean()) < most, name


def exact_draws(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """1000 draws of a and of b (30,) from the posterior under vague priors: NUTS, abilities summed out at 61 nodes."""
    patterns, counts = np.unique(values, axis=0, return_counts=True)
    nodes = np.linspace(-6, 6, 61)
    log_weights = jax.nn.log_softmax(-0.5 * nodes**2)

    def density():
        with numpyro.plate("items", values.shape[1]):
            log_a = numpyro.sample("log_a", dist.Normal(0.0, 1.0))
            c = numpyro.sample("c", dist.ImproperUniform(dist.constraints.real, (), ()))  # the logit at ability -1
        a = jnp.exp(log_a)
        b = numpyro.deterministic("b", -1 - c / a)
        logit = jnp.outer(nodes + 1, a) + c[None]
        given = patterns @ logit.T + (log_weights - jax.nn.softplus(logit).sum(1))[None]
        numpyro.factor("responses", counts @ jax.nn.logsumexp(given, axis=1))
        numpyro.factor("prior of b", (dist.Normal(0.0, np.sqrt(1e3)).log_prob(b) - log_a).sum())  # db = dc / a

    chain = MCMC(NUTS(density), num_warmup=500, num_samples=1000, progress_bar=False)
    chain.run(jax.random.key(0))
    draws = chain.get_samples()
    return np.exp(np.asarray(draws["log_a"], float)), np.asarray(draws["b"], float)


@pytest.mark.slow
def test_the_2pl_is_nearer_to_the_exact_posterior_than_that_is_to_mml(shared):
    """Flat in b favours low slopes (1/a for a given logit): where a is known to a fifth only, easy items move out."""
    responses = one_label(shared, "entailment")
    one, other = irtjax.fit(responses, "2pl", "svi", priors="vague"), mml.fit_mml(responses, "2pl")
    a, b = exact_draws(responses.values)
    for center in (b.mean(0), np.median(b, 0), (a * b).mean(0) / a.mean(0)):
        assert np.sqrt(((center - other.difficulty) ** 2).mean()) > 0.12
        of_svi, of_mml = (np.sqrt((((x.difficulty - center) / b.std(0)) ** 2).mean()) for x in (one, other))
        assert of_svi < min(0.35, 0.8 * of_mml)
    # nothing is said of the width of the two items whose slope is next to unknown
    assert 0.75 < np.median(one.difficulty_se / b.std(0)) < 1
    assert 0.65 < np.median(one.item_columns["discrimination_se"] / a.std(0)) < 1
