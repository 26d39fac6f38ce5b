"""The two linear maps of the E-step where each subject answered few items: sums over answers, and over subjects.

An answer is one of few *cells*, pairs of an item and a response, such as "right on item 7". What a cell adds to a
log-likelihood at Q nodes, T η - n A, is a row of a table. So the log-likelihood of a subject is the sum of the rows of
its cells, and what the posteriors expect of a cell is the sum of the weights of the subjects who have it: per answer
one row of Q numbers is read, and one is added to. Responses that hardly ever agree, such as shares, have no cells;
there the statistics T and the trials n of an answer are the entries.
"""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from irtjax.integration.nodes import OfPopulation
from irtjax.item_models.families import Families
from irtjax.item_models.protocol import ItemModel
from irtjax.responses.compressed_rows import rows_of
from irtjax.types import Float, Int, Shaped

AT_A_TIME = 2**14  # cells
AGREE = 4  # answers to a cell, on average, from which on cells are worth a table


class Cells(NamedTuple):
    """What answers can be.

    Attributes:
        adds: (C, M + I) statistics of each cell, then its trials; each is of one item. None where the entries of an
            answer are the statistics and the trials themselves.
        item: (C,) of each cell; (M + I,) of each column where there are no cells.
    """

    adds: Any
    item: Int[np.ndarray, " C"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SparseAnswers(OfPopulation):
    """Responses of J subjects to I items in compressed rows, as the maps over nodes read them.

    Attributes:
        starts: (J + 1,) where the entries of each subject begin.
        columns: (N,) the cell of each answer.
        entries: (N,) how often it counts; None for once each.
        cells: what the columns are.
        model: what responses say of ability.
        num_items: I.
        base: (J,) Σ log h of each subject, in nats.
        trials: whether responses are of several.
    """

    starts: Int[np.ndarray, " ends"]
    columns: Int[np.ndarray, " N"]
    entries: Float[np.ndarray, " N"] | None
    cells: Cells
    model: ItemModel
    num_items: int
    base: Float[np.ndarray, " J"]
    trials: bool | None = None
    complete: bool = False

    @property
    def num_subjects(self) -> int:
        """J."""
        return len(self.starts) - 1

    def on_host(self) -> "SparseAnswers":
        """Itself."""
        return self

    def log_base(self) -> Float[np.ndarray, " J"]:
        """Σ log h of each subject, in nats."""
        return self.base

    def rows(self, rows: Int[np.ndarray, " n"] | slice) -> "SparseAnswers":
        """Those of some subjects."""
        if isinstance(rows, slice) and rows.step is None:
            begin, end, _ = rows.indices(self.num_subjects)
            starts = self.starts[begin : max(begin, end) + 1]
            at: Any = slice(starts[0], starts[-1])
            starts = starts - starts[0]
        else:
            starts, at = rows_of(self.starts, np.arange(self.num_subjects)[rows])
        return dataclasses.replace(
            self,
            starts=starts,
            columns=self.columns[at],
            entries=None if self.entries is None else self.entries[at],
            base=self.base[rows],
            member=None if self.member is None else self.member[rows],
            predictors=None if self.predictors is None else self.predictors[rows],
        )

    def subjects(self) -> Int[np.ndarray, " N"]:
        """Whose each entry is."""
        return np.repeat(np.arange(self.num_subjects, dtype=np.int32), np.diff(self.starts))

    def with_cells(self) -> "SparseAnswers":
        """The same with a cell for each answer, where there are no cells."""
        if self.cells.adds is not None:
            return self
        width = len(self.cells.item) // self.num_items  # statistics of an answer, and its trials
        number = len(self.columns) // width
        ends = np.arange(0, len(self.columns) + 1, width)
        adds = scipy.sparse.csr_array((self.entries, self.columns, ends), (number, len(self.cells.item)))
        cells = Cells(adds, self.cells.item[self.columns[::width]])
        columns = np.arange(number, dtype=np.int32)
        return dataclasses.replace(self, starts=self.starts // width, columns=columns, entries=None, cells=cells)

    def matrix(self) -> Any:
        """The entries (J, C) as an array of SciPy."""
        entries = np.ones(len(self.columns)) if self.entries is None else self.entries
        number = np.int32 if len(self.columns) < 2**31 else np.int64
        shape = (self.num_subjects, len(self.cells.item))
        return scipy.sparse.csr_array((entries, self.columns, self.starts.astype(number)), shape)

    def table(
        self, eta: Float[np.ndarray, "Q M"], log_normalizer: Float[np.ndarray, "Q I"]
    ) -> Float[np.ndarray, "C Q"]:
        """What a cell adds to log-likelihoods at nodes, in nats."""
        both = np.concatenate([eta.T, -log_normalizer.T])
        return both if self.cells.adds is None else self.cells.adds @ both

    def expected(self, of_cells: Float[np.ndarray, "C Q"]) -> tuple[Float[np.ndarray, "Q M"], Float[np.ndarray, "Q I"]]:
        """Statistics and trials, out of how often each cell is expected at nodes."""
        both = of_cells if self.cells.adds is None else self.cells.adds.T @ of_cells
        return both[: -self.num_items].T, both[-self.num_items :].T

    def log_likelihoods(
        self, eta: Float[np.ndarray, "Q M"], log_normalizer: Float[np.ndarray, "Q I"]
    ) -> Float[np.ndarray, "J Q"]:
        """Of each subject at nodes, in nats, but for log h."""
        return self.matrix() @ self.table(eta, log_normalizer)


def sparse_answers(
    starts: Int[np.ndarray, " ends"],
    items: Int[np.ndarray, " N"],
    values: Shaped[np.ndarray, " N"],
    num_items: int,
    model: ItemModel,
    trials: Int[np.ndarray, " N"] | None = None,
    member: Int[np.ndarray, "J 1"] | None = None,
    predictors: Float[np.ndarray, "J C"] | None = None,
) -> SparseAnswers:
    """Encoded responses as the maps over nodes read them.

    Args:
        starts: where the answers of each subject begin.
        items: of the answers.
        values: as the model encodes them.
        num_items: I.
        model: what they say of ability.
        trials: of each answer; None for one.
        member: of each subject, the number of its group.
        predictors: of each subject's mean ability.
    """
    base = _log_base(starts, items, values, trials, model)
    common: dict[str, Any] = {
        "model": model,
        "num_items": num_items,
        "base": base,
        "trials": None if trials is None else True,
        "member": member,
        "predictors": predictors,
    }
    keys = [np.asarray(values)] if trials is None else [np.asarray(trials), np.asarray(values)]
    codes, number = np.zeros(len(items), np.int64), 1
    for key in keys:
        if key.dtype.kind in "iu" and (not key.size or 0 <= key.min() <= key.max() < 2**20):
            places, different = key.astype(np.int64), int(key.max(initial=0)) + 1
        else:
            known, places = np.unique(key, return_inverse=True)
            different = len(known)
        codes, number = codes * different + places, number * different
    if num_items * number < 2**31 and (cells := _cells(items, codes, number, num_items)) is not None:
        of_answer, first = cells
        item = items[first].astype(np.int64)
        adds = _adds(item, values[first], None if trials is None else trials[first], num_items, model)
        return SparseAnswers(starts=starts, columns=of_answer, entries=None, cells=Cells(adds, item), **common)
    rows = _entries(items, values, trials, num_items, model)
    at = np.asarray(starts)
    per_item = (rows.shape[1] - num_items) // num_items
    item = np.concatenate([np.repeat(np.arange(num_items), per_item), np.arange(num_items)])
    columns = rows.indices.astype(np.int32, copy=False)
    return SparseAnswers(starts=rows.indptr[at], columns=columns, entries=rows.data, cells=Cells(None, item), **common)


def _cells(
    items: Int[np.ndarray, " N"], codes: Int[np.ndarray, " N"], number: int, num_items: int
) -> tuple[Int[np.ndarray, " N"], Int[np.ndarray, " C"]] | None:
    """The cell of each answer, and one answer of each cell; None where too few agree."""
    keys = items.astype(np.int64) * number + codes
    if num_items * number <= AGREE * len(items):
        there = np.full(num_items * number, -1, np.int64)
        there[keys] = np.arange(len(keys))
        used = np.flatnonzero(there >= 0)
        place = np.zeros(len(there), np.int32)
        place[used] = np.arange(len(used), dtype=np.int32)
        return place[keys], there[used]
    used, first, of_answer = np.unique(keys, return_index=True, return_inverse=True)
    return (of_answer.astype(np.int32), first) if AGREE * len(used) <= len(keys) else None


def _adds(
    items: Int[np.ndarray, " C"],
    values: Shaped[np.ndarray, " C"],
    trials: Int[np.ndarray, " C"] | None,
    num_items: int,
    model: ItemModel,
) -> Any:
    """Statistics and trials (C, M + I) of cells; those that are 0 are left out."""
    parts = [slice(at, at + AT_A_TIME) for at in range(0, len(items), AT_A_TIME)]
    found = [
        _entries(items[part], values[part], None if trials is None else trials[part], num_items, model)
        for part in parts
    ]
    for one in found:
        one.eliminate_zeros()
    return found[0] if len(found) == 1 else scipy.sparse.vstack(found, "csr")


def _entries(
    items: Int[np.ndarray, " C"],
    values: Shaped[np.ndarray, " C"],
    trials: Int[np.ndarray, " C"] | None,
    num_items: int,
    model: ItemModel,
) -> Any:
    """Statistics and trials (C, M + I) of answers, as those of one subject to as many items."""
    statistics = model.take(items).statistics(np.asarray(values)[None, :]).reshape(len(items), -1)
    per_item = statistics.shape[1]
    times = np.ones(len(items)) if trials is None else np.asarray(trials, float)
    columns = np.concatenate(
        [per_item * items[:, None].astype(np.int64) + np.arange(per_item), num_items * per_item + items[:, None]],
        axis=1,
    )
    entries = np.concatenate([statistics, times[:, None]], axis=1)
    ends = np.arange(0, entries.size + 1, per_item + 1)
    return scipy.sparse.csr_array((entries.ravel(), columns.ravel(), ends), (len(items), num_items * (per_item + 1)))


def _log_base(
    starts: Int[np.ndarray, " ends"],
    items: Int[np.ndarray, " N"],
    values: Shaped[np.ndarray, " N"],
    trials: Int[np.ndarray, " N"] | None,
    model: ItemModel,
) -> Float[np.ndarray, " J"]:
    """Σ log h of each subject: that of each answer, as if it were all that a subject had said."""
    num_subjects, num_items = len(starts) - 1, int(items.max(initial=0)) + 1
    of_answers = np.zeros(len(items))
    alike = [some for _, some in model.groups(num_items)] if isinstance(model, Families) else [np.arange(num_items)]
    for some in alike:  # which differ by family alone
        at = np.isin(items, some)
        if at.any():
            of_some = None if trials is None else np.asarray(trials)[at][:, None]
            of_answers[at] = model.take(some[:1]).log_base(np.asarray(values)[at][:, None], of_some)
    return np.bincount(np.repeat(np.arange(num_subjects), np.diff(starts)), of_answers, num_subjects)
