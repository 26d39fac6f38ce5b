"""The best mean-field approximation of the 1PL, exactly."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize


@functools.cache
def negative_elbo_1pl(priors: str, num_subjects: int, num_items: int):
    """The negative ELBO with its gradient; compiled once for all responses of one shape."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(21)
    weights = weights / weights.sum()
    sizes = [num_subjects, num_subjects, num_items, num_items, 4, 4]

    def entropy(log_sd):
        return (log_sd + 0.5 * jnp.log(2 * jnp.pi * jnp.e)).sum()

    def normal_term(square, variance):
        """Expected log-density of a normal distribution, from the expected squared distance to its mean."""
        return (-0.5 * square / variance - 0.5 * jnp.log(2 * jnp.pi * variance)).sum()

    def negative_elbo(x, values):
        ability, log_sd_a, difficulty, log_sd_d, mean_part, precision_part = jnp.split(
            x, np.cumsum(sizes)[:-1].tolist()
        )
        mean = ability[:, None] - difficulty[None, :]
        sd = jnp.sqrt(jnp.exp(2 * log_sd_a)[:, None] + jnp.exp(2 * log_sd_d)[None, :])
        observed, right = values >= 0, values == 1
        elbo = (right * mean).sum() + entropy(log_sd_a) + entropy(log_sd_d)
        at_nodes = jax.lax.map(lambda node: (observed * jax.nn.softplus(mean + node * sd)).sum(), nodes)
        elbo -= weights @ at_nodes
        for at, (location, log_sd, variance) in enumerate(((ability, log_sd_a, 1.0), (difficulty, log_sd_d, 1e3))):
            if priors == "vague":
                elbo += normal_term(location**2 + jnp.exp(2 * log_sd), variance)
                elbo -= 0.5 * (mean_part[at] ** 2 + precision_part[at] ** 2)  # unused here: held at 0
                continue
            k, log_r = mean_part[2 * at], mean_part[2 * at + 1]
            level, log_v = precision_part[2 * at], precision_part[2 * at + 1]
            precision = jnp.exp(level + jnp.exp(2 * log_v) / 2)
            square = (location - k) ** 2 + jnp.exp(2 * log_sd) + jnp.exp(2 * log_r)
            elbo += (-0.5 * precision * square + 0.5 * level - 0.5 * jnp.log(2 * jnp.pi)).sum()
            elbo += normal_term(k**2 + jnp.exp(2 * log_r), 1e6) + entropy(log_r)
            elbo += -precision + entropy(log_v) + level  # Gamma(1, 1), and the entropy of a log-normal
        return -elbo

    return jax.jit(jax.value_and_grad(negative_elbo))


def mean_field_optimum(values: np.ndarray, priors: str):
    """Means and standard deviations that maximise the ELBO of the 1PL exactly, and that ELBO.

    float64, L-BFGS; the expected log-likelihood by 21 Gauss-Hermite nodes, all else in closed form. With ability θ_j ~
    N(m, 1/u), q(θ) = N(t, s²), q(m) = N(k, r²) and log u ~ N(l, v²): E log u = l, E u = exp(l + v²/2) and
    E (θ - m)² = (t - k)² + s² + r².
    """
    num_subjects, num_items = values.shape
    with jax.enable_x64(True):
        start = np.concatenate(
            [np.zeros(num_subjects), np.full(num_subjects, -1.0), np.zeros(num_items), np.full(num_items, -1.0)]
            + [np.array([0.0, -1.0, 0.0, -1.0])] * 2
        )
        function = negative_elbo_1pl(priors, *values.shape)
        found = minimize(
            lambda x: tuple(np.asarray(part, float) for part in function(x, values)),
            start,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 5000, "maxfun": 8000, "ftol": 1e-15, "gtol": 1e-6},
        )
    sizes = [num_subjects, num_subjects, num_items, num_items]
    ability, log_sd_a, difficulty, log_sd_d, *_ = np.split(found.x, np.cumsum(sizes))
    return ability, np.exp(log_sd_a), difficulty, np.exp(log_sd_d), -found.fun
