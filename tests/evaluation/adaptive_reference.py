"""A small bank of all four models, and its posteriors by brute force in NumPy."""

import numpy as np
from simulation import probability

from irtjax.kernels.models import ItemParameters

GRID = np.linspace(-9, 9, 9001)


def logit(p):
    with np.errstate(divide="ignore"):
        return np.log(p) - np.log1p(-p)


def bank_of(a, b, c=0.0, d=1.0):
    a, b, c, d = (np.array(x, float) for x in np.broadcast_arrays(a, b, c, d))
    return ItemParameters(a[:, None], -a * b, logit(c), logit(d))


def mixed_bank(num_items=30, seed=0, steepness=1.0, spread=1.2):
    """1PL to 4PL in turn, one slope below 0."""
    rng = np.random.default_rng(seed)
    model = np.arange(num_items) % 4
    a = np.where(model == 0, 1.0, rng.lognormal(0.2, 0.4, num_items)) * steepness
    a[5] *= -1
    c = np.where(model >= 2, rng.uniform(0.05, 0.3, num_items), 0)
    d = np.where(model == 3, rng.uniform(0.85, 0.98, num_items), 1)
    return bank_of(a, rng.normal(0, spread, num_items), c, d)


def posterior(bank, items, answers, mean=0.0, sd=1.0):
    """Weights (Q,) of `mean + sd * GRID`."""
    p = probability(bank.take(np.array(items, int)), mean + sd * GRID)
    weights = np.exp(-0.5 * GRID**2) * np.where(np.array(answers) == 1, p, 1 - p).prod(axis=1)
    return weights / weights.sum()


def variance(weights, values):
    return weights @ (values - weights @ values) ** 2


def expected_variance(bank, weights, theta, values):
    """E Var f given the answer to each item: the posterior of each answer, laid out."""
    expected = []
    for p in probability(bank, theta).T:
        total = 0.0
        for likelihood in (p, 1 - p):
            share = weights @ likelihood
            total += share * variance(weights * likelihood / share, values)
        expected.append(total)
    return np.array(expected)
