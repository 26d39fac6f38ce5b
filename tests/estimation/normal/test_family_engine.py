"""Long tests of grades, counts and shares: normal posteriors against nodes that subjects share, and brute force."""

import numpy as np
import pytest
from scipy.special import expit, logsumexp
from scipy.stats import norm

import irtjax
from irtjax.errors import InputError
from irtjax.estimation import family_integration
from irtjax.estimation.specify_families import plan_families
from irtjax.responses.from_arrays import of_counts, of_grades, of_shares
from irtjax.responses.joining import beside

NUM_SUBJECTS, TRIALS = 60, 5
ALL = [
    ("grades", "gpcm"),
    ("grades", "pcm"),
    ("grades", "rsm"),
    ("counts", "binomial"),
    ("inner shares", "beta"),
    ("shares", "ordered_beta"),
]
DROPS = np.array([1.0, 0.0, -1.0])  # of thresholds of grades, from their mean


def simulated(num_items, kind, seed=0, mean=0.0, sd=1.0):
    """Responses of 60 subjects of N(mean, sd²), of which a tenth is missing."""
    rng = np.random.default_rng(seed)
    theta, slope = mean + sd * rng.standard_normal(NUM_SUBJECTS), np.exp(0.3 * rng.standard_normal(num_items))
    x = slope * theta[:, None] + rng.standard_normal(num_items)
    missing = rng.random(x.shape) < 0.1
    subjects, items = [f"s{j}" for j in range(NUM_SUBJECTS)], [f"{kind}{i}" for i in range(num_items)]
    if kind == "grades":
        values = (rng.random(x.shape)[:, :, None] < expit(x[:, :, None] + DROPS)).sum(axis=2).astype(float)
        return of_grades(np.where(missing, np.nan, values), subjects, items)
    if kind == "counts":
        values = rng.binomial(TRIALS, expit(x)).astype(float)
        return of_counts(np.where(missing, np.nan, values), np.full(x.shape, TRIALS), subjects, items)
    mean = np.clip(expit(x), 0.02, 0.98)
    values = np.clip(rng.beta(8 * mean, 8 * (1 - mean)), 1e-6, 1 - 1e-6)
    if kind == "shares":
        ends = rng.random(x.shape)
        values = np.where(ends < expit(-x - 3), 0.0, np.where(ends > 1 - expit(x - 3), 1.0, values))
    return of_shares(np.where(missing, np.nan, values), subjects, items)


def apart(one, other):
    """The largest difference of what items are reported to be, in standard errors of the other; ratios of errors."""
    far, ratios = [], []
    for name, error in other.item_columns.items():
        column = name.removesuffix("_se")
        if column == name or not (known := np.isfinite(error) & (error > 0)).any():
            continue
        found, expected = (fit.item_columns[column][known] for fit in (one, other))
        far.append((np.abs(found - expected) / error[known]).max())
        ratios.append(one.item_columns[name][known] / error[known])
    return max(far), np.concatenate(ratios)


@pytest.fixture(scope="module")
def grades():
    return simulated(80, "grades")


@pytest.fixture(scope="module")
def fits(grades):
    return {way: irtjax.fit(grades, "graded", priors=None, integration=way) for way in ("normal", "nodes")}


def test_normal_posteriors_come_to_the_estimates_on_nodes(fits):
    normal, nodes = fits["normal"], fits["nodes"]
    assert (normal.integration, normal.status, nodes.integration) == ("normal", "converged", "nodes")
    assert abs(normal.log_likelihood - nodes.log_likelihood) < 1e-3
    far, ratios = apart(normal, nodes)
    assert far < 0.02
    np.testing.assert_allclose(ratios, 1, atol=0.03)
    np.testing.assert_allclose(normal.ability, nodes.ability, atol=0.01 * nodes.ability_se.min())
    np.testing.assert_allclose(normal.ability_se, nodes.ability_se, rtol=1e-3)


def assert_linked(normal, nodes, in_se=0.03, of_abilities=0.03):
    """Both fits on the scale of the same anchors: population, free items and abilities, in standard errors."""
    assert (normal.integration, normal.status, nodes.integration) == ("normal", "converged", "nodes")
    (mean, sd), (on_nodes, sd_on_nodes) = np.ravel(normal.population), np.ravel(nodes.population)
    assert abs(mean - on_nodes) < in_se * sd_on_nodes / np.sqrt(NUM_SUBJECTS)
    assert abs(np.log(sd / sd_on_nodes)) < in_se / np.sqrt(2 * NUM_SUBJECTS)
    assert apart(normal, nodes)[0] < in_se
    np.testing.assert_allclose(normal.ability, nodes.ability, atol=of_abilities * nodes.ability_se.min())


@pytest.mark.slow
@pytest.mark.parametrize("number", [3, 79])
def test_anchors_come_to_the_estimates_on_nodes(fits, number):
    responses, anchors = simulated(80, "grades", mean=0.8, sd=1.4), fits["nodes"].items().iloc[::-1].head(number)
    normal, nodes = (
        irtjax.fit(responses, "graded", anchors=anchors, priors=None, integration=way) for way in ("normal", "nodes")
    )
    assert_linked(normal, nodes)
    assert abs(normal.log_likelihood - nodes.log_likelihood) < 1e-3
    np.testing.assert_allclose(apart(normal, nodes)[1], 1, atol=0.05)
    assert normal.population.mean[0] > 0.3


def test_the_likelihood_is_that_of_brute_force_and_its_error_is_told(fits, grades):
    fit, nodes = fits["normal"], np.linspace(-6, 6, 2401)
    columns = fit.item_columns
    places = np.stack([columns[f"threshold_{k}"] for k in (1, 2, 3)], axis=1)
    above = expit(columns["discrimination"][:, None] * (nodes[:, None, None] - places))  # (Q, I, 3)
    above = np.concatenate([np.ones_like(above[..., :1]), above, np.zeros_like(above[..., :1])], axis=2)
    log_p, values = np.log(above[..., :-1] - above[..., 1:]), np.asarray(grades.values).astype(int)
    of_subjects = np.stack(
        [
            np.where(row >= 0, np.take_along_axis(log_p, np.maximum(row, 0)[None, :, None], axis=2)[..., 0], 0).sum(
                axis=1
            )
            for row in values
        ]
    )
    log_weights = norm.logpdf(nodes) + np.log(nodes[1] - nodes[0])
    exact = logsumexp(of_subjects + log_weights, axis=1).sum()
    assert abs(fit.log_likelihood - exact) < 1e-5
    # three nodes of each subject are off by little on such a test, and by something
    assert 1e-6 < fit.log_likelihood_error < 0.1


def test_the_choice(grades, monkeypatch):
    plan = plan_families(grades, ("graded",) * grades.num_items, 1, None)

    def chosen(way="auto", num_nodes=None, dims=1, nodes_only=False):
        return family_integration.choose(way, num_nodes, plan, dims, nodes_only=nodes_only)

    assert chosen().way == chosen("nodes").way == "nodes"
    assert chosen("normal") is chosen("normal", dims=2) is None
    assert chosen(num_nodes=81).number == 81
    for options, message in (
        ({"way": "grid"}, "unknown `integration` 'grid', expected one of auto, nodes, around, normal"),
        ({"way": "around"}, "is of right and wrong answers"),
        ({"way": "normal", "num_nodes": 81}, "`num_nodes` 81 with `integration` 'normal': expected 'nodes'"),
        ({"way": "normal", "nodes_only": True}, "has one population, no beta_binomial, and nominal in one dimension"),
    ):
        with pytest.raises(InputError, match=message):
            chosen(**options)
    monkeypatch.setattr(family_integration, "FEW_BYTES", 0)
    assert chosen().way == "nodes"  # posteriors are not narrow
    monkeypatch.setattr(family_integration, "NARROW", 0.9)
    assert chosen() is None
    assert chosen(nodes_only=True).way == chosen(dims=2).way == "nodes"
    monkeypatch.setattr(family_integration, "NARROW_IN_DIMENSIONS", 0.9)
    assert chosen(dims=2) is None
    assert chosen("nodes", dims=2).way == chosen(dims=2, nodes_only=True).way == "nodes"
    monkeypatch.setattr(family_integration, "MOST_BYTES", 0)
    with pytest.raises(InputError, match="GB of memory: use `integration` 'normal'"):
        chosen("nodes")
    with pytest.raises(InputError, match="GB of memory: use estimator svi"):
        chosen(nodes_only=True)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "model"), ALL)
def test_all_models_come_to_the_estimates_on_nodes(kind, model):
    responses = simulated(80, kind)
    normal, nodes = (irtjax.fit(responses, model, integration=way) for way in ("normal", "nodes"))
    assert normal.status == "converged"
    # estimated priors settle within a hundredth of their standard deviations, and pull at the unit of nodes
    assert apart(normal, nodes)[0] < 0.06
    np.testing.assert_allclose(normal.ability, nodes.ability, atol=0.15 * nodes.ability_se.min())


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "model"), ALL)
def test_anchors_of_all_models_come_to_the_estimates_on_nodes(kind, model):
    """With priors as they are by default: they leave the scale to the anchors."""
    first, second = simulated(80, kind), simulated(80, kind, mean=0.8, sd=1.4)
    anchors = irtjax.fit(first, model).items().head(5)
    fits = (irtjax.fit(second, model, anchors=anchors, integration=way) for way in ("normal", "nodes"))
    assert_linked(*fits, in_se=0.06, of_abilities=0.15)  # as without anchors, in the test above


@pytest.mark.slow
def test_without_priors_errors_are_those_on_nodes():
    for kind, model in (("grades", "rsm"), ("counts", "binomial"), ("inner shares", "beta")):
        responses = simulated(80, kind)
        normal, nodes = (irtjax.fit(responses, model, priors=None, integration=way) for way in ("normal", "nodes"))
        far, ratios = apart(normal, nodes)
        assert far < 0.02
        np.testing.assert_allclose(ratios, 1, atol=0.03)


@pytest.mark.slow
def test_items_of_several_kinds():
    parts = simulated(40, "grades"), simulated(40, "counts"), simulated(40, "shares")
    responses, models = beside(*parts), ("graded",) * 20 + ("gpcm",) * 20 + ("binomial",) * 40 + ("ordered_beta",) * 40
    first = irtjax.fit(responses, models, integration="normal")
    nodes = irtjax.fit(responses, models, integration="nodes")
    assert first.integration == "normal"
    assert apart(first, nodes)[0] < 0.06
