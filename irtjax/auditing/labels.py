"""Predictions of any models to the difficulty of each example, and to those whose labels are likely to be wrong."""

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from irtjax.arguments import checks_types, whole_number
from irtjax.auditing.choices import MOST_OPTIONS, Choices
from irtjax.auditing.confusion import label_probability
from irtjax.auditing.predicted import Predicted, read_predictions
from irtjax.auditing.training_dynamics import cartography, forgetting_events
from irtjax.auditing.wrong_keys import wrong_keys
from irtjax.errors import InputError
from irtjax.estimation.diagnostics import FitWarning
from irtjax.fits.result import Fit
from irtjax.fitting import fit
from irtjax.responses.matrix import ResponseMatrix
from irtjax.types import Float, Shaped

FEWEST = 2  # models
MOST_ENTRIES = 2**28  # examples times classes, of the probabilities of labels: 2 GB for each table of them
_SUSPICION = {  # whether the least are suspected
    "mean_confidence": True,
    "label_probability": True,
    "evidence": False,
    "difficulty": False,
    "forgetting_events": False,
}


@dataclasses.dataclass(frozen=True)
class Difficulty:
    """How hard N examples are for M models.

    Attributes:
        table: one row per example, in the order of the labels: `item_id`; `label`; `difficulty` and `difficulty_se`, in
            logits around the mean ability of the models; `extreme`, whether all models are right or all are wrong, so
            that the difficulty comes from the prior; `share_right` of the `num_models` that predict it;
            `label_probability`, given the classes that all models predict, and the likeliest other class `instead`, see
            `irtjax.auditing.confusion` (not there, and -1, beyond 2²⁸ examples times classes); `evidence` that the
            label is wrong (the logarithm of the Bayes factor, in nats) and `p_wrong_label`, see
            `irtjax.auditing.wrong_keys` (of more than 50 classes by right and wrong alone), which take models as
            independent: far too sure of networks, which err alike. Of logits and probabilities `mean_confidence` and
            `variability`, of checkpoints in order `forgetting_events`, see `irtjax.auditing.training_dynamics`.
        fit: of the item response model.
    """

    table: pd.DataFrame
    fit: Fit

    @property
    def difficulty(self) -> Float[np.ndarray, " N"]:
        """(N,) difficulties in the order of the labels, logits."""
        return self.table.difficulty.to_numpy()

    @checks_types
    def suspects(self, most: int | None = None, by: str | None = None) -> pd.DataFrame:
        """The examples by how likely it is that their labels are wrong, the most suspicious first.

        Args:
            most: rows; None for all.
            by: "mean_confidence", the lowest first, which is how confident learning ranks by self-confidence
                (Northcutt, Jiang and Chuang 2021); "label_probability", the lowest first; "evidence"; "difficulty"; or
                "forgetting_events". By default mean confidence where the models gave logits or probabilities, which
                tell more than classes, else the probability of the label.

        Raises:
            InputError: `most` is not a positive integer; `by` is none of these, or the table has no such column.
        """
        ways = [name for name in _SUSPICION if name in self.table]
        chosen = ways[0] if by is None else by
        if chosen not in ways:
            raise InputError(f"`by` {by!r:.50}: expected one of {', '.join(ways)}")
        columns = [chosen, "evidence", "difficulty"]
        order = self.table.sort_values(columns, ascending=[_SUSPICION[name] for name in columns], kind="stable")
        return (order if most is None else order.head(whole_number("most", most, 1))).reset_index(drop=True)


@checks_types
def difficulty(
    predictions: Any,
    labels: Shaped[np.ndarray, " N"] | Sequence[int],
    *,
    item_ids: Sequence[Any] | None = None,
    model_ids: Sequence[Any] | None = None,
    in_order: bool = False,
    model: str = "rasch",
    **options: Any,
) -> Difficulty:
    """The difficulty of examples by the predictions of any models, and which labels are likely to be wrong.

    A model is a subject and an example an item: a prediction is right where it is the label. The checkpoints of one
    training count as a crowd, too. They are not independent subjects: standard errors are then too small.

    **Predictions should be for examples that a model was not trained on**, as those of cross-validation. A model that
    was trained on a wrong label may have memorised it. Leave those predictions out (-1 or NaN).

    Args:
        predictions: of M ≥ 2 models for N examples: classes (M, N), logits or probabilities (M, N, C), or a list of M
            such arrays; see `irtjax.auditing.predicted.read_predictions`.
        labels: (N,) classes, from 0.
        item_ids: (N,) of the examples; item_1, item_2, … by default.
        model_ids: (M,) of the models; model_1, model_2, … by default.
        in_order: whether the models are checkpoints of one training, the earliest first: forgetting events are counted.
        model: of right and wrong answers, as of `irtjax.fit`. "rasch", P = σ(θ - b), is the scale on which
            `irtjax.selection.Curriculum` estimates ability. The difficulty of the "2pl" is where the curve of an
            example is at a half, which may be anywhere where the curve is flat or falls, as that of a wrong label does.
        options: of `irtjax.fit`, such as `estimator="svi"`.

    Returns:
        A `Difficulty`, with a table and a ranking of suspects.

    Raises:
        InputError: one model, ids of another number, as `read_predictions`, or as `irtjax.fit`.

    Warns:
        FitWarning: as `irtjax.fit`; and how many examples have a slope that cannot be told from 0.
    """
    predicted = read_predictions(predictions, labels)
    num_models, num_examples = predicted.classes.shape
    if num_models < FEWEST:
        raise InputError("`predictions` of 1 model, expected at least 2: several seeds, folds or checkpoints")
    ids = _ids("item_ids", item_ids, num_examples, "item")
    responses = ResponseMatrix(predicted.right, _ids("model_ids", model_ids, num_models, "model"), ids)
    found = fit(responses, model, **options)
    _warn_of_flat_curves(found)
    return Difficulty(_table(predicted, found, in_order), found)


def _warn_of_flat_curves(found: Fit) -> None:
    if found.discriminates is None:
        return
    flat = int((~found.discriminates & ~found.extreme).sum())
    if flat:
        warnings.warn(
            f"{flat:,} of {found.responses.num_items:,} examples have a slope that cannot be told from 0: their "
            "difficulties mean nothing: take model='rasch', the default",
            FitWarning,
            stacklevel=4,
        )


def _table(predicted: Predicted, found: Fit, in_order: bool) -> pd.DataFrame:
    """What is known of each example."""
    right, items = predicted.right, found.items()
    table = pd.DataFrame({"item_id": items.item_id, "label": predicted.labels})
    for name in ("difficulty", "difficulty_se", "extreme"):
        table[name] = items.get(name, np.nan)
    table["num_models"] = (right >= 0).sum(axis=0)
    with np.errstate(invalid="ignore"):
        table["share_right"] = (right == 1).sum(axis=0) / table.num_models
    if predicted.num_classes <= MOST_OPTIONS:
        names = np.arange(max(predicted.num_classes, 2))  # of a single class there is no other
        choices = Choices(
            predicted.classes, predicted.labels, names, found.responses.subject_ids, found.responses.item_ids
        )
        evidence = wrong_keys(found, choices)
    else:
        evidence = wrong_keys(found)
    table["instead"] = -1
    if len(table) * predicted.num_classes <= MOST_ENTRIES:
        probability = label_probability(predicted.classes, predicted.labels, predicted.num_classes)
        table["label_probability"], table["instead"] = probability.label, probability.instead
    table["evidence"], table["p_wrong_label"] = evidence.evidence, evidence.p_wrong_key
    if predicted.confidence is not None:
        table["mean_confidence"], table["variability"] = cartography(predicted.confidence)
    if in_order:
        table["forgetting_events"] = forgetting_events(right)
    return table


def _ids(name: str, given: Sequence[Any] | None, number: int, kind: str) -> Shaped[np.ndarray, " N"]:
    """Ids as text.

    Raises:
        InputError: another number of them.
    """
    if given is None:
        return np.array([f"{kind}_{n}" for n in range(1, number + 1)])
    if len(given) != number:
        raise InputError(f"`{name}`: {len(given):,} ids, expected {number:,}")
    return np.asarray(given).astype(str)
