r"""What features of items add where some items have few responses, by model and estimator.

  python -m benchmarks.few_responses --responses=gsm8k.npz --texts=gsm8k.csv --pretrained=all-MiniLM-L6-v2

A fifth of the items keep `--numbers` random responses each. Prints the log-loss of their other responses, and by how
much it is lower than that of the same model and estimator without features: with normal priors of the same kind, whose
means are the same for all items. "Default" is a fit with no flags. Intervals (95%) are over seeds, each with other
items and responses. Features are those of `experiments.predict_difficulty`. Expected duration on 2 CPU cores for 5,041
subjects and 249 items: half an hour.
"""

import sys
import time
import warnings

import numpy as np
import pandas as pd
from absl import flags
from tqdm import tqdm

import irtjax
from experiments.common import app
from experiments.common.item_features import features_of
from irtjax.arguments import whole_number
from irtjax.errors import InputError
from irtjax.fits.item_features import ItemFeatures
from irtjax.integration.prediction import LEAST_PREDICTED, predict
from irtjax.pretrained.folder import read_pretrained
from irtjax.responses.folds import folds_of
from irtjax.responses.matrix import MISSING
from irtjax.selection.summary import interval
from irtjax.tasks.item_texts import read_item_texts

_RESPONSES = flags.DEFINE_string("responses", None, "file of responses", required=True)
_TEXTS = flags.DEFINE_string("texts", None, "CSV of ids and texts", required=True)
_COLUMNS = flags.DEFINE_list("columns", [], "further columns of that file to predict from")
_PRETRAINED = flags.DEFINE_string("pretrained", None, "folder of an encoder, whose vectors of the texts are features")
_NUMBERS = flags.DEFINE_list("numbers", ["2", "5", "20"], "responses that are kept of a new item")
_SEEDS = flags.DEFINE_integer("seeds", 10, "choices of items and responses", lower_bound=2)

WAYS = (  # model, estimator, features
    ("rasch", "mml", "without"),
    ("rasch", "mml", "with"),
    ("2pl", "mml", "default"),
    ("2pl", "mml", "without"),
    ("2pl", "mml", "with"),
    ("2pl", "svi", "without"),
    ("2pl", "svi", "with"),
)


def main() -> None:
    """Hides responses, fits, predicts them and prints."""
    warnings.simplefilter("ignore", irtjax.FitWarning)
    responses, x = joined()
    numbers = [whole_number("numbers", int(number), 1) for number in _NUMBERS.value]
    print(
        f"{responses.num_subjects:,} subjects, {responses.num_items:,} items, {x.values.shape[1]} features", flush=True
    )
    for number in numbers:
        print(table(responses, x, number).to_string(index=False), flush=True)


def table(responses: irtjax.ResponseMatrix, x: ItemFeatures, number: int) -> pd.DataFrame:
    """One row per way, for items with so many responses."""
    losses: dict[tuple[str, ...], list[float]] = {way: [] for way in WAYS}
    ended: dict[tuple[str, ...], set[str]] = {way: set() for way in WAYS}
    seconds = dict.fromkeys(WAYS, 0.0)
    for seed in tqdm(range(_SEEDS.value), f"{number} responses", disable=not sys.stderr.isatty()):
        values, hidden = with_few(responses, number, seed)
        given = irtjax.ResponseMatrix(values, responses.subject_ids, responses.item_ids)
        for way in WAYS:
            began = time.perf_counter()
            fit = fitted(given, x, *way)
            seconds[way] += time.perf_counter() - began
            ended[way].add(fit.status.value)
            right = predict(fit.parameters, values, *fit.population)[hidden]
            happened = np.where(responses.values[hidden] == 1, right, 1 - right)
            losses[way].append(-np.log(np.maximum(happened, LEAST_PREDICTED)).mean())
    rows = []
    for way in WAYS:
        gain = np.subtract(losses[*way[:2], "without"], losses[way])
        rows.append(
            {
                "responses": number,
                **dict(zip(("model", "estimator", "features"), way, strict=True)),
                "log_loss": f"{np.mean(losses[way]):.4f}",
                "lower_by": "" if way[2] == "without" else f"{gain.mean():.4f} ± {interval(gain):.4f}",
                "seconds": f"{seconds[way] / _SEEDS.value:.0f}",
                "ended": ", ".join(sorted(ended[way])),
            }
        )
    return pd.DataFrame(rows)


def joined() -> tuple[irtjax.ResponseMatrix, ItemFeatures]:
    """The items that have responses and a text, and their features."""
    texts = read_item_texts(_TEXTS.value, (), _COLUMNS.value)
    responses = irtjax.read_responses(_RESPONSES.value, sparse=False)
    at = pd.Index(texts.ids).get_indexer(pd.Index(responses.item_ids.astype(str)))
    if not (at >= 0).any():
        raise InputError(f"{_TEXTS.value}: has none of the items of {_RESPONSES.value}")
    items = texts.choose(at[at >= 0])
    encoder = None if _PRETRAINED.value is None else read_pretrained(_PRETRAINED.value)
    return responses.choose_items(at >= 0), features_of(items, encoder, items.table, "items").blocks()


def with_few(responses: irtjax.ResponseMatrix, number: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The responses (J, I) of which new items keep few, and which (J, I) are hidden."""
    new = folds_of(responses.num_items, 5, seed) == 0
    order = np.random.default_rng(seed).random(responses.values.shape)
    order[responses.values == MISSING] = 2  # after all that are there
    hidden = new & (order.argsort(0).argsort(0) >= number) & (responses.values != MISSING)
    return np.where(hidden, np.int8(MISSING), responses.values), hidden


def fitted(responses: irtjax.ResponseMatrix, x: ItemFeatures, model: str, estimator: str, kind: str) -> irtjax.Fit:
    """The fit of one way."""
    if kind == "with":
        return irtjax.fit(responses, model, estimator, features=x if estimator == "mml" else x.values)
    if kind == "default" or estimator == "svi":  # its priors are hierarchical
        return irtjax.fit(responses, model, estimator)
    return irtjax.fit(responses, model, estimator, features=np.zeros((responses.num_items, 1)))


if __name__ == "__main__":
    app.run(main, compiles_anew=True)
