"""How fast a network learned: measures of one training that the noise of its best epoch does not move.

The epoch of the best validation accuracy wanders: late in training the accuracy hardly changes, and which epoch is the
best there is chance. The measures here look at the whole curve instead.
"""

import numpy as np
import pandas as pd

SMOOTHED_EPOCHS = 3
REACHED_SHARE = 0.99  # of the baseline's best accuracy
BUDGETS = (0.1, 0.25, 0.5, 1.0)  # of the examples that the baseline uses in all


def learning_curves(table: pd.DataFrame) -> pd.DataFrame:
    """The table of `compare_curricula` with the columns `used` and `smoothed`, in the order of epochs.

    `used` counts the examples up to and including an epoch. `smoothed` is the mean validation accuracy of an epoch and
    the two before it, or of as many as there are.
    """
    table = table.sort_values(["strategy", "seed", "epoch"], kind="stable")
    groups = table.groupby(["strategy", "seed"], sort=False)
    smoothed = groups.dev_accuracy.rolling(SMOOTHED_EPOCHS, min_periods=1).mean()
    return table.assign(used=groups.examples_used.cumsum(), smoothed=smoothed.droplevel([0, 1]))


def examples_to_reach(curve: pd.DataFrame, target: float) -> tuple[float, bool]:
    """Examples that a training used until its smoothed accuracy first was at least `target`, and whether it was.

    Where it never was, all that the training used: the number is then too small.
    """
    reached = curve.smoothed.to_numpy() >= target
    if not reached.any():
        return float(curve.used.iloc[-1]), False
    return float(curve.used.to_numpy()[reached.argmax()]), True


def area(curve: pd.DataFrame, examples: float) -> float:
    """Mean validation accuracy over the examples up to a number of them, by the trapezoidal rule; 0 before the first.

    Where the training ends earlier, its last accuracy counts from there on.
    """
    used, accuracy = curve.used.to_numpy(float), curve.dev_accuracy.to_numpy(float)
    inside = used < examples
    at = np.concatenate([[0.0], used[inside], [examples]])
    values = np.interp(at, np.concatenate([[0.0], used]), np.concatenate([[0.0], accuracy]))
    return float(np.trapezoid(values, at) / examples)


def accuracy_within(curve: pd.DataFrame, examples: float) -> float:
    """Test accuracy at the epoch of the best validation accuracy among those that end within so many examples.

    NaN where the first epoch takes more.
    """
    within = curve[curve.used <= examples]
    return float("nan") if within.empty else float(within.test_accuracy[within.dev_accuracy.idxmax()])


def never_half(table: pd.DataFrame) -> int:
    """How many networks never came to select half of the data, which can happen if all they select is easy.

    Args:
        table: columns seed and share, of the trainings under one strategy.
    """
    return int((table.groupby("seed").share.max() < 0.5).sum())
