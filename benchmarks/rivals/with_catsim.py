"""Adaptive tests by catsim: its simulator with its own defaults, and its selector on recorded answers."""

import importlib.metadata

from measure import Stopwatch, main, peak_mb


def contestant(settings: dict) -> dict:
    """Tests of `number` subjects, of `length` items from the bank in `data` (NPZ).

    The simulator draws the answers and estimates abilities by maximum likelihood, its only estimator. To compare items,
    its selector is asked again, on recorded answers and with posterior means.
    """
    import numpy as np
    from catsim.estimation import NumericalSearchEstimator
    from catsim.initialization import FixedPointInitializer
    from catsim.item_bank import ItemBank
    from catsim.selection import MaxInfoSelector
    from catsim.simulation import Simulator
    from catsim.stopping import TestLengthStopper

    with np.load(settings["data"]) as arrays:
        a, b, c, theta, values = (arrays[name] for name in ("a", "b", "c", "theta", "values"))
    parameters = np.column_stack([a, b, c, np.ones_like(a)])
    number = settings["number"]
    simulator = Simulator(ItemBank(parameters.copy()), theta[:number])
    parts = FixedPointInitializer(0.0), MaxInfoSelector(), NumericalSearchEstimator()
    stopwatch = Stopwatch()
    simulator.simulate(*parts, TestLengthStopper(max_items=settings["length"]))
    run = {**stopwatch.read(), "label": "Simulator", "peak_mb": peak_mb(), "number": number}
    run["ability"] = [float(ability) for ability in simulator.latest_estimations]

    nodes = np.linspace(-6, 6, 1201)
    p = c + (1 - c) / (1 + np.exp(-a * (nodes[:, None] - b)))
    selector, bank, items = MaxInfoSelector(), ItemBank(parameters.copy()), []
    for row in values[: settings["compared"]]:
        asked: list[int] = []
        log_posterior = -0.5 * nodes**2
        for _ in range(settings["length"]):
            weights = np.exp(log_posterior - log_posterior.max())
            ability = weights @ nodes / weights.sum()
            item = selector.select(item_bank=bank, administered_items=asked, est_theta=ability)
            asked.append(int(item))
            log_posterior = log_posterior + np.log(p[:, item] if row[item] else 1 - p[:, item])
        items.append(asked)
    run["items"] = items
    return {"versions": {name: importlib.metadata.version(name) for name in ("catsim", "numpy")}, "runs": [run]}


if __name__ == "__main__":
    main(contestant)
