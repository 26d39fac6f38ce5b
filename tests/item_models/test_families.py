"""Items with grades and categories: against probabilities written out, numerical derivatives, and the delta method."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit, log_expit, log_softmax

from irtjax.item_models import listing
from irtjax.item_models.categories import log_normalizer_of, there
from irtjax.item_models.protocol import PredictorParameters

TOP = np.array([4, 1, 3, 4, 2, 4, 1, 3])
NODES = np.linspace(-4, 4, 9)[:, None]
PER_ITEM = 4
MODELS = {name: listing.model_of((name,) * len(TOP), TOP) for name in ("graded", "gpcm", "nominal")}
KINDS = ("graded", "gpcm", "nominal", "gpcm", "graded", "nominal", "nominal", "gpcm")
MODELS["mixed"] = listing.model_of(KINDS, TOP)
KINDS_OF = {name: KINDS if name == "mixed" else (name,) * len(TOP) for name in MODELS}


def numbers(model, seed=0):
    """Slopes, and thresholds or slopes and intercepts of categories, in the field's terms; NaN beyond an item's own."""
    rng = np.random.default_rng(seed)
    own = np.arange(1, PER_ITEM + 1) <= TOP[:, None]
    b = rng.normal(0, 1.2, own.shape)
    graded = np.array([kind == "graded" for kind in KINDS_OF[model]])
    b[graded] = np.sort(b[graded], axis=1)
    columns = {"discrimination": rng.uniform(0.4, 2.5, len(TOP))}
    columns |= {f"threshold_{k + 1}": np.where(own[:, k], b[:, k], np.nan) for k in range(PER_ITEM)}
    own = np.arange(PER_ITEM + 1) <= TOP[:, None]
    for name in ("slope", "intercept"):
        each = np.where(own, rng.normal(0, 1.2, own.shape), np.nan)
        each -= np.nanmean(each, axis=1, keepdims=True)
        columns |= {f"{name}_{k}": each[:, k] for k in range(PER_ITEM + 1)}
    return columns


def items_of(model, columns):
    """Parameters, by `restored` of each family, side by side."""
    size = listing.num_others(MODELS[model])
    found = PredictorParameters(
        np.ones((len(TOP), 1)), np.zeros(len(TOP)), np.zeros((len(TOP), size)), TOP.astype(float)
    )
    for family, group in MODELS[model].groups(len(TOP)):
        some = family.restored({name: column[group] for name, column in columns.items()}, TOP[group])
        found.slope[group], found.intercept[group] = some.slope, some.intercept
        most = TOP[group].max()
        if family.name == "nominal":
            half, own = size // 2, some.others.shape[1] // 2
            found.others[group, :own] = some.others[:, :own]
            found.others[group, half : half + own] = some.others[:, own:]
        else:
            found.others[group, : most - 1] = some.others[:, : most - 1]
    return found


def log_p(kind, columns, i, theta):
    """Log-probabilities (Q, K + 1) of the categories of an item, as textbooks write them."""
    a, top = columns["discrimination"][i], TOP[i]
    b = np.array([columns[f"threshold_{k}"][i] for k in range(1, top + 1)])
    if kind == "graded":
        x = a * (theta[:, None] - b)
        above, below = log_expit(x), log_expit(-x)
        inner = above[:, :-1] + below[:, 1:] + np.log(-np.expm1(-a * np.diff(b)))
        return np.concatenate([below[:, :1], inner, above[:, -1:]], axis=1)
    if kind == "gpcm":
        steps = np.cumsum(a * (theta[:, None] - b), axis=1)
        return log_softmax(np.pad(steps, ((0, 0), (1, 0))), axis=1)
    slope, intercept = (np.array([columns[f"{n}_{k}"][i] for k in range(top + 1)]) for n in ("slope", "intercept"))
    return log_softmax(slope * theta[:, None] + intercept, axis=1)


def of_categories(model, items, theta=NODES):
    """Log-probabilities (Q, I, S + 1) by the model."""
    found = MODELS[model].natural(items, theta, asymptotes=True)
    eta = np.asarray(found.eta).reshape(len(theta), len(TOP), -1)
    assert np.isfinite(eta).all()
    assert np.isfinite(found.log_normalizer).all()
    return np.pad(eta, ((0, 0), (0, 0), (1, 0))) - np.asarray(found.log_normalizer)[:, :, None]


@pytest.mark.parametrize("model", MODELS)
def test_probabilities_are_those_of_the_textbook(model):
    columns = numbers(model)
    found = of_categories(model, items_of(model, columns))
    for i, kind in enumerate(KINDS_OF[model]):
        np.testing.assert_allclose(found[:, i, : TOP[i] + 1], log_p(kind, columns, i, NODES[:, 0]), rtol=1e-9)


def test_what_responses_are_worth():
    model = "mixed"
    columns, worth = numbers(model), np.random.default_rng(1).normal(size=(len(TOP), PER_ITEM + 1))
    mean, variance = MODELS[model].worth(items_of(model, columns), NODES, worth)
    for i, kind in enumerate(KINDS_OF[model]):
        p, w = np.exp(log_p(kind, columns, i, NODES[:, 0])), worth[i, : TOP[i] + 1]
        np.testing.assert_allclose(mean[:, i], p @ w, rtol=1e-9)
        np.testing.assert_allclose(variance[:, i], p @ w**2 - (p @ w) ** 2, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("model", ["graded", "gpcm"])
def test_steep_slopes_and_close_thresholds(model):
    columns = numbers(model)
    columns["discrimination"][:4] = 1e3
    for k in range(1, PER_ITEM):
        columns[f"threshold_{k + 1}"][3] = columns["threshold_1"][3] + 1e-6 * k
        columns[f"threshold_{k + 1}"][5] = columns["threshold_1"][5] + 1e-6 * k
    items = items_of(model, columns)
    found = of_categories(model, items)
    for i in range(len(TOP)):
        expected = log_p(model, columns, i, NODES[:, 0])
        # thresholds that differ in the tenth digit keep ten of their digits
        np.testing.assert_allclose(found[:, i, : TOP[i] + 1], expected, rtol=1e-6, atol=1e-7)
    with jax.enable_x64(True):
        moments = MODELS[model].moments(items, NODES, asymptotes=True)
    for leaf in moments:
        assert np.isfinite(leaf).all()


def test_gaps_that_underflow_have_a_logarithm():
    items = items_of("graded", numbers("graded"))
    items.others[0, 0] = -800.0
    of_categories("graded", items)


def test_the_normalizer_has_a_derivative_where_its_terms_are_rounded_anew():
    """Without optimizations, logits are computed anew beside their maximum, in another rounding."""
    rng = np.random.default_rng(0)
    theta, slopes, intercepts = (jnp.asarray(rng.normal(size=n)) for n in ((300, 1, 1), (1, 40, 3), (1, 40, 3)))

    def eta(theta):
        return theta * slopes + intercepts

    def total(theta):
        return log_normalizer_of(eta(theta), jnp.full(40, 3)).sum()

    lowered = jax.jit(jax.grad(total)).lower(theta)
    slope = lowered.compile(compiler_options={"xla_backend_optimization_level": 0})(theta)
    odds = np.exp(np.asarray(eta(theta), float))
    expected = (odds / (1 + odds.sum(axis=2, keepdims=True)) * np.asarray(slopes)).sum(axis=(1, 2))
    np.testing.assert_allclose(slope[:, 0, 0], expected, atol=1e-4)


@pytest.mark.parametrize("model", MODELS)
def test_moments_and_curvature_are_derivatives(model):
    items = items_of(model, numbers(model, 1))
    own = np.asarray(there(TOP, PER_ITEM))
    p = np.exp(of_categories(model, items))
    eta = p[:, :, 1:] * own
    with jax.enable_x64(True):
        found = MODELS[model].moments(items, NODES, asymptotes=True)
        np.testing.assert_allclose(np.asarray(found.mean).reshape(eta.shape), eta, rtol=1e-9, atol=1e-14)
        covariance = eta[..., None] * np.eye(PER_ITEM) - eta[..., :, None] * eta[..., None, :]
        spread = found.spread(np.broadcast_to(np.eye(PER_ITEM), covariance.shape))
        np.testing.assert_allclose(spread, covariance, rtol=1e-8, atol=1e-13)

        # η of one item at one node, of predictor and others, and its derivatives by JAX
        def natural(vector, top, item):
            one = PredictorParameters(jnp.ones((1, 1)), jnp.zeros(1), vector[None, 1:], top[None])
            return MODELS[model].take(np.array([item])).natural(one, vector[:1, None], asymptotes=True).eta[0]

        x = NODES @ items.slope.T + items.intercept
        rng = np.random.default_rng(2)
        residual = rng.normal(size=(len(NODES), len(TOP), PER_ITEM)) * own
        second = MODELS[model].curvature(items, NODES, residual.reshape(len(NODES), -1))
        for kind in dict.fromkeys(KINDS_OF[model]):  # one compiled program each
            same = [i for i, other in enumerate(KINDS_OF[model]) if other == kind]
            first_by, second_by = (
                jax.jit(jax.vmap(jax.vmap(by, (0, None)), (0, 0)))
                for by in (
                    jax.jacfwd(lambda v, top, item=same[0]: natural(v, top, item)),
                    jax.jacfwd(jax.jacrev(lambda v, top, item=same[0]: natural(v, top, item))),
                )
            )
            others = np.broadcast_to(items.others[same][:, None], (len(same), len(NODES), items.others.shape[1]))
            vectors = np.concatenate([x.T[same][:, :, None], others], axis=2)
            first = np.asarray(first_by(vectors, items.top[same]))  # (items, Q, S, K)
            by_x = np.asarray(found.by_predictor).reshape(eta.shape)[:, same]
            np.testing.assert_allclose(by_x, first[..., 0].swapaxes(0, 1), rtol=1e-9, atol=1e-11)
            by_others = np.asarray(found.by_others).reshape(*eta.shape, -1)[:, same]
            np.testing.assert_allclose(by_others, first[..., 1:].swapaxes(0, 1), rtol=1e-9, atol=1e-11)
            weighted = np.einsum("qis,iqskl->qikl", residual[:, same], np.asarray(second_by(vectors, items.top[same])))
            np.testing.assert_allclose(np.asarray(second)[:, same], weighted, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("model", ["graded", "gpcm"])
def test_two_categories_are_the_2pl(model):
    columns = numbers(model)
    found = of_categories(model, items_of(model, columns))
    for i in np.flatnonzero(TOP == 1):
        expected = expit(columns["discrimination"][i] * (NODES[:, 0] - columns["threshold_1"][i]))
        np.testing.assert_allclose(np.exp(found[:, i, 1]), expected, rtol=1e-12)


def test_statistics_of_missing_responses_are_0():
    values = np.array([[4, 1, -1, 2, 0, -1, 1, 3]], np.int8)
    found = MODELS["mixed"].statistics(values).reshape(len(TOP), PER_ITEM)
    expected = np.zeros((len(TOP), PER_ITEM))
    for i, value in enumerate(values[0]):
        if value > 0:
            expected[i, value - 1] = 1
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("model", MODELS)
def test_columns_round_trip_with_delta_errors(model):
    given = numbers(model, 3)
    items = items_of(model, given)
    array = np.concatenate([items.slope, items.intercept[:, None], items.others], axis=1)
    rng = np.random.default_rng(4)
    root = rng.normal(0, 0.1, (len(TOP), array.shape[1], array.shape[1]))
    covariances = root @ root.swapaxes(1, 2)
    # what an item does not have, or holds, has no variance
    free = np.ones(array.shape, bool)
    size = items.others.shape[1]
    for i, kind in enumerate(KINDS_OF[model]):
        places = np.arange(size)
        if kind == "nominal":
            free[i, :2], free[i, 2:] = False, places % (size // 2) < TOP[i]
        else:
            free[i, 2:] = places < TOP[i] - 1
    covariances *= free[:, :, None] * free[:, None, :]
    found = listing.columns(MODELS[model], items, covariances)

    def names(i, kind):
        if kind == "nominal":
            return [f"{name}_{k}" for name in ("slope", "intercept") for k in range(TOP[i] + 1)]
        return ["discrimination", *(f"threshold_{k}" for k in range(1, TOP[i] + 1))]

    step = 1e-6  # derivatives of the columns by differences, all items at once
    moved = []
    for at in range(array.shape[1]):
        ends = []
        for sign in (1, -1):
            shifted = array.copy()
            shifted[:, at] += sign * step
            one = PredictorParameters(shifted[:, :1], shifted[:, 1], shifted[:, 2:], items.top)
            ends.append(listing.columns(MODELS[model], one, np.zeros_like(covariances)))
        moved.append({name: (ends[0][name] - ends[1][name]) / (2 * step) for name in found if name[-3:] != "_se"})
    for i, kind in enumerate(KINDS_OF[model]):
        for name in names(i, kind):
            assert found[name][i] == pytest.approx(given[name][i], rel=1e-7, abs=1e-9)
            gradient = np.array([by[name][i] for by in moved])
            assert found[f"{name}_se"][i] == pytest.approx(
                np.sqrt(gradient @ covariances[i] @ gradient), rel=1e-5, abs=1e-9
            )
        if kind != "nominal":
            mean = np.mean([given[f"threshold_{k}"][i] for k in range(1, TOP[i] + 1)])
            assert found["difficulty"][i] == pytest.approx(mean, rel=1e-7, abs=1e-9)
    beyond = np.isnan(found["threshold_4"] if "threshold_4" in found else found["slope_4"])
    assert beyond[TOP < 4].all()
