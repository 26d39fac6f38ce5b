"""Published responses and the estimates of R's mirt and psych for them, and simulated tests."""

import functools

import numpy as np
import pandas as pd
from scipy.special import expit
from simulation import draw

import irtjax
from irtjax import ResponseMatrix

LABELS = ("contradiction", "entailment", "neutral")
# positions kept by the authors' published procedure (the oracle's README)
KEPT = {
    "contradiction": [*range(1, 9), 12, 13, 15, 16, 17, 18, 21, 23, 24, 25, 27, 29],
    "entailment": [at for at in range(1, 31) if at not in (1, 22)],
    "neutral": [at for at in range(1, 31) if at not in (3, 7)],
}


def matrix(values):
    values = np.asarray(values, np.int8)
    return ResponseMatrix(
        values, [f"s{j}" for j in range(values.shape[0])], [f"i{i:03d}" for i in range(values.shape[1])]
    )


def simulated(seed, slope, intercept, num_subjects=1000, theta=None):
    """Responses by the 2PL."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=num_subjects) if theta is None else theta
    return draw(rng, expit(np.outer(theta, slope) + intercept))


class Oracle:
    """The reference data, by the names of sets in the oracle's files."""

    def __init__(self, folder):
        self.folder = folder / "oracle"
        self.human = folder / "human_responses"

    def table(self, name):
        return pd.read_csv(self.folder / f"{name}.csv")

    @functools.cache  # noqa: B019  one object a session
    def responses(self, name):
        if name in ("lsat7", "sim2d"):
            table = self.table(f"{name}_responses")
            items = [column for column in table if column.lower().startswith("i")]
            return ResponseMatrix(table[items].to_numpy(np.int8), np.arange(len(table)).astype(str), items)
        final = name.startswith("final_")
        group, label = name.removeprefix("final_").split("_")
        everything = irtjax.read_responses(self.human / "snli_emnlp2016" / f"irt_file_{group}_coded.csv")
        if label == "all":
            return everything
        lines = (self.human / "snli_emnlp2016" / f"group_{group}.txt").read_text().splitlines()
        gold = dict(line.split() for line in lines)
        at = np.flatnonzero([gold[item] == label for item in everything.item_ids])
        at = at[np.array(KEPT[label]) - 1] if final else at
        return ResponseMatrix(everything.values[:, at], everything.subject_ids, everything.item_ids[at])

    @functools.cache  # noqa: B019
    def fit(self, name, model="2pl", dims=1):
        return irtjax.fit(self.responses(name), model, dims=dims, standard_errors=False)
