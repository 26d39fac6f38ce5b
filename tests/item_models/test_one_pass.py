"""The pass over grades, categories, counts and shares, and its gradients: against textbook probabilities."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit, log_expit, log_softmax
from scipy.stats import beta

from irtjax.item_models import listing
from irtjax.item_models.one_pass import Cells, log_likelihood
from irtjax.item_models.protocol import PredictorParameters
from irtjax.kernels import one_pass
from irtjax.kernels.formulation import formulated_for

SUBJECTS, ITEMS = 7, 70  # one block of 64 items, and a rest
TOP = np.array([3, 1, 2, 3, 2] * 14)
NAMES = (
    "graded",
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("gpcm", "nominal", "ordered_beta", "binomial")),
)


def problem(name):
    """Abilities, items and responses, some missing."""
    rng = np.random.default_rng(0)
    top = TOP if name in listing.CATEGORICAL else np.ones(ITEMS, int)
    model = listing.model_of((name,) * ITEMS, top)
    theta, slope = rng.normal(0, 1.5, SUBJECTS), rng.uniform(0.4, 2, ITEMS)
    intercept, others = rng.normal(0, 1, ITEMS), rng.normal(0, 0.5, (ITEMS, listing.num_others(model)))
    if name in ("gpcm", "nominal"):  # 0 beyond what an item has
        half = max(others.shape[1] // 2, 1) if name == "nominal" else others.shape[1]
        others[np.arange(others.shape[1]) % half >= (top if name == "nominal" else top - 1)[:, None]] = 0.0
    trials = None
    if name == "binomial":
        trials = rng.integers(1, 12, (SUBJECTS, ITEMS))
        values = rng.integers(0, trials + 1)
    elif name == "ordered_beta":
        values = np.round(rng.uniform(-0.2, 1.2, (SUBJECTS, ITEMS)).clip(0, 1), 3)
    else:
        values = rng.integers(0, top + 1, (SUBJECTS, ITEMS))
    values = np.where(rng.uniform(size=values.shape) < 0.2, -1, values)
    items = PredictorParameters(slope[:, None], intercept, others, top)
    return model, theta, items, Cells(values, trials)


def log_p(name, theta, items, i):
    """Log-probabilities of the categories of an item, or of one success and one failure, as textbooks write them."""
    a, c, own, k = items.slope[i, 0], items.intercept[i], items.others[i], items.top[i]
    if name == "graded":
        falls = np.concatenate([[0.0], np.cumsum(np.exp(own[: k - 1]))])
        above = np.concatenate([[1.0], expit(a * theta + c + falls.mean() - falls), [0.0]])
        return np.log(above[:-1] - above[1:])
    if name == "gpcm":
        steps = a * theta + c + own[: k - 1] @ contrasts(k).T
        return log_softmax(np.concatenate([[0.0], np.cumsum(steps)]))
    if name == "nominal":
        half = len(own) // 2
        slopes, intercepts = (contrasts(k + 1) @ part[:k] for part in (own[:half], own[half:]))
        return log_softmax((a * theta + c) * slopes + intercepts)
    return log_expit(np.array([-1, 1]) * (a * theta + c))


def contrasts(number):
    """Helmert contrasts, column by column."""
    columns = [np.r_[-np.ones(k), k, np.zeros(number - k - 1)] / np.sqrt(k * (k + 1)) for k in range(1, number)]
    return np.stack(columns, axis=1) if columns else np.zeros((1, 0))


def log_share(y, theta, items, i):
    """Of a share by the ordered Beta model, times y (1 - y) between the ends."""
    x, (log_phi, cut, log_gap) = items.slope[i, 0] * theta + items.intercept[i], items.others[i]
    lower, upper = expit(x - cut), expit(x - cut - np.exp(log_gap))
    if y in (0, 1):
        return np.log(upper if y else 1 - lower)
    mean, phi = expit(x), np.exp(log_phi)
    return np.log(lower - upper) + beta.logpdf(y, mean * phi, (1 - mean) * phi) + np.log(y * (1 - y))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(one_pass, "BLOCK_RESPONSES", 64 * SUBJECTS)


def textbook(name, theta, items, cells):
    """The log-likelihood without what depends on no parameter."""
    total = 0.0
    for j, i in np.argwhere(cells.values >= 0):
        y = cells.values[j, i]
        if name == "ordered_beta":
            total += log_share(y, theta[j], items, i)
        elif name == "binomial":
            total += log_p(name, theta[j], items, i) @ (cells.trials[j, i] - y, y)
        else:
            total += log_p(name, theta[j], items, i)[y]
    return total


EACH = [one if hasattr(one, "marks") else pytest.param(one) for one in NAMES]
FORMULATED = [pytest.param(*one.values, "cpu", marks=one.marks) for one in EACH]
FORMULATED += [
    pytest.param(*one.values, "tpu", marks=() if one.values == ("graded",) else pytest.mark.slow) for one in EACH
]


@pytest.mark.parametrize(("name", "backend"), FORMULATED)
def test_value_and_gradients_are_those_of_textbooks(name, backend):
    model, theta, items, cells = problem(name)
    on_device = jax.tree.map(jnp.asarray, cells)

    def passed(theta, slope, intercept, others):
        parameters = PredictorParameters(slope, intercept, others, jnp.asarray(items.top))
        return log_likelihood(model, theta, parameters, on_device)

    arguments = [theta, *items[:3]]
    with formulated_for(backend):
        program = jax.jit(jax.value_and_grad(passed, range(4)))
        value, gradients = program(*(jnp.asarray(x, jnp.float32) for x in arguments))
    assert value == pytest.approx(textbook(name, theta, items, cells), rel=1e-5)
    rng, step = np.random.default_rng(1), 1e-5
    for k, gradient in enumerate(gradients):
        way = rng.normal(size=arguments[k].shape) * (arguments[k] != 0)
        ends = []
        for sign in (1, -1):
            theta_there, *moved = [x + sign * step * way if n == k else x for n, x in enumerate(arguments)]
            ends.append(textbook(name, theta_there, PredictorParameters(*moved, items.top), cells))
        slope = (ends[0] - ends[1]) / (2 * step)
        size = np.linalg.norm(np.asarray(gradient)) * np.linalg.norm(way)
        assert np.sum(np.asarray(gradient, float) * way) == pytest.approx(slope, rel=1e-4, abs=1e-5 * size + 1e-9)
