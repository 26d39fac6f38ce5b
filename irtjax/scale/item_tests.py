"""What an elimination asks of items: their fit, the share of variance that ability explains, and tests of the fit.

Items are right or wrong, or have ordered grades. Both answer alike, so that one loop removes items of either kind.
"""

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.estimation.families import fit_families
from irtjax.estimation.mml import fit_mml
from irtjax.fits.result import Fit
from irtjax.kernels.quadrature import Quadrature, of_test, rectangular
from irtjax.responses.matrix import ResponseMatrix, proportion_correct
from irtjax.responses.scaled import ScaledResponses
from irtjax.responses.values import whole
from irtjax.scale import fit_statistics, overall_fit, tested
from irtjax.scale.choices import GRADED
from irtjax.scale.dependence import pair_dependence, triplet_dependence
from irtjax.scale.item_fit import item_fit
from irtjax.scale.multiple_tests import holm
from irtjax.scale.response_curves import worth_curves
from irtjax.scale.rotation import communalities
from irtjax.types import Bool, Float, Shaped

TRIPLETS = 1000  # that are reported; a long test has millions


@runtime_checkable
class ItemTests(Protocol):
    """How items of one kind are fitted and tested."""

    @property
    def of_pairs(self) -> str:
        """The column of `pairs` that says how dependent two items are."""

    @property
    def least_of_pairs(self) -> float:
        """From which size on a significant one removes an item."""

    @property
    def least_rmsd(self) -> float:
        """The same of the root mean square difference of an item."""

    def fit(self, responses: Any) -> tuple[Fit, tuple[str, ...]]:
        """The fit of items, and the model of each."""

    def explained(self, fit: Fit) -> Float[np.ndarray, " I"]:
        """Share of the variance of each item that ability explains."""

    def below_guessing(self, fit: Fit) -> Bool[np.ndarray, " I"]:
        """Items of fewer right answers than by guessing."""

    def pairs(self, fit: Fit) -> pd.DataFrame:
        """Local dependence of each pair, `first` and `second` by id, with `p_holm`."""

    def items(self, fit: Fit, types: tuple[str, ...]) -> pd.DataFrame:
        """S-X2 of each item: `s_x2`, `degrees_of_freedom`, `p_value`, `rmsd`, `p_holm`."""

    def triplets(self, fit: Fit) -> pd.DataFrame:
        """Residuals of triplets, `first`, `second` and `third` by id, with `p_holm`, the largest first."""

    def overall(self, fit: Fit, types: tuple[str, ...]) -> overall_fit.OverallFit:
        """Fit of the whole test."""


@dataclasses.dataclass(frozen=True)
class RightWrong:
    """Right/wrong items.

    Attributes:
        guessed: ids of items that get a lower asymptote (3PL); all others are 2PL.
        guessing: lower asymptotes that are held, by item id; items that are not in it have none. None: not held.
    """

    guessed: Collection[str] = ()
    guessing: Mapping[str, float] | None = None
    of_pairs: str = "ld_x2"
    least_of_pairs: float = 0.0
    least_rmsd: float = 0.0

    def fit(self, responses: ResponseMatrix) -> tuple[Fit, tuple[str, ...]]:
        """By the 2PL, the 3PL, or one of them for each item."""
        types = tuple("3pl" if item in self.guessed else "2pl" for item in responses.item_ids)
        one = types if len(set(types)) > 1 else types[0]
        return fit_mml(responses, one, guessing=held(self.guessing, responses.item_ids)), types

    def explained(self, fit: Fit) -> Float[np.ndarray, " I"]:
        """The communality."""
        return communalities(fit.parameters)

    def below_guessing(self, fit: Fit) -> Bool[np.ndarray, " I"]:
        """So few that no finite difficulty goes with the guessing that is held."""
        guessing = fit.item_columns.get("guessing", np.zeros(fit.responses.num_items))
        return fit.unbounded & (guessing > proportion_correct(whole(fit.responses).values, axis=0))

    def pairs(self, fit: Fit) -> pd.DataFrame:
        """X² of Chen and Thissen, and Q3; the larger p-value of the two counts.

        That of X² holds where abilities are normally distributed, and that of Q3 where the test tells them well enough.
        """
        ids = fit.responses.item_ids
        exact = pair_dependence(_values(fit), fit.parameters, _nodes(fit))
        exact = exact.assign(first=ids[exact["first"]], second=ids[exact["second"]])
        table = exact.merge(fit_statistics.local_dependence(fit), on=["first", "second"], suffixes=("", "_of_q3"))
        of_q3 = table["p_value_of_q3"].fillna(1.0)
        return _with_holm(table[[*exact, "q3", "q3_excess"]].assign(p_value=np.maximum(table["p_value"], of_q3)))

    def items(self, fit: Fit, types: tuple[str, ...]) -> pd.DataFrame:
        """S-X2."""
        num_free = np.array([3 if kind == "3pl" else 2 for kind in types])
        return _with_holm(item_fit(_values(fit), fit.parameters, _nodes(fit), num_free))

    def triplets(self, fit: Fit) -> pd.DataFrame:
        """Standardised residuals of the shares with all three right."""
        table = _with_holm(triplet_dependence(_values(fit), fit.parameters, _nodes(fit)))
        table = table.iloc[np.argsort(-table["residual"].abs().to_numpy(), kind="stable")[:TRIPLETS]]
        ids = fit.responses.item_ids
        return table.assign(**{name: ids[table[name]] for name in ("first", "second", "third")})

    def overall(self, fit: Fit, types: tuple[str, ...]) -> overall_fit.OverallFit:
        """M2."""
        return overall_fit.overall_fit(fit, types)


@dataclasses.dataclass(frozen=True)
class Graded:
    """Items of ordered grades.

    With many subjects any departure from a model is significant. So a pair is dependent only if its Q3 is also as far
    from what the model expects as Christensen, Makransky and Horton (2017) ask, and an item misfits only if its mean
    grades are also off by more than chance.

    Attributes:
        model: "graded" or "gpcm".
    """

    model: str = "graded"
    of_pairs: str = "q3_excess"
    least_of_pairs: float = 0.2
    least_rmsd: float = 0.05

    def fit(self, responses: ScaledResponses) -> tuple[Fit, tuple[str, ...]]:
        """By the model."""
        return fit_families(responses, self.model), (self.model,) * responses.num_items

    def explained(self, fit: Fit) -> Float[np.ndarray, " I"]:
        """Of the graded model the communality of the normal variables; else of the grades: Var E(y | θ) / Var y."""
        if self.model == "graded":
            return communalities(fit.parameters)
        nodes = rectangular()
        weights = np.exp(nodes.log_weights)
        at = worth_curves(tested.of_fit(fit), nodes.nodes[:, 0])
        spread = weights @ (at.mean - weights @ at.mean) ** 2
        return spread / (spread + weights @ at.variance)

    def below_guessing(self, fit: Fit) -> Bool[np.ndarray, " I"]:
        """None: nobody guesses a grade."""
        return np.zeros(fit.responses.num_items, bool)

    def pairs(self, fit: Fit) -> pd.DataFrame:
        """Q3."""
        return fit_statistics.local_dependence(fit)

    def items(self, fit: Fit, types: tuple[str, ...]) -> pd.DataFrame:
        """S-X2 of ordered categories."""
        table = fit_statistics.item_fit(fit)
        return table[["s_x2", "degrees_of_freedom", "p_value", "rmsd", "p_holm", "infit", "outfit"]]

    def triplets(self, fit: Fit) -> pd.DataFrame:
        """None: they are of right/wrong items."""
        return pd.DataFrame({"first": [], "second": [], "third": [], "residual": [], "p_value": [], "p_holm": []})

    def overall(self, fit: Fit, types: tuple[str, ...]) -> overall_fit.OverallFit:
        """C2."""
        return fit_statistics.overall_fit(fit)


def how_to_test(
    responses: ResponseMatrix | ScaledResponses,
    guessed: Collection[str] = (),
    guessing: Mapping[str, float] | None = None,
    model: str = GRADED[0],
) -> ItemTests:
    """Those of right/wrong items, or of items of grades.

    Raises:
        InputError: counts, shares, or another model of grades.
    """
    if not isinstance(responses, ScaledResponses):
        return RightWrong(guessed, guessing)
    if model not in GRADED:
        raise InputError(f"`model` {model!r:.100}: a scale of grades is built by one of {', '.join(GRADED)}")
    for item, scale in zip(responses.item_ids, responses.scales, strict=True):
        if scale.labels is None:
            raise InputError(
                f"item {str(item)!r} has counts or shares: a scale is built of right/wrong items or grades"
            )
    return Graded(model)


def held(guessing: Mapping[str, float] | None, ids: Shaped[np.ndarray, " I"]) -> Float[np.ndarray, " I"] | None:
    """The lower asymptotes of some items that are held, NaN where they are not; None if none is."""
    return None if guessing is None else np.array([guessing.get(item, np.nan) for item in ids.tolist()])


def _values(fit: Fit) -> np.ndarray:
    return whole(fit.responses).values


def _nodes(fit: Fit) -> Quadrature:
    return of_test(fit.responses.num_items)


def _with_holm(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(p_holm=holm(table["p_value"].to_numpy()))
