"""Responses that stay in files: a fit reads the part that it needs, when it needs it."""

import functools
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from irtjax import processes
from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.responses.matrix import ResponseMatrix, as_ids, counts, described, require_unique, sound
from irtjax.storage.sources import naming
from irtjax.types import Int, Shaped

READ_AT_ONCE = 2**25  # responses
LONG = 500  # items, from which on a part is some of the items rather than some of the subjects
ALL = slice(None)


@runtime_checkable
class Source(Protocol):
    """Files of responses.

    Attributes:
        name: of the file or folder, for errors.
        shape: J and I.
        by_item: whether blocks of items can be read again and again without much ado.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def shape(self) -> tuple[int, int]: ...  # noqa: D102

    @property
    def by_item(self) -> bool: ...  # noqa: D102

    def read(self, subjects: range, items: range) -> Int[np.ndarray, "_ _"]:
        """Some of them.

        Raises:
            InputError: they cannot be read.
        """


class Totals(NamedTuple):
    """Numbers of right answers and of observed answers, of each item and of each subject."""

    right_by_item: Int[np.ndarray, " I"]
    observed_by_item: Int[np.ndarray, " I"]
    right_by_subject: Int[np.ndarray, " J"]
    observed_by_subject: Int[np.ndarray, " J"]


class DiscardedResponses(NamedTuple):
    """Responses that are not here any more, of which only the totals are known."""

    shape: tuple[int, int]
    name: str = "the responses of this fit"
    by_item: bool = True

    def read(self, subjects: range, items: range) -> Int[np.ndarray, "_ _"]:
        """Nothing.

        Raises:
            InputError: always.
        """
        raise InputError(f"{self.name} were read from files, and not saved with it: read them again")


class LocalValues:
    """A matrix of which this process has a part only; read by positions in the whole.

    Attributes:
        shape: of the whole.
    """

    def __init__(self, part: np.ndarray, subjects: range, items: range, shape: tuple[int, int]) -> None:
        self.shape, self._part, self._subjects, self._items = shape, part, subjects, items

    def has(self, subjects: range, items: range) -> bool:
        """Whether a part is here."""
        return all(
            not len(asked) or (held.start <= asked.start and asked.stop <= held.stop)
            for held, asked in ((self._subjects, subjects), (self._items, items))
        )

    def __getitem__(self, at: tuple[slice, slice]) -> Int[np.ndarray, "_ _"]:
        subjects, items = (range(*one.indices(size)) for one, size in zip(at, self.shape, strict=True))
        if not self.has(subjects, items):
            raise IndexError(f"subjects {subjects}, items {items}: not on this process")
        return self._part[_within(self._subjects, subjects), _within(self._items, items)]


class StoredValues:
    """The responses in some files, to be read like an array.

    Attributes:
        source: the files.
        shape: J and I.
        size: how many responses.
        held: subjects and items that were last asked for by `keep`, if any were; more may be in memory. The parts of
            all processes do not overlap.
    """

    def __init__(
        self, source: Source, subject_ids: np.ndarray, item_ids: np.ndarray, totals: Totals | None = None
    ) -> None:
        self.source, self.shape, self._ids = source, source.shape, (subject_ids, item_ids)
        self.size = self.shape[0] * self.shape[1]
        self._kept: LocalValues | None = None
        self.held: tuple[slice, slice] | None = None
        if totals is not None:
            self.totals = totals

    def keep(self, subjects: slice = ALL, items: slice = ALL) -> None:
        """Says what is about to be read, many times; held in memory where the files are no good for that.

        Raises:
            InputError: it cannot be read; on every process, if it fails on one of them.
        """
        if not self.source.by_item:
            processes.agreed(lambda: self._hold(*self._ranges((subjects, items))))
            self.held = subjects, items

    def __getitem__(self, at: tuple[slice, slice]) -> Int[np.ndarray, "_ _"]:
        if not isinstance(at, tuple) or not all(isinstance(one, slice) and one.step is None for one in at):
            raise InputError(f"{self.source.name}: this needs the responses in memory: give it `responses.read()`")
        asked = self._ranges(at)
        if self.source.by_item:
            return self.source.read(*asked)
        return self._hold(*asked)[at]

    def counts(self, axis: int) -> tuple[Int[np.ndarray, " N"], Int[np.ndarray, " N"]]:
        """Numbers of right answers and of observed answers, summed over subjects (axis 0) or items (axis 1)."""
        return self.totals[:2] if axis == 0 else self.totals[2:]

    @functools.cached_property
    def totals(self) -> Totals:
        """Counts, from one pass over the files, in which every value is checked.

        Raises:
            InputError: a file cannot be read, or holds something else than responses; or processes see other sizes.
        """
        source, num_items = self.source, self.shape[1]
        processes.same(f"{source.name}: responses", "{:,} subjects × {:,} items".format(*source.shape))
        by_item = source.by_item or num_items >= LONG
        subjects, items = (ALL, processes.share(num_items)) if by_item else (processes.share(self.shape[0]), ALL)
        self.keep(subjects, items)
        found = processes.agreed(lambda: self._count(subjects, items))
        if by_item:
            return Totals(*map(processes.gather, found[:2]), *processes.total(list(found[2:])))
        return Totals(*processes.total(list(found[:2])), *map(processes.gather, found[2:]))

    def _count(self, subjects: slice, items: slice) -> Totals:
        """Of some of the subjects and some of the items."""
        rows, columns = (range(*at.indices(size)) for at, size in zip((subjects, items), self.shape, strict=True))
        found = Totals(*(np.zeros(len(of), int) for of in (columns, columns, rows, rows)))
        step = max(1, READ_AT_ONCE // max(len(rows), 1))
        for at in range(0, len(columns), step):
            part = slice(at, at + step)
            chosen = slice(columns.start + at, min(columns.start + at + step, columns.stop))
            block = self[subjects, chosen]
            with naming(self.source.name):
                block = sound(block, self._ids[0][subjects], self._ids[1][chosen])
            found.right_by_item[part], found.observed_by_item[part] = counts(block, axis=0)
            right, observed = counts(block, axis=1)
            found.right_by_subject[:] += right
            found.observed_by_subject[:] += observed
        return found

    def _hold(self, subjects: range, items: range) -> LocalValues:
        if self._kept is None or not self._kept.has(subjects, items):
            self._kept = None  # before the next takes as much memory
            self._kept = LocalValues(self.source.read(subjects, items), subjects, items, self.shape)
        return self._kept

    def _ranges(self, at: tuple[slice, slice]) -> tuple[range, range]:
        return range(*at[0].indices(self.shape[0])), range(*at[1].indices(self.shape[1]))


def _within(held: range, asked: range) -> slice:
    return slice(asked.start - held.start, max(asked.stop - held.start, asked.start - held.start))


class StoredResponses:
    """Scored responses of J subjects to I items in files, see `irtjax.open_responses`.

    A fit reads them as it goes, so that they may be larger than the memory. Where several processes work together, each
    reads a part, and only that. Two are equal if they have the same ids and the same totals.

    Attributes:
        values: read like an array (J, I) int8; 1 right, 0 wrong, -1 missing.
        subject_ids: (J,) strings, unique.
        item_ids: (I,) strings, unique.

    Raises:
        InputError: ids that occur twice, or not as many as there are subjects and items.
    """

    @checks_types
    def __init__(
        self,
        source: Source,
        subject_ids: Shaped[np.ndarray, " J"],
        item_ids: Shaped[np.ndarray, " I"],
        totals: Totals | None = None,
    ) -> None:
        self.subject_ids, self.item_ids = as_ids(subject_ids, "subject"), as_ids(item_ids, "item")
        self.values = StoredValues(source, self.subject_ids, self.item_ids, totals)
        require_unique(self.subject_ids, self.item_ids, source.shape)

    def __repr__(self) -> str:
        return described("StoredResponses", self.num_subjects, self.num_items, *self.counts(axis=0))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StoredResponses):
            return NotImplemented
        ours, theirs = ((one.subject_ids, one.item_ids, *one.values.totals) for one in (self, other))
        return all(map(np.array_equal, ours, theirs))

    def __hash__(self) -> int:
        return hash((self.values.shape, str(self.item_ids[0]), str(self.subject_ids[0])))

    @property
    def num_subjects(self) -> int:
        """J."""
        return self.values.shape[0]

    @property
    def num_items(self) -> int:
        """I."""
        return self.values.shape[1]

    def counts(self, axis: int) -> tuple[Int[np.ndarray, " N"], Int[np.ndarray, " N"]]:
        """Numbers of right answers and of observed answers, summed over subjects (axis 0) or items (axis 1)."""
        return self.values.counts(axis)

    def read(self) -> ResponseMatrix:
        """All of them, in memory.

        Raises:
            InputError: they cannot be read, or hold something else than responses.
        """
        return ResponseMatrix(self.values[ALL, ALL], self.subject_ids, self.item_ids)
