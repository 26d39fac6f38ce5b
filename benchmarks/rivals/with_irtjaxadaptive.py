"""Adaptive tests by irtjax over recorded answers: all at once, twice, and the first of them again in float64."""

from measure import Stopwatch, main, peak_mb


def contestant(settings: dict) -> dict:
    """Tests of `length` items from the bank and the answers in `data` (NPZ), by `rule` and `ability`."""
    import jax
    import numpy as np

    import irtjax
    from irtjax.evaluation.adaptive import Stop, adaptive_test
    from irtjax.evaluation.replay import Replayed, replay
    from irtjax.kernels.models import ItemParameters

    with np.load(settings["data"]) as arrays:
        a, b, c, values = (arrays[name] for name in ("a", "b", "c", "values"))
    bank = ItemParameters(a[:, None], -a * b, np.log(c) - np.log1p(-c), np.full(a.shape, np.inf))

    def tests(values: np.ndarray) -> Replayed:
        stop = Stop(settings["length"])
        test = adaptive_test(bank, rule=settings["rule"], ability=settings["ability"], stop=stop)
        return replay(test, values, jax.random.key(0))

    runs = []
    for label in ("first call", "second call"):
        stopwatch = Stopwatch()
        found = tests(values)
        seconds = stopwatch.read()
        runs.append({**seconds, "label": label, "peak_mb": peak_mb(), "number": len(values)})
        runs[-1] |= {"ability": found.last()[0].tolist(), "items": found.items[: settings["compared"]].tolist()}
    with jax.enable_x64(True):
        found = tests(values[: settings["compared"]])
    exact = {"items": found.items.tolist()}
    return {"versions": irtjax.versions(), "runs": runs, "exact": exact}


if __name__ == "__main__":
    main(contestant)
