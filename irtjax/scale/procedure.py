"""The whole procedure: from responses to a scale."""

import dataclasses
from collections.abc import Callable, Collection

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.responses.matrix import ResponseMatrix, completed, percent_correct
from irtjax.scale import dimensionality, elimination, guessing, rotation
from irtjax.scale.dimensionality import Factors, ParallelAnalysis
from irtjax.scale.elimination import LEAST, Rules, Scale, TooFewItems
from irtjax.scale.overall_fit import OverallFit, overall_fit

LEAST_SUBJECTS = 300  # with fewer the test of guessing finds it where there is none (docs/build_scale.md)


@dataclasses.dataclass(frozen=True)
class Options:
    """What a user may decide.

    Attributes:
        rules: when items are removed.
        eigenvalue_ratio: no scale is built where the first eigenvalue is less than so many times the second, and the
            second above that of independent items.
        expert: ids of items removed by reading.
        seed: of the parallel analysis.
        factors: whether one and two factors are fitted.
        guessing: whether items are tested for guessing, given `LEAST_SUBJECTS`; otherwise all have 2PL curves.
    """

    rules: Rules = dataclasses.field(default_factory=Rules)
    eigenvalue_ratio: float = 3.0
    expert: tuple[str, ...] = ()
    seed: int = 0
    factors: bool = True
    guessing: bool = True


@dataclasses.dataclass(frozen=True)
class Built:
    """What the procedure found, step by step.

    Attributes:
        responses: of all items.
        options: what the user decided.
        eigenvalues: with parallel analysis; of the items not removed by reading.
        factors: one against two; None where not asked for.
        loadings: a row an item: unrotated, oblimin, varimax and target-rotated loadings, communality; None as above.
        guessing: a row an item, see `irtjax.scale.guessing`; None where not tested.
        removals: what was removed and why, see `irtjax.scale.elimination.Scale`.
        scale: what is retained; None where there is more than one dimension, or too few items are left.
        overall: fit of the scale.
        no_scale: why there is none; empty where there is one.
    """

    responses: ResponseMatrix
    options: Options
    eigenvalues: ParallelAnalysis
    factors: Factors | None
    loadings: pd.DataFrame | None
    guessing: pd.DataFrame | None
    removals: pd.DataFrame
    scale: Scale | None
    overall: OverallFit | None
    no_scale: str = ""

    @property
    def num_retained(self) -> int:
        """Items of the scale."""
        return 0 if self.scale is None else self.scale.fit.responses.num_items

    def decisions(self) -> pd.DataFrame:
        """One row an input item: `item_id, retained, reason, round, statistic, p_value, partner, percent_correct`."""
        table = pd.DataFrame({"item_id": self.responses.item_ids}).merge(self.removals, on="item_id", how="left")
        table.insert(1, "retained", (table["reason"].isna() & (self.scale is not None)).astype(int))
        left = table["reason"].isna() & (table["retained"] == 0)
        table.loc[left, "reason"] = "no scale"
        table["percent_correct"] = percent_correct(self.responses.values, axis=0)
        return table.fillna({"reason": "", "partner": ""}).astype({"round": "Int64"})


def build(
    responses: ResponseMatrix, options: Options = Options(), on_step: Callable[[str], None] = lambda step: None
) -> Built:
    """Builds a scale.

    Args:
        responses: complete, see `irtjax.responses.matrix.completed`.
        options: what a user may decide.
        on_step: called with a few words on what is being done.

    Raises:
        InputError: missing answers, or too few items.
    """
    usable, removals = usable_items(responses, options)
    on_step("eigenvalues")
    eigenvalues = dimensionality.parallel_analysis(usable.values, options.seed)
    factors = loadings = None
    if options.factors:
        on_step("one and two factors")
        factors = dimensionality.compare_factors(usable)
        loadings = loadings_table(factors, usable.item_ids)
    guessed, has_guessing = None, frozenset()
    if options.guessing and responses.num_subjects >= LEAST_SUBJECTS:
        on_step("guessing")
        guessed = guessing.guessing_tests(usable, lambda k: on_step(f"guessing, item {k} of {usable.num_items}"))
        guessed.insert(0, "item_id", usable.item_ids)
        has_guessing = frozenset(guessed["item_id"][guessed["p_holm"] < options.rules.level])
    scale = overall = None
    no_scale = ""
    if eigenvalues.num_factors == 0:
        no_scale = "no dimension: no eigenvalue is above that of independent items"
    elif eigenvalues.num_factors > 1 and eigenvalues.ratio < options.eigenvalue_ratio:
        no_scale = (
            f"several dimensions: {eigenvalues.num_factors} eigenvalues are above those of independent items, and the "
            f"first is {eigenvalues.ratio:.1f} times the second"
        )
    else:
        try:
            scale = elimination.eliminate(
                responses,
                has_guessing,
                options.rules,
                options.expert,
                lambda number, items: on_step(f"elimination, round {number}: {items} items"),
            )
            removals = scale.removals
        except TooFewItems as error:
            removals, no_scale = error.removals, str(error)
    if scale is not None:
        on_step("overall fit")
        overall = overall_fit(scale.fit, scale.types)
    return Built(responses, options, eigenvalues, factors, loadings, guessed, removals, scale, overall, no_scale)


def usable_items(responses: ResponseMatrix, options: Options) -> tuple[ResponseMatrix, pd.DataFrame]:
    """The responses to items that correlations can be had of, and the removals of the others.

    Raises:
        InputError: missing answers, too few items, or an id of `options.expert` that is not there.
    """
    responses = completed(responses)
    removals = elimination.before_fitting(responses, options.expert, options.rules)
    usable = ~np.isin(responses.item_ids, removals["item_id"].to_numpy(str))
    if usable.sum() < LEAST:
        raise InputError(f"{usable.sum()} items to be tested that have right and wrong answers, a scale needs {LEAST}")
    return responses.choose_items(usable), removals


def loadings_table(factors: Factors, item_ids: Collection[str]) -> pd.DataFrame:
    """Loadings of the two-factor fit, rotated, and of the one-factor fit."""
    unrotated = rotation.loadings(factors.two.parameters)
    oblimin = rotation.oblimin(unrotated)
    rotated = {
        "oblimin": oblimin,
        "varimax": rotation.varimax(unrotated),
        "target": rotation.target(unrotated, rotation.simple_target(oblimin.loadings)),
    }
    columns = {"item_id": item_ids, "one_factor": rotation.loadings(factors.one.parameters)[:, 0]}
    for name, found in rotated.items():
        columns |= {f"{name}_{k + 1}": found.loadings[:, k] for k in range(2)}
    columns["communality"] = rotation.communalities(factors.two.parameters)
    return pd.DataFrame(columns)
