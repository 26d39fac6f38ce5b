"""Sections of a scale's report, a group of items each; they write the group's tables and pictures too."""

import json
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
import pandas as pd

from experiments.reports import markdown
from irtjax.plots import scale as pictures
from irtjax.plots.style import save_figure
from irtjax.responses.matrix import percent_correct
from irtjax.scale import curves, information
from irtjax.scale.confirmation import Confirmation
from irtjax.scale.procedure import LEAST_SUBJECTS, Built
from irtjax.storage.files import whole_file, write_csv

SHOWN = 12  # items that a sentence names
FILES = (
    "items.csv", "subjects.csv", "eigenvalues.csv", "factors.csv", "loadings.csv", "guessing.csv",
    "item_fit.csv", "dependence.csv", "triplets.csv", "information.csv", "short_form.csv", "score_table.csv",
    "confirmation.csv", "confirmation_pairs.csv", "groups_raw_score.csv", "groups_ability.csv",
    "regression_raw_score.csv", "regression_ability.csv", "scale.json",
    "scree.png", "curves.png", "scores.png", "wright.png", "precision.png",
)  # fmt: skip  # of a group of items


class Told(NamedTuple):
    """What there is to tell of a group of items.

    Attributes:
        name: of the group.
        built: its scale.
        confirmation: on fresh responses; None where there are none, or no scale.
        comparisons: of subjects, from `irtjax.scale.groups.compare`.
    """

    name: str
    built: Built
    confirmation: Confirmation | None
    comparisons: dict[str, pd.DataFrame]


class ShortForms(NamedTuple):
    """How many items a short form has, and the lowest and highest ability that it is chosen for."""

    size: int
    ability_range: tuple[float, float]


def group(told: Told, folder: Path, directory: Path, short_forms: ShortForms) -> str:
    """Everything about one group of items; links are relative to the run directory."""
    name, one, confirmed, comparisons = told
    parts = [f"## Items: {markdown.cell(name)}", _dimensions(name, one, folder, directory), _guessing(one, folder)]
    if one.scale is None:
        parts.append(f"**No scale**: {one.no_scale}. Nothing is retained.")
        if not one.removals.empty:
            parts.append(_removals(one))
    else:
        parts += [
            _removals(one),
            _fit(one, folder),
            _pictures(name, one, folder, directory),
            _precision(name, one, folder, directory, short_forms),
        ]
        if confirmed is not None:
            parts.append(_confirmation(confirmed, one.responses.num_subjects, folder))
        if comparisons:
            parts.append(_comparisons(comparisons, folder))
    with whole_file(folder / "scale.json") as path:
        path.write_text(json.dumps(_summary(name, one), indent=2) + "\n")
    return "\n\n".join(parts)


def _dimensions(name: str, one: Built, folder: Path, directory: Path) -> str:
    eigenvalues = one.eigenvalues
    numbers = np.arange(1, len(eigenvalues.observed) + 1)
    write_csv(
        pd.DataFrame({"number": numbers, "eigenvalue": eigenvalues.observed, "noise": eigenvalues.noise}),
        folder / "eigenvalues.csv",
    )
    save_figure(pictures.scree(eigenvalues, f"{name}: tetrachoric correlations"), folder / "scree.png")
    first = ", ".join(f"{value:.2f}" for value in eigenvalues.observed[:4])
    above = f"{eigenvalues.num_factors} above those of independent items"
    text = f"""**Dimensions.** Eigenvalues of the tetrachoric correlations: {first}, …; {above}. The first is
{one.eigenvalues.ratio:.1f} times the second.

![Eigenvalues]({_link(folder, directory, "scree.png")})"""
    if one.factors is None:
        return text + _doubt(one)
    factors = one.factors
    write_csv(factors.table, folder / "factors.csv")
    write_csv(one.loadings, folder / "loadings.csv")
    rows = [
        [
            row.factors,
            f"{row.log_likelihood:,.1f}",
            row.num_parameters,
            *(f"{v:,.0f}" for v in (row.aic, row.bic, row.sabic)),
        ]
        for row in factors.table.itertuples()
    ]
    header = ["factors (3PL)", "log-likelihood", "parameters", "AIC", "BIC", "SABIC"]
    return f"""{text}

{markdown.table(header, rows)}

Likelihood ratio {factors.likelihood_ratio:.1f} with {factors.degrees_of_freedom} degrees of freedom
({_p(factors.p_value)}); BIC prefers {"one factor" if factors.num_factors == 1 else "two factors"}.
Guessing has a prior in both, and these are the likelihoods of the posterior modes. Rotated loadings are in
`loadings.csv`.{_doubt(one)}"""


def _doubt(one: Built) -> str:
    """What speaks against the one dimension of a scale that is built all the same."""
    signs = []
    if one.eigenvalues.num_factors > 1:
        signs.append(f"parallel analysis finds {one.eigenvalues.num_factors} dimensions")
    if one.factors is not None and one.factors.num_factors > 1:
        signs.append("BIC prefers two factors")
    if one.scale is None or not signs:
        return ""
    return f"""

One scale is built although {" and ".join(signs)}: the first eigenvalue is
{one.eigenvalues.ratio:.1f} times the second."""


def _guessing(one: Built, folder: Path) -> str:
    if one.guessing is None:
        few = f": {LEAST_SUBJECTS} subjects are needed" if one.responses.num_subjects < LEAST_SUBJECTS else ""
        return f"**Guessing.** Not tested{few}; all items get a 2PL curve."
    write_csv(one.guessing, folder / "guessing.csv")
    significant = one.guessing[one.guessing["p_holm"] < one.options.rules.level]
    if significant.empty:
        return "**Guessing.** No item has significant guessing; all get a 2PL curve."
    names = ", ".join(f"`{row.item_id}` ({row.guessing:.2f})" for row in significant.head(SHOWN).itertuples())
    return f"**Guessing.** {len(significant)} items have significant guessing and get a 3PL curve: {names}."


def _removals(one: Built) -> str:
    rows = [
        [
            row.round,
            f"`{markdown.cell(row.item_id)}`",
            row.reason,
            _number(row.statistic),
            _p(row.p_value),
            row.partner and f"`{markdown.cell(row.partner)}`",
        ]
        for row in one.removals.itertuples()
    ]
    if not rows:
        return "**Elimination.** No item was removed."
    return f"""**Elimination.** Statistics: correlation of duplicates, communality of items that do not
discriminate (flat, reversed, uncertain slope), Chen-Thissen X² of dependent pairs, S-X² of misfits. P-values are
adjusted by Holm, but for items that do not discriminate: theirs is that of a slope above zero.

{markdown.table(["round", "item", "reason", "statistic", "p", "with"], rows)}"""


def _fit(one: Built, folder: Path) -> str:
    scale, overall = one.scale, one.overall
    ids = scale.fit.responses.item_ids
    write_csv(scale.fit.items(), folder / "items.csv")
    write_csv(scale.fit.subjects(), folder / "subjects.csv")
    write_csv(scale.item_fit.assign(item_id=ids)[["item_id", *scale.item_fit]], folder / "item_fit.csv")
    pairs = scale.dependence.assign(first=ids[scale.dependence["first"]], second=ids[scale.dependence["second"]])
    write_csv(pairs, folder / "dependence.csv")
    write_csv(
        scale.triplets.assign(**{at: ids[scale.triplets[at]] for at in ("first", "second", "third")}),
        folder / "triplets.csv",
    )
    triplets = int((scale.triplets["p_holm"] < one.options.rules.level).sum())
    interval = f"90% interval {overall.rmsea_low:.3f} to {overall.rmsea_high:.3f}"
    return f"""**Fit of the {len(ids)} retained items.** M2 = {overall.m2:.1f} with {overall.degrees_of_freedom} degrees
of freedom ({_p(overall.p_value)}); RMSEA {overall.rmsea:.3f} ({interval}), TLI {overall.tli:.3f}, CFI
{overall.cfi:.3f}, SRMSR {overall.srmsr:.3f}. Triplets with a significant residual: {triplets}."""


def _pictures(name: str, one: Built, folder: Path, directory: Path) -> str:
    scale, responses = one.scale, one.responses
    fit = scale.fit
    reasons = one.decisions()["reason"]
    empirical = curves.empirical_curves(fit, responses)
    figures = {
        "curves.png": pictures.item_curves(
            responses.item_ids,
            empirical.model,
            empirical,
            reasons,
            f"{name}: item characteristic curves",
        ),
        "scores.png": pictures.ability_against_score(
            fit.responses.values.sum(1),
            fit.ability,
            information.score_table(fit.parameters),
            f"{name}: ability and score",
        ),
        "wright.png": pictures.wright_map(
            fit.ability, fit.difficulty, fit.responses.item_ids, f"{name}: subjects and items"
        ),
    }
    for file, figure in figures.items():
        save_figure(figure, folder / file)
    return "\n\n".join(f"![{file.removesuffix('.png')}]({_link(folder, directory, file)})" for file in figures)


def _precision(name: str, one: Built, folder: Path, directory: Path, short_forms: ShortForms) -> str:
    fit = one.scale.fit
    ids, items = fit.responses.item_ids, fit.parameters
    full = information.information_table(items, ids)
    size = min(short_forms.size, len(ids))
    chosen = {
        rule: information.short_form(items, size, rule, short_forms.ability_range) for rule in ("information", "slope")
    }
    short = information.information_table(information.choose(items, chosen["information"]), ids[chosen["information"]])
    write_csv(full, folder / "information.csv")
    write_csv(
        pd.DataFrame({"rank": np.arange(1, size + 1), **{f"by_{rule}": ids[at] for rule, at in chosen.items()}}),
        folder / "short_form.csv",
    )
    write_csv(information.score_table(items), folder / "score_table.csv")
    save_figure(pictures.precision(full, short, f"{name}: precision"), folder / "precision.png")
    best = full.loc[full["test"].idxmax()]
    reliability = [
        information.marginal_reliability(part) for part in (items, information.choose(items, chosen["information"]))
    ]
    low, high = short_forms.ability_range
    whole, shorter = (f"{value:.3f}" for value in reliability)
    return f"""**Precision.** The scale measures best at an ability of {best.theta:.2f} (standard error
{best.standard_error:.2f}); marginal reliability {whole}, of a short form of {size} items {shorter}.
The short form is chosen by mean information over abilities {low:g} to {high:g}; `short_form.csv` has that by slope
beside it, `score_table.csv` turns numbers right into abilities.

![Precision]({_link(folder, directory, "precision.png")})"""


def _confirmation(found: Confirmation, num_subjects: int, folder: Path) -> str:
    fresh = found.fit.responses
    write_csv(found.item_fit.assign(item_id=fresh.item_ids)[["item_id", *found.item_fit]], folder / "confirmation.csv")
    pairs = found.dependence.assign(**{at: fresh.item_ids[found.dependence[at]] for at in ("first", "second")})
    write_csv(pairs, folder / "confirmation_pairs.csv")
    overall, rmsd = found.overall, found.item_fit["rmsd"].to_numpy()
    mean, sd = (found.fit.details[f"population_{name}"][0] for name in ("mean", "sd"))
    worst = fresh.item_ids[rmsd.argmax()]
    left_out = f" Not asked, or answered alike by all: {len(found.left_out)} items." if found.left_out else ""
    interval = f"{overall.rmsea_low:.3f} to {overall.rmsea_high:.3f}"
    return f"""**Confirmation** on {fresh.num_subjects:,} fresh subjects, parameters held: mean ability {mean:.2f},
standard deviation {sd:.2f}. RMSEA {overall.rmsea:.3f} ({interval}), TLI {overall.tli:.3f}, CFI {overall.cfi:.3f}, SRMSR
{overall.srmsr:.3f} (M2 = {overall.m2:.1f} with {overall.degrees_of_freedom} degrees of freedom). At a number right,
observed and expected shares of right answers differ by {rmsd.mean():.3f} beyond chance (root mean square, mean of
the items), most for `{markdown.cell(worst)}`, by {rmsd.max():.3f}.{left_out} The p-values in `confirmation.csv` and
`confirmation_pairs.csv` take the parameters as known: they are estimates from {num_subjects:,} subjects, and a true
scale is rejected too often."""


def _comparisons(tables: dict[str, pd.DataFrame], folder: Path) -> str:
    parts = ["**Groups and covariates.**"]
    for name, table in tables.items():
        write_csv(table, folder / f"{name}.csv")
        kind, _, what = name.partition("_")
        what = what.replace("_", " ")
        if kind == "groups":
            header = [f"{what}: test", "groups", "difference", "statistic", "df", "p (of pairs by Holm)"]
            adjusted = table["p_holm"].fillna(table["p_value"])
            rows = [
                [r.test, r.groups, _number(r.difference), _number(r.statistic), r.degrees_of_freedom, _p(p)]
                for r, p in zip(table.itertuples(), adjusted, strict=True)
            ]
        else:
            header = [f"{what}: term", "coefficient", "standard error", "t", "p"]
            rows = [
                [r.term, f"{r.coefficient:.3f}", f"{r.standard_error:.3f}", f"{r.t:.2f}", _p(r.p_value)]
                for r in table.itertuples()
            ]
        parts.append(markdown.table(header, rows))
    return "\n\n".join(parts)


def _summary(name: str, one: Built) -> dict[str, Any]:
    summary = {
        "group": name,
        "num_subjects": one.responses.num_subjects,
        "num_items": one.responses.num_items,
        "num_retained": one.num_retained,
        "no_scale": one.no_scale or None,
        "mean_percent_correct": float(np.mean(percent_correct(one.responses.values, axis=0))),
        "eigenvalue_ratio": one.eigenvalues.ratio,
        "factors_by_parallel_analysis": one.eigenvalues.num_factors,
    }
    if one.factors is not None:
        summary |= {
            "factors_by_bic": one.factors.num_factors,
            "likelihood_ratio": one.factors.likelihood_ratio,
            "likelihood_ratio_degrees_of_freedom": one.factors.degrees_of_freedom,
            "likelihood_ratio_p_value": one.factors.p_value,
        }
    if one.scale is not None:
        summary |= {
            "overall_fit": one.overall._asdict(),
            "marginal_reliability": information.marginal_reliability(one.scale.fit.parameters),
            "models": dict(zip(one.scale.fit.responses.item_ids.tolist(), one.scale.types, strict=True)),
        }
    return summary


def _link(folder: Path, directory: Path, file: str) -> str:
    return quote((folder / file).relative_to(directory).as_posix())


def _p(value: float) -> str:
    if np.isnan(value):
        return ""
    return "p < 0.0001" if value < 1e-4 else f"p = {value:.4f}"


def _number(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.2f}"
