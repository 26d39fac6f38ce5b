"""Does each item's curve fit? Observed against expected shares of right answers at each number right (S-X2)."""

import numpy as np
import pandas as pd
from scipy.stats import chi2

from irtjax.kernels.models import ItemParameters, probabilities
from irtjax.kernels.quadrature import Quadrature
from irtjax.scale.forms import Form, forms
from irtjax.scale.sum_scores import rest_score_distributions
from irtjax.types import Int, Shaped

SMALLEST_EXPECTED = 1.0


def item_fit(
    values: Int[np.ndarray, "J I"], items: ItemParameters, quadrature: Quadrature, num_free: Int[np.ndarray, " I"]
) -> pd.DataFrame:
    """S-X2 of each item (Orlando and Thissen 2000, eq. 3 and 4).

        S-X2_i = Σ_k N_k (O_ik - E_ik)² / (E_ik (1 - E_ik)),
        E_ik = ∫ P_i(θ) f(k - 1 | θ, without i) φ(θ) dθ / ∫ f(k | θ) φ(θ) dθ

    over the numbers of right answers k = 1 … I - 1, with f from `sum_scores`. Scores without subjects are left out.
    From the lowest score up, a score with a single subject is joined to the next. Then, as long as fewer than one right
    or one wrong answer is expected at a score, the lowest such score is joined to the neighbour with fewer subjects
    (the rule of R's mirt).

    Where responses are missing by design, all this is done within each form of the test (`irtjax.scale.forms`), and the
    terms are summed over forms.

    Args:
        values: responses; only subjects of forms count.
        items: the model, with one dimension.
        quadrature: nodes of the population.
        num_free: number of parameters of each item that were estimated.

    Returns:
        One row per item: `s_x2`, `degrees_of_freedom`, `p_value` (NaN if no degrees of freedom are left), and `rmsd`,
        an effect size that does not grow with the number of subjects: the root mean square of O_ik - E_ik over the
        subjects, less the part due to chance, sqrt(max(0, Σ_k [N_k (O_ik - E_ik)² - E_ik (1 - E_ik)] / Σ_k N_k)),
        before any scores are joined.
    """
    weights, num_items = np.exp(quadrature.log_weights), values.shape[1]
    p = np.asarray(probabilities(items, quadrature.nodes)[0])
    terms: list[list[np.ndarray]] = [[] for _ in range(num_items)]
    excess, counted = np.zeros(num_items), np.zeros(num_items)
    for form in forms(values):
        subjects, observed, expected = _by_score(form, p[:, form.items], weights)
        for at, item in enumerate(form.items):
            table = np.stack([subjects, observed[at], subjects * expected[at]], axis=1)
            terms[item].append(collapse(table[subjects > 0]))
        share = observed / np.maximum(subjects, 1)
        by_chance = (expected * (1 - expected) * (subjects > 0)).sum(1)
        excess[form.items] += (subjects * (share - expected) ** 2).sum(1) - by_chance
        counted[form.items] += subjects.sum()
    rows = []
    for item in range(num_items):
        n, seen, should = np.concatenate([np.empty((0, 3)), *terms[item]]).T
        free = len(n) - int(num_free[item])
        statistic = ((seen - should) ** 2 / should + (seen - should) ** 2 / (n - should)).sum() if free > 0 else np.nan
        rows.append((statistic, max(free, 0), chi2.sf(statistic, free) if free > 0 else np.nan))
    rmsd = np.sqrt(np.maximum(excess, 0) / np.maximum(counted, 1))
    return pd.DataFrame(rows, columns=["s_x2", "degrees_of_freedom", "p_value"]).assign(rmsd=rmsd)


def _by_score(form: Form, p: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """At the scores 1 … K - 1 of a form: subjects (K - 1,), right answers and expected shares, by item (K, K - 1)."""
    scores, num_items = form.values.sum(1), form.items.size
    rest = rest_score_distributions(p)
    right = np.einsum("isq,q,qi->is", rest, weights, p, optimize=True)[:, :-1]  # scores 1 … K - 1, the item right
    wrong = np.einsum("isq,q,qi->is", rest, weights, 1 - p, optimize=True)[:, 1:]
    subjects = np.bincount(scores, minlength=num_items + 1)[1:num_items]
    at_score = np.eye(num_items + 1)[scores]
    observed = (at_score.T @ form.values)[1:num_items].T
    return subjects, observed, right / (right + wrong)


def collapse(table: Shaped[np.ndarray, "S 3"]) -> Shaped[np.ndarray, "_ 3"]:
    """Joins neighbouring rows (subjects, observed right, expected right), see `item_fit`."""
    rows = list(table)
    at = 0
    while len(rows) > 1 and at < len(rows):
        if rows[at][0] == 1:
            _join(rows, at, at + 1 if at + 1 < len(rows) else at - 1)
        at += 1  # the joined row has two subjects or more
    while len(rows) > 1:
        sparse = [k for k, (n, _, right) in enumerate(rows) if min(right, n - right) < SMALLEST_EXPECTED]
        if not sparse:
            break
        low, at, high = sparse[0] - 1, sparse[0], sparse[0] + 1
        if low < 0 or (high < len(rows) and rows[high][0] < rows[low][0]):
            _join(rows, at, high)
        else:
            _join(rows, at, low)
    return np.array(rows)


def _join(rows: list[np.ndarray], one: int, other: int) -> None:
    low, high = sorted((one, other))
    rows[low] = rows[low] + rows.pop(high)
