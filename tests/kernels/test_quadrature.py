"""Rules of nodes against moments of the normal distribution."""

import numpy as np
import pytest
from scipy.special import factorial2

from irtjax.kernels.quadrature import gauss_hermite


@pytest.mark.parametrize("num_nodes", [3, 7, 15])
def test_gauss_hermite_is_exact_for_polynomials(num_nodes):
    nodes, log_weights = gauss_hermite(num_nodes)
    assert np.exp(log_weights).sum() == pytest.approx(1.0, abs=1e-14)
    for power in range(2 * num_nodes):
        moment = 0.0 if power % 2 else float(factorial2(power - 1)) if power else 1.0
        size = (np.abs(nodes[:, 0]) ** power) @ np.exp(log_weights)
        assert (nodes[:, 0] ** power) @ np.exp(log_weights) == pytest.approx(moment, abs=1e-11 * max(size, 1.0))


def test_gauss_hermite_of_two_dimensions_is_a_product():
    (line,), of_line = gauss_hermite(5).nodes.T, gauss_hermite(5).log_weights
    nodes, log_weights = gauss_hermite(5, dims=2)
    values = np.exp(0.3 * nodes[:, 0] - 0.2 * nodes[:, 1] ** 2)
    by_hand = np.einsum("k,n,k,n->", *np.exp([of_line, of_line]), np.exp(0.3 * line), np.exp(-0.2 * line**2))
    assert values @ np.exp(log_weights) == pytest.approx(by_hand, rel=1e-13)
