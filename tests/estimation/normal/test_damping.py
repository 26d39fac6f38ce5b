"""Damped steps, on linear iterations x ← x - λx of which all is known: after a step of share s, (1 - sλ)x is left."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.estimation.normal.damping import damp, undamped

X = np.array([3.0, -4.0])


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


def iterate(rates, num_steps):
    """Where the iterations are after each step (steps + 1, N, 2), and the shares of the steps (steps, N)."""
    rates, at = jnp.asarray(rates, float), jnp.tile(X, (len(rates), 1))
    damping, path, shares = undamped(at), [at], []
    for _ in range(num_steps):
        damping, step = damp(damping, -rates[:, None] * at)
        at = at + step
        path.append(at)
        shares.append(damping.share)
    return np.array(path), np.array(shares)


def test_steps_that_do_not_turn_back_are_made_in_full():
    """Down to -1/3 of the last one: x_n = (1 - λ)^n x."""
    rates = np.array([0.0, 0.1, 1.0, 1.2, 1.33])
    path, shares = iterate(rates, 6)
    np.testing.assert_array_equal(shares, 1)
    np.testing.assert_allclose(path, ((1 - rates) ** np.arange(7)[:, None])[..., None] * X, atol=1e-12)


def test_of_a_full_and_a_half_step_back_the_one_that_leaves_less_is_made():
    """After a first step -r x is left, and after the second r or (1 - r)/2 of that."""
    back = np.array([0.1, 0.3, 0.33, 0.34, 0.5, 0.9, 1.0])
    path, shares = iterate(1 + back, 2)
    left = np.abs(path[2] / path[1])
    np.testing.assert_allclose(left, np.minimum(back, (1 - back) / 2)[:, None] * np.ones(2), atol=1e-12)
    np.testing.assert_array_equal(shares[1], np.where(back < 1 / 3, 1, 0.5))


def test_iterations_that_would_run_away_come_to_rest():
    """Undamped they grow by λ - 1 in each step. A share is halved where sλ > 1 + s/3, else it grows by 1.4."""
    rates = np.array([2.1, 3.0, 7.0, 40.0])
    path, shares = iterate(rates, 40)
    settled = (shares * rates)[10:]
    assert (settled > 0.5).all()
    assert (settled <= 1.4 * (1 + shares[9:-1] / 3) + 1e-9).all()
    assert (np.abs(path[-1] / X) < 1e-15).all()


def test_rows_are_damped_by_themselves():
    both, alone = iterate([0.5, 3.0], 8), iterate([3.0], 8)
    for one, other in zip(both, alone, strict=True):
        np.testing.assert_array_equal(one[:, 1:], other)
