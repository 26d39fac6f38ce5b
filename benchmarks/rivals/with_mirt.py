"""Fits by the mirt of PyPI, a Python package with a Rust core; R's package of that name is another one.

It holds slopes in [0.1, 5], difficulties in [-6, 6], lower asymptotes in [0, 0.5] and upper ones in [0.5, 1].
"""

import importlib.metadata

from measure import fits, main


def contestant(settings: dict) -> dict:
    """Fits of `responses` and `training` (NPZ) by `model` with `options`."""
    import mirt
    import numpy as np

    def read(path: str) -> np.ndarray:
        with np.load(path) as arrays:
            return arrays["responses"].astype(int)

    def fit(responses: np.ndarray) -> mirt.FitResult:
        return mirt.fit_mirt(responses, model=settings["model"].upper(), **settings["options"])

    def describe(fit: mirt.FitResult) -> dict:
        found = fit.model.parameters
        slope, difficulty = found["discrimination"], found["difficulty"]
        lower, upper = found.get("guessing", np.zeros_like(slope)), found.get("upper", np.ones_like(slope))
        items = {"slope": slope, "intercept": -slope * difficulty, "lower": lower, "slip": 1 - upper}
        return {
            "steps": fit.n_iterations,
            "converged": bool(fit.converged),
            "log_likelihood": float(fit.log_likelihood),
            "items": {name: np.asarray(values).tolist() for name, values in items.items()},
        }

    versions = {name: importlib.metadata.version(name) for name in ("mirt", "numpy", "scipy")}
    return {"versions": versions, "runs": fits(settings, read, fit, describe)}


if __name__ == "__main__":
    main(contestant)
