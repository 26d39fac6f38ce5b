"""Predictions of grades by the mirt of PyPI: models GRM, GPCM and PCM by default, the ability integrated out."""

import importlib.metadata

from measure import main

NODES, BOUND = 241, 6.0  # a rectangular rule, in standard deviations of the population


def contestant(settings: dict) -> dict:
    """Fits `responses` (NPZ, NaN where missing) by `model`, and writes probabilities (J, I, C) to `predictions`."""
    import mirt
    import numpy as np

    with np.load(settings["responses"]) as arrays:
        table = arrays["responses"]
    categories, theta = settings["categories"], np.linspace(-BOUND, BOUND, NODES)
    # an item's scale is that of the test: its own highest grade may be held out
    given = np.where(np.isnan(table), -1, table).astype(int)
    fit = mirt.fit_mirt(
        given, model=settings["model"], n_categories=[categories] * table.shape[1], compute_standard_errors=False
    )
    curves = np.stack(
        [
            [fit.model.category_probability(theta[:, None], item, k) for k in range(categories)]
            for item in range(table.shape[1])
        ]
    )  # items, categories, nodes
    log_p = np.log(np.maximum(curves, 1e-12))
    joint = -0.5 * theta[None, :] ** 2 + np.zeros((len(table), 1))
    for item in range(table.shape[1]):
        seen = given[:, item] >= 0
        joint[seen] += log_p[item, given[seen, item]]
    weights = np.exp(joint - joint.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    np.savez(settings["predictions"], probability=np.einsum("jq,icq->jic", weights, curves))
    versions = {name: importlib.metadata.version(name) for name in ("mirt", "numpy")}
    return {"versions": versions, "runs": [{"label": "fit", "converged": bool(fit.converged)}]}


if __name__ == "__main__":
    main(contestant)
