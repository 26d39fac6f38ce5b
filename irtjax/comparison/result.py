"""The result of a comparison of models."""

from typing import Any, NamedTuple

import pandas as pd

from irtjax.arguments import checks_types
from irtjax.comparison.candidates import Candidate
from irtjax.errors import InputError
from irtjax.fits.fit_text import counted


class Comparison(NamedTuple):
    """Candidates, and how well each predicts.

    `repr(comparison)` names the recommended ones and has a line for each candidate.

    Attributes:
        table: one row per way of holding out (`by`) and candidate (`model`, `dims`, `estimator`; the model "rates" is
            the baseline of item rates): mean over the folds
            of each of `log_loss`, `brier`, `auc` and `calibration_error`, its standard error (`_se`), its difference
            from the candidate with the lowest log-loss (`_difference`) and the standard error of that
            (`_difference_se`), both from the folds, which are the same for all candidates; `num_predicted`; of the fit
            to all responses `log_likelihood` (marginal, at the estimates), `priors` (whether parameters of items had
            some, so that this is not the maximum), `num_parameters` (NaN for SVI), `aic` and `bic` (NaN with priors),
            `converged` and `seconds`; and `folds_converged`, the share of the fits to folds that converged.
        folds: the scores of each fold.
        calibration: one row per `by`, candidate and bin of predicted probabilities: `number` of predictions, mean
            `predicted` probability and `observed` share of right answers.
        warnings: one row per warning of a fit: the candidate, `by` and `fold` (empty and 0 for the fit to all
            responses), and the `message`.
    """

    table: pd.DataFrame
    folds: pd.DataFrame
    calibration: pd.DataFrame
    warnings: pd.DataFrame

    def __repr__(self) -> str:
        lines = [line for by in self.table["by"].unique() for line in self._lines(by)]
        if len(self.warnings):
            lines.append(f"{counted(len(self.warnings), 'warning')} of the fits: `comparison.warnings`")
        return "\n".join([*lines, "all figures: `comparison.table`, `comparison.folds`"])

    def _lines(self, by: str) -> list[str]:
        """The candidates of one way of holding out, the best first, and which of them is recommended."""
        rows = self.table[self.table["by"] == by].sort_values("log_loss")
        names = [str(Candidate(*row)) for row in rows[list(Candidate._fields)].itertuples(index=False)]
        known = rows["log_loss"].notna().any()
        chosen = f", recommended: {self.recommended(by)}" if known else ""
        width = max(map(len, names))
        return [f"log-loss on held-out {by} ± standard error of the difference from the lowest{chosen}"] + [
            f"  {name:<{width}}  {row.log_loss:.4f}{_above(row)}, {row.folds_converged:.0%} of the fits converged"
            for name, row in zip(names, rows.itertuples(), strict=True)
        ]

    @checks_types
    def recommended(self, by: str) -> Candidate:
        """The candidate with the fewest parameters whose log-loss is within one standard error of the lowest.

        The standard error is that of the difference between the two (the one-standard-error rule of Breiman et al.
        1984, on paired differences). Of candidates with as many parameters, it is the one with the lower log-loss.

        Raises:
            InputError: nothing was held out in this way.
        """
        rows = self.table[self.table["by"] == by].dropna(subset="log_loss")
        if rows.empty:
            raise InputError(f"no comparison by {by!r}, expected one of {', '.join(self.table['by'].unique())}")
        close = rows[rows["log_loss_difference"] <= rows["log_loss_difference_se"].fillna(0)]
        return min(
            (Candidate(*row) for row in close.sort_values("log_loss")[list(Candidate._fields)].itertuples(index=False)),
            key=lambda candidate: candidate.complexity,
        )


def _above(row: Any) -> str:
    """How far a log-loss is above the lowest."""
    difference, error = row.log_loss_difference, row.log_loss_difference_se
    return f" (+{difference:.4f} ± {error:.4f})" if difference > 0 else " (lowest)" if difference == 0 else ""
