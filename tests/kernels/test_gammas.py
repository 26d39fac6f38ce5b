"""Log Γ and ψ against SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import digamma, gammaln

from irtjax.kernels.gammas import LARGE, log_gamma_and_digamma

X = np.concatenate([np.logspace(-8, 6, 500), np.linspace(0.5, LARGE + 10, 500), [LARGE, np.nextafter(LARGE, 99)]])


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-13), (np.float32, 5e-6)])
def test_both_are_those_of_scipy(dtype, tolerance):
    x = X.astype(dtype)
    with jax.enable_x64(dtype == np.float64):
        found = log_gamma_and_digamma(jnp.asarray(x))
    for values, expected in zip(found, (gammaln(x.astype(float)), digamma(x.astype(float))), strict=True):
        assert values.dtype == dtype
        error = np.abs(np.asarray(values, float) - expected) / np.maximum(1, np.abs(expected))
        assert error.max() < tolerance
