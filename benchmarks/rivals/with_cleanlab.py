"""Label quality by cleanlab (confident learning; Northcutt, Jiang and Chuang 2021)."""

import importlib.metadata

from measure import Stopwatch, main, peak_mb


def contestant(settings: dict) -> dict:
    """Of `probabilities` (M, N, C) out of sample and `labels` in `data` (NPZ): scores, low for a wrong label."""
    import numpy as np
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_ensemble_scores, get_label_quality_scores

    with np.load(settings["data"]) as arrays:
        probabilities, labels = arrays["probabilities"].astype(np.float64), arrays["labels"].astype(int)
    probabilities /= probabilities.sum(axis=2, keepdims=True)
    mean, runs = probabilities.mean(axis=0), []
    for method in ("self_confidence", "normalized_margin", "confidence_weighted_entropy"):
        stopwatch = Stopwatch()
        scores = get_label_quality_scores(labels, mean, method=method)
        runs.append({**stopwatch.read(), "label": method, "scores": scores.tolist()})
    stopwatch = Stopwatch()
    scores = get_label_quality_ensemble_scores(labels, list(probabilities), verbose=False)
    runs.append({**stopwatch.read(), "label": "ensemble", "scores": scores.tolist()})
    stopwatch = Stopwatch()
    found = find_label_issues(labels, mean, n_jobs=1)
    runs.append({**stopwatch.read(), "label": "find_label_issues", "scores": (~found).astype(float).tolist()})
    for run in runs:
        run["peak_mb"] = peak_mb()
    return {"versions": {name: importlib.metadata.version(name) for name in ("cleanlab", "numpy")}, "runs": runs}


if __name__ == "__main__":
    main(contestant)
