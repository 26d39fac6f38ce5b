"""Fits by theta-irt: EM on Gauss-Hermite nodes, compiled by JAX. Its slopes are positive."""

import importlib.metadata

from measure import fits, main


def contestant(settings: dict) -> dict:
    """Fits of `responses` and `training` (NPZ) by `model` with `options`."""
    import numpy as np
    import theta

    def read(path: str) -> np.ndarray:
        with np.load(path) as arrays:
            values = arrays["responses"]
        return np.where(values < 0, np.nan, values)

    def fit(responses: np.ndarray) -> theta.IRTModel:
        return theta.fit(responses, settings["model"].upper(), **settings["options"])

    def describe(fit: theta.IRTModel) -> dict:
        items = {"slope": fit.a, "intercept": -fit.a * fit.b, "lower": fit.c, "slip": 1 - fit.d}
        return {
            "steps": fit.n_iter,
            "converged": bool(fit.converged),
            "log_likelihood": float(fit.loglik),
            "items": {name: np.asarray(values).tolist() for name, values in items.items()},
        }

    versions = {name: importlib.metadata.version(name) for name in ("theta-irt", "jax", "numpy")}
    return {"versions": versions, "runs": fits(settings, read, fit, describe)}


if __name__ == "__main__":
    main(contestant)
