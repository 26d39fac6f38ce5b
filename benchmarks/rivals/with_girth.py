"""Fits girth's 1PL by marginal maximum likelihood."""

import importlib.metadata

from measure import Stopwatch, main, peak_mb


def contestant(settings: dict) -> dict:
    """One fit of `responses` (NPZ)."""
    import numpy as np
    from girth import onepl_mml

    with np.load(settings["responses"]) as arrays:
        responses = arrays["responses"].T.astype(int)
    stopwatch = Stopwatch()
    fit = onepl_mml(responses)
    run = {
        **stopwatch.read(),
        "label": "onepl_mml",
        "peak_mb": peak_mb(),
        "steps": None,
        "difficulty": (fit["Discrimination"] * fit["Difficulty"]).tolist(),
        "mean_ability": 0.0,  # of its population
    }
    return {"versions": {name: importlib.metadata.version(name) for name in ("girth", "numpy")}, "runs": [run]}


if __name__ == "__main__":
    main(contestant)
