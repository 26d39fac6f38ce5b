"""Adaptive tests by adaptivetesting: maximum information and posterior means, on recorded answers."""

import importlib.metadata

from measure import Stopwatch, main, peak_mb


def contestant(settings: dict) -> dict:
    """Tests of `number` subjects, of `length` items from the bank and the answers in `data` (NPZ)."""
    import numpy as np
    from adaptivetesting.implementations import TestAssembler
    from adaptivetesting.math.estimators import ExpectedAPosteriori, NormalPrior
    from adaptivetesting.models import ItemPool

    with np.load(settings["data"]) as arrays:
        a, b, c, values = (arrays[name] for name in ("a", "b", "c", "values"))
    number, ids = settings["number"], list(range(a.size))
    bank = {name: column.tolist() for name, column in (("b", b), ("a", a), ("c", c), ("d", np.ones_like(a)))}
    items, abilities = [], []
    stopwatch = Stopwatch()
    for row in values[:number]:
        test = TestAssembler(
            ItemPool.load_from_list(**bank, simulated_responses=row.tolist(), ids=ids),
            simulation_id="",
            participant_id="",
            ability_estimator=ExpectedAPosteriori,
            estimator_args={"prior": NormalPrior(0, 1), "optimization_interval": (-10, 10)},
            true_ability_level=0.0,
        )
        for _ in range(settings["length"]):
            test.run_test_once()
        items.append([item.id for item in test.answered_items])
        abilities.append(float(test.ability_level))
    run = {**stopwatch.read(), "label": "TestAssembler", "peak_mb": peak_mb(), "number": number}
    run |= {"ability": abilities, "items": items}
    versions = {name: importlib.metadata.version(name) for name in ("adaptivetesting", "numpy")}
    return {"versions": versions, "runs": [run]}


if __name__ == "__main__":
    main(contestant)
