"""The whole procedure: from responses to a scale."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.responses.matrix import ResponseMatrix, completed, proportion_correct
from irtjax.responses.scaled import ScaledResponses
from irtjax.responses.values import whole
from irtjax.scale import dimensionality, elimination, guessing, rotation
from irtjax.scale.dimensionality import Factors, ParallelAnalysis
from irtjax.scale.elimination import LEAST_ITEMS, Rules, Scale, TooFewItems
from irtjax.scale.forms import require_design
from irtjax.scale.item_tests import GRADED, held, how_to_test
from irtjax.scale.overall_fit import OverallFit
from irtjax.types import Shaped

LEAST_SUBJECTS = 300  # with fewer, the test of guessing finds guessing where there is none


@dataclasses.dataclass(frozen=True)
class ScaleOptions:
    """What a user may decide.

    Attributes:
        rules: when items are removed.
        eigenvalue_ratio: no scale is built if the first eigenvalue is less than this many times the second, and the
            second is above that of independent items.
        expert: ids of the items that an expert has removed after reading them.
        seed: of the parallel analysis.
        factors: whether a model of one factor is compared with one of two.
        choices: number of answers that subjects choose from. Then items are tested for guessing, if there are
            `LEAST_SUBJECTS` and none is held; otherwise all have 2PL curves, as nobody guesses what is true of oneself.
        guessing: lower asymptotes that are held, by item id; items that are not in it have none. None: not held.
        by_design: whether answers may be missing, because each subject was asked some of the items
            (`irtjax.scale.forms`).
        model: of grades, "graded" or "gpcm".
    """

    rules: Rules = dataclasses.field(default_factory=Rules)
    eigenvalue_ratio: float = 3.0
    expert: tuple[str, ...] = ()
    seed: int = 0
    factors: bool = True
    choices: int | None = None
    guessing: Mapping[str, float] | None = None
    by_design: bool = False
    model: str = GRADED[0]


@dataclasses.dataclass(frozen=True)
class ScaleResult:
    """What the procedure found, step by step.

    Attributes:
        responses: to all items.
        options: what the user decided.
        eigenvalues: parallel analysis of the items that a correlation can be computed for.
        factors: one factor against two; None if not asked for.
        loadings: one row per item: loadings of one factor, rotated loadings of two, communality; None as above.
        guessing: one row per item, see `irtjax.scale.guessing`; None if not tested, as of grades.
        removals: one row per removed item, see `irtjax.scale.elimination.Scale`.
        scale: the retained items; None if there is more than one dimension, or if too few items are left.
        overall: fit of the scale.
        no_scale: why there is no scale; empty if there is one.
    """

    responses: ResponseMatrix | ScaledResponses
    options: ScaleOptions
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
        """Number of items in the scale."""
        return 0 if self.scale is None else self.scale.fit.responses.num_items

    @property
    def graded(self) -> bool:
        """Whether the items have grades; else they are right or wrong."""
        return isinstance(self.responses, ScaledResponses)

    def decisions(self) -> pd.DataFrame:
        """One row per item: `item_id, retained, reason, round, statistic, p_value, partner, proportion_correct`.

        Of grades `mean_response` is in the place of the last.
        """
        table = pd.DataFrame({"item_id": self.responses.item_ids}).merge(self.removals, on="item_id", how="left")
        table.insert(1, "retained", (table["reason"].isna() & (self.scale is not None)).astype(int))
        left = table["reason"].isna() & (table["retained"] == 0)
        table.loc[left, "reason"] = "no scale"
        if isinstance(self.responses, ScaledResponses):
            table["mean_response"] = self.responses.mean(axis=0)
        else:
            table["proportion_correct"] = proportion_correct(self.responses.values, axis=0)
        return table.fillna({"reason": "", "partner": ""}).astype({"round": "Int64"})


def build_scale(
    responses: ResponseMatrix | ScaledResponses,
    options: ScaleOptions = ScaleOptions(),
    on_step: Callable[[str], None] = lambda step: None,
) -> ScaleResult:
    """Builds a scale.

    Args:
        responses: complete, see `irtjax.responses.matrix.completed`, or missing by design; right/wrong ones or grades.
        options: what a user may decide.
        on_step: called with a few words on what is being done.

    Raises:
        InputError: missing answers that the options do not allow, or too few items.
    """
    responses = whole(responses)
    if options.by_design:
        responses = responses.with_responses()
    usable, removals = usable_items(responses, options)
    known = held(options.guessing, usable.item_ids)
    on_step("eigenvalues")
    eigenvalues = dimensionality.parallel_analysis(np.asarray(usable.values).astype(int), options.seed)
    factors = loadings = None
    if options.factors:
        on_step("one factor")
        factors = dimensionality.compare_factors(usable, model_of_factors(usable, options), known, on_step)
        loadings = loadings_table(factors, usable.item_ids)
    guessed, has_guessing = None, frozenset[str]()
    testable = isinstance(usable, ResponseMatrix) and responses.num_subjects >= LEAST_SUBJECTS
    if options.choices is not None and known is None and testable:
        on_step("guessing")
        guessed = guessing.guessing_tests(usable, lambda k: on_step(f"guessing, item {k} of {usable.num_items}"))
        guessed.insert(0, "item_id", usable.item_ids)
        has_guessing = frozenset(guessed["item_id"][guessed["p_holm"] < options.rules.level])
    scale = overall = None
    no_scale = _why_not_one_dimension(eigenvalues, options.eigenvalue_ratio)
    if not no_scale:
        try:
            scale = elimination.eliminate(
                responses,
                has_guessing,
                options.rules,
                options.expert,
                options.guessing,
                lambda number, items: on_step(f"elimination, round {number}: {items} items"),
                options.model,
            )
            removals = scale.removals
        except TooFewItems as error:
            removals, no_scale = error.removals, str(error)
    if scale is not None:
        on_step("overall fit")
        tests = how_to_test(usable, has_guessing, options.guessing, options.model)
        overall = tests.overall(scale.fit, scale.types)
    return ScaleResult(responses, options, eigenvalues, factors, loadings, guessed, removals, scale, overall, no_scale)


def model_of_factors(responses: ResponseMatrix | ScaledResponses, options: ScaleOptions) -> str:
    """By which one factor is compared with two."""
    if isinstance(responses, ScaledResponses):
        return options.model
    return "3pl" if options.choices is not None and options.guessing is None else "2pl"


def _why_not_one_dimension(eigenvalues: ParallelAnalysis, least_ratio: float) -> str:
    """What speaks against a single dimension so clearly that no scale is built; "" if nothing does."""
    if eigenvalues.num_factors == 0:
        return "no dimension: no eigenvalue is above that of independent items"
    if eigenvalues.num_factors > 1 and eigenvalues.ratio < least_ratio:
        return (
            f"several dimensions: {eigenvalues.num_factors} eigenvalues are above those of independent items, and the "
            f"first is {eigenvalues.ratio:.1f} times the second"
        )
    return ""


def usable_items(responses: Any, options: ScaleOptions) -> tuple[Any, pd.DataFrame]:
    """The responses to the items that a correlation can be computed for, and the removals of the others.

    Raises:
        InputError: missing answers that the options do not allow, too few items, or an id in `options.expert` that is
            not among the responses.
    """
    responses = whole(responses)
    if options.by_design:
        responses = responses.with_responses()
        require_design(responses)
    else:
        responses = completed(responses)
    how_to_test(responses, model=options.model)
    removals = elimination.before_fitting(responses, options.expert, options.rules)
    usable = ~np.isin(responses.item_ids, removals["item_id"].to_numpy(str))
    if usable.sum() < LEAST_ITEMS:
        what = "two grades or more" if isinstance(responses, ScaledResponses) else "right and wrong answers"
        raise InputError(f"{usable.sum()} items to be tested that have {what}, a scale needs {LEAST_ITEMS}")
    return responses.choose_items(usable).with_responses(), removals


def loadings_table(factors: Factors, item_ids: Shaped[np.ndarray, " I"]) -> pd.DataFrame:
    """One row per item: its loading in the one-factor fit, its rotated loadings in the two-factor fit, communality."""
    unrotated = rotation.loadings(factors.two.parameters)
    oblimin = rotation.oblimin(unrotated)
    rotated = {
        "oblimin": oblimin,
        "varimax": rotation.varimax(unrotated),
        "target": rotation.target(unrotated, rotation.simple_target(oblimin.loadings)),
    }
    columns = {"item_id": item_ids, "one_factor": rotation.loadings(factors.one.parameters)[:, 0]}
    for name, found in rotated.items():
        columns |= {f"{name}_{k}": found.loadings[:, k - 1] for k in (1, 2)}
    columns["communality"] = rotation.communalities(factors.two.parameters)
    return pd.DataFrame(columns)
