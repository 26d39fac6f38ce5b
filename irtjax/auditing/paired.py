"""Is A better than B? Pairs of subjects on the items that both answered, without a model of the items."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest, t

from irtjax.arguments import checks_types, whole_number
from irtjax.auditing.ranking import places
from irtjax.errors import InputError
from irtjax.fits.reading import AUTO, read
from irtjax.responses.sparse import SparseResponses
from irtjax.responses.values import on_scales, whole
from irtjax.scale.multiple_tests import holm
from irtjax.types import Float

COLUMNS = (
    "subject_a", "subject_b", "num_items", "difference", "standard_error", "only_a", "only_b", "p_value"
)  # fmt: skip


@checks_types
def paired(
    responses: Any, subjects: Sequence[str | int] | None = None, *, most: int = 100, **choice: Any
) -> pd.DataFrame:
    """Compares each pair of subjects on the items that both answered.

    Of right and wrong answers the p-value is that of McNemar's exact test (1947): of the items that one of two has
    right and the other wrong, half are expected of each. Of grades, counts and shares it is that of the paired t-test.

    Args:
        responses: as of `irtjax.fit`.
        subjects: ids to compare; None for all.
        most: how many there may be: pairs go with their square.
        **choice: `columns`, `grades`, `metric` and `filter` as of `irtjax.fit`.

    Returns:
        One row per pair, the better of the two first: `subject_a`, `subject_b`, `num_items` in common, `difference` of
        their mean responses on these with its `standard_error`, `only_a` and `only_b` (items with the higher response
        by one alone), `p_value`, and `p_adjusted` of all pairs at once (Holm 1979). NaN where nothing can be said.

    Raises:
        InputError: an id that is not there, fewer than two subjects, or more than `most`.
    """
    given, _ = read(responses, AUTO, None, **choice)
    at = places(given.subject_ids, subjects)
    if len(at) < 2:
        raise InputError(f"{len(at)} subject: expected two or more to compare")
    if len(at) > whole_number("most", most, 2):
        pairs = len(at) * (len(at) - 1) // 2
        raise InputError(f"{len(at):,} subjects make {pairs:,} pairs: name the `subjects`, or raise `most` ({most})")
    names, right_wrong, rows = given.subject_ids.astype(str)[at], not on_scales(given), []
    sparse = isinstance(given, SparseResponses)
    some = whole(given.choose_subjects(at)) if sparse else given.read().choose_subjects(at)
    if right_wrong:
        values = np.asarray(some.values, float)
        values[values < 0] = np.nan
    else:
        values = some.worths()
    for a, b in np.stack(np.triu_indices(len(at), 1), axis=1):
        gap = values[a] - values[b]
        gap = gap[~np.isnan(gap)]
        if gap.sum() < 0:
            a, b, gap = b, a, -gap
        rows.append((names[a], names[b], *_comparison(gap, right_wrong)))
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    return table.assign(p_adjusted=holm(table["p_value"].to_numpy()))


def _comparison(gap: Float[np.ndarray, " N"], right_wrong: bool) -> tuple[int, float, float, int, int, float]:
    """Number of items, mean difference and its standard error, items with the higher response by one, p-value."""
    number, ahead, behind = len(gap), int((gap > 0).sum()), int((gap < 0).sum())
    if number < 2:
        return number, float(gap.mean()) if number else np.nan, np.nan, ahead, behind, np.nan
    error = float(gap.std(ddof=1) / np.sqrt(number))
    if right_wrong:
        p_value = binomtest(ahead, ahead + behind).pvalue if ahead + behind else 1.0
    else:
        p_value = 2 * float(t.sf(abs(gap.mean()) / error, number - 1)) if error else float(not gap.any())
    return number, float(gap.mean()), error, ahead, behind, p_value
