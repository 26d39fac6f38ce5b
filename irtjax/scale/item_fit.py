"""Does each item's curve fit? Observed against expected shares of its categories at each sum of responses (S-X2)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.stats import chi2

from irtjax.kernels.models import ItemParameters, probabilities
from irtjax.kernels.quadrature import Quadrature
from irtjax.scale.collapsing import collapse
from irtjax.scale.forms import Form, forms
from irtjax.scale.sum_scores import of_right, rest_distributions
from irtjax.types import Float, Int


def item_fit(
    values: Int[np.ndarray, "J I"], items: ItemParameters, quadrature: Quadrature, num_free: Int[np.ndarray, " I"]
) -> pd.DataFrame:
    """S-X2 of each right/wrong item (Orlando and Thissen 2000): `s_x2` with two categories.

    Args:
        values: responses; only subjects of forms count.
        items: the model, with one dimension.
        quadrature: nodes of the population.
        num_free: number of parameters of each item that were estimated.
    """
    p = of_right(np.asarray(probabilities(items, quadrature.nodes)[0]))
    return s_x2(forms(values), p, np.exp(quadrature.log_weights), np.ones(values.shape[1], int), num_free)


def s_x2(
    of_forms: Sequence[Form],
    p: Float[np.ndarray, "Q I C"],
    weights: Float[np.ndarray, " Q"],
    top: Int[np.ndarray, " I"],
    num_free: Int[np.ndarray, " I"],
) -> pd.DataFrame:
    """S-X2 of each item (Orlando and Thissen 2000; of categories Kang and Chen 2008).

        S-X2_i = Σ_s Σ_k N_s (O_isk - E_isk)² / E_isk,
        E_isk = ∫ P_ik(θ) f(s - k | θ, without i) φ(θ) dθ / ∫ f(s | θ) φ(θ) dθ

    over the sums s of the responses but the lowest and the highest, with O the observed shares of the categories k of
    the N_s subjects with that sum, and f from `sum_scores`. Sums at which a category is impossible are joined to the
    nearest where none is, and rare sums and categories to their neighbours (`irtjax.scale.collapsing`). The degrees of
    freedom are the cells that are left, less one for each sum, less the parameters that were estimated.

    Where responses are missing by design, all this is done within each form of the test (`irtjax.scale.forms`), and the
    terms are summed over forms.

    Args:
        of_forms: categories, of the subjects of each form of the test.
        p: probabilities of the categories at nodes.
        weights: of the nodes in the population.
        top: the highest category of each item.
        num_free: number of parameters of each item that were estimated.

    Returns:
        One row per item: `s_x2`, `degrees_of_freedom`, `p_value` (NaN if no degrees of freedom are left), and `rmsd`,
        an effect size that does not grow with the number of subjects: the root mean square, over the subjects, of the
        observed less the expected mean response at their sum, from 0 for the lowest category to 1 for the highest; less
        the part due to chance, and before anything is joined.
    """
    num_items = len(top)
    cells: list[list[np.ndarray]] = [[] for _ in range(num_items)]
    rows, excess, counted = np.zeros(num_items, int), np.zeros(num_items), np.zeros(num_items)
    for form in of_forms:
        highest = top[form.items]
        for at, rest in rest_distributions(p[:, form.items], highest):
            item = form.items[at]
            observed, expected = _by_sum(form, at, rest, p[:, item, : highest[at] + 1] * weights[:, None])
            there = observed.sum(axis=1) > 0
            excess[item] += _excess(observed[there], expected[there])
            counted[item] += observed.sum()
            table = collapse(*_where_all_are_possible(observed, expected))
            rows[item] += len(table)
            cells[item].append(table[table[:, :, 1] > 0])
    found = []
    for item in range(num_items):
        seen, should = np.concatenate([np.empty((0, 2)), *cells[item]]).T
        free = len(seen) - int(rows[item]) - int(num_free[item])
        statistic = ((seen - should) ** 2 / should).sum() if free > 0 else np.nan
        found.append((statistic, max(free, 0), chi2.sf(statistic, free) if free > 0 else np.nan))
    rmsd = np.sqrt(np.maximum(excess, 0) / np.maximum(counted, 1))
    return pd.DataFrame(found, columns=["s_x2", "degrees_of_freedom", "p_value"]).assign(rmsd=rmsd)


def _by_sum(
    form: Form, at: int, rest: Float[np.ndarray, "R Q"], joint: Float[np.ndarray, "Q C"]
) -> tuple[Float[np.ndarray, "S C"], Float[np.ndarray, "S C"]]:
    """Observed and expected numbers of an item's categories at all sums but the ends."""
    most = len(rest) + joint.shape[1] - 2
    sums = form.values.sum(axis=1)
    observed = np.zeros((most + 1, joint.shape[1]))
    np.add.at(observed, (sums, form.values[:, at]), 1)
    share = np.zeros_like(observed)
    for k in range(joint.shape[1]):
        share[k : k + len(rest), k] = rest @ joint[:, k]
    observed, share = observed[1:-1], share[1:-1]
    n = observed.sum(axis=1, keepdims=True)
    return observed, np.where(n > 0, n * share / np.maximum(share.sum(axis=1, keepdims=True), 1e-300), 0.0)


def _where_all_are_possible(observed: np.ndarray, expected: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same, with sums too low for the highest category, or too high for the lowest, joined to others.

    Sums that no subject has are left out.
    """
    ends = observed.shape[1] - 2  # sums 1 … K - 1 are too low, and as many too high
    if ends > 0 and len(observed) > 2 * ends:
        middle = slice(ends, len(observed) - ends)
        low, high = slice(0, ends), slice(len(observed) - ends, None)
        parts = []
        for table in (observed, expected):
            part = table[middle].copy()
            part[0] += table[low].sum(axis=0)
            part[-1] += table[high].sum(axis=0)
            parts.append(part)
        observed, expected = parts
    there = observed.sum(axis=1) > 0
    return observed[there], expected[there]


def _excess(observed: Float[np.ndarray, "S C"], expected: Float[np.ndarray, "S C"]) -> float:
    """Σ_s N_s (mean response - its expectation)², as shares of the highest category, less what chance adds."""
    value = np.arange(observed.shape[1]) / (observed.shape[1] - 1)
    n = observed.sum(axis=1)
    mean = expected @ value / n
    variance = expected @ value**2 / n - mean**2
    return float((n * (observed @ value / n - mean) ** 2 - variance).sum())
