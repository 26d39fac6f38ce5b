"""The text of a scale's report: an overview, and a section on each group of items."""

from pathlib import Path
from urllib.parse import quote

import numpy as np
import pandas as pd

from experiments.reports import markdown
from experiments.reports.render import render
from experiments.reports.scale.findings import GroupFindings, Wanted
from experiments.reports.scale.prose_of_subjects import comparisons, levels
from irtjax.responses.matrix import MISSING
from irtjax.responses.scaled import ScaledResponses
from irtjax.scale import information
from irtjax.scale.confirmation import Confirmation
from irtjax.scale.elimination import Rules, Scale
from irtjax.scale.forms import FEWEST, form_table
from irtjax.scale.information import GRID
from irtjax.scale.item_tests import Graded
from irtjax.scale.overall_fit import OverallFit
from irtjax.scale.precision import Precision, reliability_of
from irtjax.scale.procedure import LEAST_SUBJECTS, ScaleResult

SHOWN = 12  # items that a sentence names


def overview(groups: list[GroupFindings]) -> str:
    """The title, and a table with one row per group of items."""
    rows = []
    for name, result, *_ in groups:
        counts = result.removals["reason"].value_counts()
        reasons = [f"{number} {reason}" for reason, number in counts.items()]
        if result.no_scale:
            reasons.append(f"no scale ({result.no_scale})")
        reliability = ""
        if result.scale is not None:
            reliability = f"{reliability_of(result.scale.fit):.3f}"
        decided = result.decisions()
        right = (
            f"{decided['mean_response'].mean():.2f}" if result.graded else f"{decided.proportion_correct.mean():.1%}"
        )
        removed = ", ".join(reasons) or "none"
        row = [markdown.inline(name), result.responses.num_items, right, result.num_retained, reliability, removed]
        rows.append(row)
    subjects = len({subject for group in groups for subject in group.result.responses.subject_ids.tolist()})
    answers = "mean response" if groups[0].result.graded else "answered right"
    header = ["items", "number", answers, "retained", "reliability", "removed"]
    return f"# A test scale from {subjects:,} subjects\n\n{markdown.table(header, rows)}"


def agreement(table: pd.DataFrame) -> str:
    """The section of the report on a table of `irtjax.responses.agreement.agreement_table`."""
    row = table.iloc[0]
    labels = {name: name.removeprefix("kappa_") for name in table if name.startswith("kappa_")}
    kappas = ", ".join(f"{markdown.inline(label)} {row[name]:.2f}" for name, label in labels.items())
    return f"""## Do people agree?

{int(row.answers):,} answers to {int(row["items"])} items. A majority agrees on {row.majority:.1%} of the items, two
thirds on {row.supermajority:.1%}. The most frequent label is the gold label for {row.mode_is_gold:.1%} of the items;
{row.answer_is_gold:.1%} of all answers are the gold label, {row.answer_is_mode:.1%} the most frequent label of their
item. Fleiss' kappa is {row.kappa:.2f}; for single labels: {kappas}."""


def group(found: GroupFindings, precision: Precision | None, wanted: Wanted, folder: Path) -> str:
    """The section on one group of items.

    Args:
        found: of the group.
        precision: of its scale; None if there is none.
        wanted: what is to be told of precision.
        folder: of the group's pictures, relative to the report.
    """
    result = found.result
    parts = [
        f"## Items: {markdown.inline(found.name)}",
        _design(result),
        _dimensions(result),
        _picture("Eigenvalues", folder / "scree.png"),
        _factors(result),
        _doubt(result),
        _guessing(result),
    ]
    if result.scale is None or result.overall is None or precision is None:
        parts.append(f"**No scale**: {result.no_scale}. No item is retained.")
        if not result.removals.empty:
            parts.append(_removals(result))
    else:
        parts += [
            _removals(result),
            _fit(result.scale, result.overall, result.options.rules),
            _picture("curves", folder / "curves.png"),
            ""
            if (np.asarray(result.scale.fit.responses.read().values) == MISSING).any()
            else _picture("scores", folder / "scores.png"),
            _picture("wright", folder / "wright.png"),
            _precision(result.scale, precision, wanted),
            _picture("Precision", folder / "precision.png"),
        ]
    if found.confirmation is not None:
        parts.append(_confirmation(found.confirmation, result.responses.num_subjects))
    if found.comparisons:
        parts.append(comparisons(found.comparisons))
    if found.levels is not None:
        parts += [levels(found), _picture("Ability by level", folder / "levels.png")]
    return "\n\n".join(filter(None, parts))


def _design(result: ScaleResult) -> str:
    if not result.options.by_design:
        return ""
    table = form_table(result.responses)
    seen = (np.asarray(result.responses.values) != MISSING).astype(float)
    together = (seen.T @ seen)[np.triu_indices(seen.shape[1], 1)]
    rest = result.responses.num_subjects - int(table["num_subjects"].sum())
    overall = "C2" if result.graded else "M2"
    left = f" The {rest} subjects of smaller forms are left out of S-X² and {overall}." if rest else ""
    columns = {
        "form": "{form}",
        "subjects": "{num_subjects}",
        "items": "{num_items}",
        "first": "{first_item!c}",
        "last": "{last_item!c}",
    }
    return f"""**Design.** Answers are missing by design. Forms of {FEWEST} subjects or more: {len(table)}. At least
{together.min():.0f} subjects answered both items of any pair. S-X² and {overall} are summed over forms; everything else
uses every answer.{left}

{markdown.table_of(table.head(SHOWN), columns)}"""


def _dimensions(result: ScaleResult) -> str:
    eigenvalues = result.eigenvalues
    first = ", ".join(f"{value:.2f}" for value in eigenvalues.observed[:4])
    correlations = "polychoric" if result.graded else "tetrachoric"
    return f"""**Dimensions.** Eigenvalues of the {correlations} correlations: {first}, …; {eigenvalues.num_factors} of
them above those of independent items. The first is {eigenvalues.ratio:.1f} times the second."""


def _factors(result: ScaleResult) -> str:
    factors = result.factors
    if factors is None:
        return ""
    model = "3PL" if result.options.guessing is None else "2PL, guessing fixed"
    if result.graded:
        model = result.options.model
    prior = ""
    if result.options.guessing is None and not result.graded:
        prior = (
            "Both models have a prior on guessing, so the log-likelihoods are those\nat the posterior modes, and "
            "the p-value and the criteria are approximate. "
        )
    columns = {
        f"factors ({model})": "{factors}",
        "log-likelihood": "{log_likelihood:,.1f}",
        "parameters": "{num_parameters}",
        **{name.upper(): f"{{{name}:,.0f}}" for name in ("aic", "bic", "sabic")},
    }
    preferred = "one factor" if factors.num_factors == 1 else "two factors"
    return f"""{markdown.table_of(factors.table, columns)}

The likelihood ratio is {factors.likelihood_ratio:.1f} with {factors.degrees_of_freedom} degrees of freedom
({markdown.p_value(factors.p_value)}); BIC prefers {preferred}. {prior}Rotated loadings are in
`loadings.csv`."""


def _doubt(result: ScaleResult) -> str:
    """What speaks against one dimension, if a scale is built all the same."""
    signs = []
    if result.eigenvalues.num_factors > 1:
        signs.append(f"parallel analysis finds {result.eigenvalues.num_factors} dimensions")
    if result.factors is not None and result.factors.num_factors > 1:
        signs.append("BIC prefers two factors")
    if result.scale is None or not signs:
        return ""
    return f"""A single scale is built although {" and ".join(signs)}, because the first eigenvalue is
{result.eigenvalues.ratio:.1f} times the second."""


def _guessing(result: ScaleResult) -> str:
    if result.graded:
        return ""
    if result.options.guessing is not None:
        values = sorted(set(result.options.guessing.values()))
        known = f"at {values[0]:g}" if len(values) == 1 else f"at {values[0]:g} to {values[-1]:g}, by item"
        return f"**Guessing.** Fixed {known}."
    if result.guessing is None:
        few = f": {LEAST_SUBJECTS} subjects are needed" if result.responses.num_subjects < LEAST_SUBJECTS else ""
        return f"**Guessing.** Not tested{few}; all items get a 2PL curve."
    significant = result.guessing[result.guessing["p_holm"] < result.options.rules.level]
    if significant.empty:
        return "**Guessing.** No item has significant guessing; all get a 2PL curve."
    first = significant.head(SHOWN).itertuples()
    names = ", ".join(f"{markdown.code(row.item_id)} ({row.guessing:.2f})" for row in first)
    return f"**Guessing.** {len(significant)} items have significant guessing and get a 3PL curve: {names}."


def _removals(result: ScaleResult) -> str:
    removals = result.removals
    columns = {
        "round": "{round}",
        "item": "{item_id!c}",
        "reason": "{reason}",
        "statistic": "{statistic:.2f}",
        "p": lambda row: markdown.p_value(row["p_value"]),
        "with": "{partner!c}",
    }
    if removals.empty:
        return "**Elimination.** No item was removed."
    turned = removals["item_id"][removals["reason"] == "reversed"]
    advice = ""
    if len(turned) and result.graded:
        advice = f"""

Reversed items run against the others. If they are worded so, run again with `--reverse={",".join(turned)}`, which
scores them the other way round."""
    return f"""**Elimination.** {_statistics(result)} P-values are adjusted by Holm's method, except for items that
do not discriminate: there the p-value is the unadjusted one of a one-sided test of a slope above zero.

{markdown.table_of(removals, columns)}{advice}"""


def _statistics(result: ScaleResult) -> str:
    if not result.graded:
        return """The statistic is the correlation for duplicates, the communality for items that do not
discriminate (flat, reversed, uncertain slope), Chen and Thissen's X² for dependent pairs, the residual for triplets,
S-X² for misfits."""
    rules = Graded()
    return f"""The statistic is the correlation for duplicates, the share of variance explained for items that do not
discriminate (flat, reversed, uncertain slope), Q3 less what the model expects for dependent pairs, S-X² for misfits. A
pair is dependent if that is significant and {rules.least_of_pairs:g} or more; an item misfits if S-X² is significant
and its mean response is off by {rules.least_rmsd:g} of its range or more (`rmsd`)."""


def _fit(scale: Scale, overall: OverallFit, rules: Rules) -> str:
    interval = f"90% interval {overall.rmsea_low:.3f} to {overall.rmsea_high:.3f}"
    triplets = ""
    if overall.name == "M2":
        number = int((scale.triplets["p_holm"] < rules.level).sum())
        triplets = f" Triplets with a significant residual:\n{number}."
    p = markdown.p_value(overall.p_value)
    return f"""**Fit of the {scale.fit.responses.num_items} retained items.** {overall.name} = {overall.m2:.1f} with
{overall.degrees_of_freedom} degrees of freedom ({p}); RMSEA {overall.rmsea:.3f} ({interval}), TLI
{overall.tli:.3f}, CFI {overall.cfi:.3f}, SRMSR {overall.srmsr:.3f}.{triplets}
{render("_fit_in_words", {"overall": overall, "num_subjects": scale.fit.responses.num_subjects})[0].strip()}"""


def _precision(scale: Scale, precision: Precision, wanted: Wanted) -> str:
    best = precision.full.loc[precision.full["test"].idxmax()]
    others = precision.others.loc[precision.others["test"].idxmax()]
    low, high = wanted.ability_range
    enough = information.range_above(precision.full, wanted.least)
    where = "nowhere" if enough is None else f"from {enough[0]:.2f} to {enough[1]:.2f}"
    slope = scale.fit.item_columns["discrimination"][scale.fit.responses.item_ids == precision.dominant][0]
    part = 1 - precision.others["test"][best.name] / best.test
    size = len(precision.short_forms["information"])
    if isinstance(scale.fit.responses, ScaledResponses):
        first = int(precision.scores["score"].iloc[0])
        sums = f"sums of the responses (from {first}, the lowest response to all items)"
    else:
        sums = "numbers of right answers"
    return f"""**Precision.** The scale measures best at an ability of {best.theta:.2f}, with an information of
{best.test:.1f} and a standard error of {best.standard_error:.2f}. Of this information {part:.0%} are of the item
{markdown.code(precision.dominant)} (slope {slope:.2f}); without it the maximum is {others.test:.1f}, at
{others.theta:.2f}. The information is above {wanted.least:g}, a standard error below {wanted.least**-0.5:.2f}, {where}
(of abilities from {GRID[0]:g} to {GRID[-1]:g}).

The marginal reliability is {precision.reliability:.3f}, that of a short form of {size} items
{precision.short_reliability:.3f}. The short form has the items with the largest mean information over abilities from
{low:g} to {high:g}; `short_form.csv` also lists the items with the largest slopes. `score_table.csv` turns
{sums} into abilities."""


def _confirmation(found: Confirmation, num_subjects: int) -> str:
    fresh, overall, rmsd = found.fit.responses, found.overall, found.item_fit["rmsd"].to_numpy()
    mean, sd = (float(leaf[0]) for leaf in found.fit.population)
    worst = fresh.item_ids[rmsd.argmax()]
    left_out = ""
    if found.left_out:
        left_out = f" {len(found.left_out)} items are left out: nobody was asked, or all answered alike."
    interval = f"{overall.rmsea_low:.3f} to {overall.rmsea_high:.3f}"
    return f"""**Confirmation** on {fresh.num_subjects:,} fresh subjects, with fixed item parameters: mean ability
{mean:.2f}, standard deviation {sd:.2f}. RMSEA {overall.rmsea:.3f} ({interval}), TLI {overall.tli:.3f}, CFI
{overall.cfi:.3f}, SRMSR {overall.srmsr:.3f} (M2 = {overall.m2:.1f} with {overall.degrees_of_freedom} degrees of
freedom). Among subjects with the same number of right answers, the observed and the expected share of right answers to
an item differ beyond chance by {rmsd.mean():.3f} (root mean square, averaged over the items); the largest difference is
{rmsd.max():.3f}, for {markdown.code(worst)}.{left_out} The p-values in `confirmation.csv` and
`confirmation_pairs.csv` take the parameters as known. In fact they were estimated from {num_subjects:,} subjects, so
that these tests reject a true scale too often."""


def _picture(name: str, path: Path) -> str:
    return f"![{name}]({quote(path.as_posix())})"
