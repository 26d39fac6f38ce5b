"""Errors of items with that of the scale: against one matrix of all parameters, inverted whole."""

import itertools

import numpy as np
import pytest

from irtjax.estimation.item_errors import item_covariances
from irtjax.estimation.specify import specify

ANCHORS = np.array([[300.0, 40.0], [40.0, 200.0]])  # information of origin and log unit
CASES = {  # item types, options, parameters of an item, dimensions
    "2pl": (["2pl"] * 5, {}, 2, 1),
    "asymptotes": (["2pl", "3pl", "4pl", "3pl", "2pl"], {}, 4, 1),
    "1pl": (["1pl"] * 5, {}, 2, 1),
    "mixed": (["1pl", "2pl", "1pl", "4pl", "1pl"], {}, 4, 1),
    "rasch": (["rasch"] * 5, {}, 2, 1),
    "anchors": (["2pl"] * 5, {"anchored": np.arange(5) < 2}, 2, 1),
    "1pl, anchors": (["1pl"] * 5, {"anchored": np.arange(5) < 2}, 2, 1),
    "rasch, anchors": (["rasch"] * 5, {"anchored": np.arange(5) < 2}, 2, 1),
    "two dimensions": (["2pl"] * 6, {}, 3, 2),
    "three dimensions": (["2pl"] * 7, {}, 4, 3),
    "three dimensions, asymptotes": (["3pl"] * 4 + ["2pl"] * 2, {}, 6, 3),
}


def one_hot(specification, size):
    """(I, K, P): which parameter of the P estimated ones an item has at a place; a shared slope is one."""
    free, shared = np.array(specification.free)[:, :size], np.asarray(specification.shared)
    own = free.copy()
    own[shared, 0] = False
    found = np.zeros((*free.shape, own.sum() + specification.has_shared))
    found[(*np.nonzero(own), np.arange(own.sum()))] = 1
    found[shared, 0, -1] = specification.has_shared
    return found


def by_one_matrix(slope, information, specification, sd, num_subjects):
    """The covariances (I, K, K) of items, by inverting the information of all parameters and the scale together.

    Given the abilities, the parameters α of an item have its own information. Abilities that have to be estimated, too,
    leave a scale open, with D origins μ, units 1 + ε (lower triangular) and a rotation 1 + Ω. To first order the
    estimates are slope = α + (ε + Ω)'α and intercept = α + μ'α, so that α is that of estimates and scale; the slopes
    that are held at 0 tell the rotation, and the sample or anchors the rest.
    """
    (num_items, dims), size = slope.shape, information.shape[1]
    origins = list(range(dims))
    units = [(row, k) for k in range(dims) for row in range(k, dims)] if specification.free_slopes else []
    angles = list(itertools.combinations(range(dims), 2))
    directions = np.zeros((len(origins) + len(units) + len(angles), num_items, size))
    for direction, k in zip(directions, origins, strict=False):
        direction[:, dims] = slope[:, k]
    for direction, (row, k) in zip(directions[dims:], units, strict=False):
        direction[:, k] = slope[:, row]
    for direction, (row, k) in zip(directions[dims + len(units) :], angles, strict=True):
        direction[:, k], direction[:, row] = slope[:, row], -slope[:, k]
    free = np.array(specification.free)[:, :size]
    free[:, :dims] |= free[:, :1]  # given the abilities, also the slopes that only the rotation holds
    estimates = one_hot(specification, size)
    jacobian = np.concatenate([estimates, -np.where(free, directions, 0.0).transpose(1, 2, 0)], axis=2)
    whole = np.einsum("ikp,ikl,ilq->pq", jacobian, information, jacobian)
    if specification.mean_fixed:
        of_sample = [num_subjects / sd[k] ** 2 for k in origins] + [num_subjects * (1 + (r == k)) for r, k in units]
        known = np.diag(of_sample)
    else:
        known = ANCHORS[: dims + len(units), : dims + len(units)]
    at = estimates.shape[2]
    whole[at : at + len(known), at : at + len(known)] += known
    return np.einsum("ikp,pq,ilq->ikl", estimates, np.linalg.inv(whole)[:at, :at], estimates)


@pytest.mark.parametrize("name", CASES)
def test_covariances_are_those_of_all_parameters_and_the_scale_together(name):
    types, options, size, dims = CASES[name]
    rng = np.random.default_rng(0)
    specification = specify(types, dims=dims, **options)
    slope, sd = rng.uniform(0.5, 2, (len(types), dims)), np.ones(dims)
    slope[:dims] = np.tril(slope[:dims])
    slope[specification.shared] = 1.2
    if "rasch" in types:
        slope[:], sd[:] = 1.0, 1.3
    roots = 10 * rng.normal(size=(len(types), size, size + 2))
    information = roots @ roots.transpose(0, 2, 1)
    anchors = None if specification.mean_fixed else ANCHORS
    found = item_covariances(slope, information, specification, sd, 80, anchors)
    np.testing.assert_allclose(found, by_one_matrix(slope, information, specification, sd, 80), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("dims", [1, 3])
def test_the_error_of_the_scale_is_that_of_many_samples_of_abilities(dims):
    """Items that are known but for the scale: that of 200 subjects, whose mean is made 0 and whose covariance 1."""
    rng = np.random.default_rng(0)
    slope, number = np.tril(rng.uniform(0.5, 2, (4, dims))), 5000
    theta = rng.normal(size=(number, 200, dims))
    mean = theta.mean(axis=1)
    centred = theta - mean[:, None]
    unit = np.linalg.cholesky(centred.transpose(0, 2, 1) @ centred / 200)
    # a'θ + e = (L'a)'L⁻¹(θ - μ) + e + a'μ
    drawn = np.concatenate([slope @ unit, (mean @ slope.T)[:, :, None]], axis=2)
    expected = np.stack([np.cov(drawn[:, item].T) for item in range(4)])
    known = np.broadcast_to(1e12 * np.eye(dims + 1), (4, dims + 1, dims + 1))
    found = item_covariances(slope, known, specify(["2pl"] * 4, dims=dims), np.ones(dims), 200)
    np.testing.assert_allclose(found, expected, rtol=4 * np.sqrt(2 / number) + 1 / 200, atol=0.001)


def test_an_item_without_a_maximum_has_no_errors_and_the_others_keep_theirs():
    information = np.array([[[4.0, 1.0], [1.0, 3.0]], [[1.0, 1.0], [1.0, 1.0]], [[np.nan, 0.0], [0.0, 1.0]]])
    found = item_covariances(np.ones((3, 1)), information, specify(["2pl"] * 3), np.ones(1), 50)
    assert np.isnan(found[1:]).all(axis=(1, 2)).all()
    np.testing.assert_allclose(found[0], np.linalg.inv(information[0]) + np.diag([0.01, 0.02]))
