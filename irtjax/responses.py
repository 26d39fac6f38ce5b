"""Response matrices: graded answers of subjects (people or networks) to items (examples of a data set)."""

import csv
import dataclasses
import zipfile
import zlib
from pathlib import Path

import numpy as np

from irtjax.errors import InputError
from irtjax.files import whole_file

MISSING = -1


@dataclasses.dataclass(frozen=True)
class ResponseMatrix:
    """Graded responses of J subjects to I items.

    Attributes:
        values: (J, I) int8; 1 right, 0 wrong, -1 missing.
        subject_ids: (J,) strings, unique.
        item_ids: (I,) strings, unique.

    Raises:
        InputError: no subjects or no items, shapes that disagree, a value other than -1, 0 and 1, or an id
            that occurs twice.
    """

    values: np.ndarray
    subject_ids: np.ndarray
    item_ids: np.ndarray

    def __post_init__(self):
        values = np.asarray(self.values)
        if values.dtype.kind not in "biuf":
            raise InputError(f"responses of type {values.dtype}, expected integers")
        subjects, items = np.asarray(self.subject_ids, dtype=str), np.asarray(self.item_ids, dtype=str)
        if subjects.ndim != 1 or items.ndim != 1:
            raise InputError(f"ids have shapes {subjects.shape} and {items.shape}, expected one dimension each")
        if values.shape != (subjects.size, items.size):
            raise InputError(
                f"responses have shape {values.shape}, expected ({subjects.size}, {items.size}) from the ids"
            )
        for what, ids in (("items", items), ("subjects", subjects)):
            if not ids.size:
                raise InputError(f"responses have no {what}")
            unique, counts = np.unique(ids, return_counts=True)
            if unique.size < ids.size:
                raise InputError(f"{what[:-1]} id {str(unique[counts > 1][0])!r} occurs more than once")
        wrong = (values != 0) & (values != 1) & (values != MISSING)
        if wrong.any():
            j, i = np.argwhere(wrong)[0]
            raise InputError(
                f"subject {str(subjects[j])!r}, item {str(items[i])!r}: response {values[j, i]}, "
                "expected 0, 1 or -1 (missing)"
            )
        object.__setattr__(self, "values", values.astype(np.int8, copy=False))
        object.__setattr__(self, "subject_ids", subjects)
        object.__setattr__(self, "item_ids", items)

    @property
    def num_subjects(self) -> int:
        """J."""
        return self.values.shape[0]

    @property
    def num_items(self) -> int:
        """I."""
        return self.values.shape[1]


def counts(values: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Number of right answers and of observed answers, summed over `axis` of a (J, I) int8 matrix."""
    return (values == 1).sum(axis), (values != MISSING).sum(axis)


def percent_correct(values: np.ndarray, axis: int) -> np.ndarray:
    """Share of observed answers that are right, 0 to 1, over `axis`; NaN where nothing was observed."""
    right, observed = counts(values, axis)
    return np.divide(right, observed, out=np.full(right.shape, np.nan), where=observed > 0)


def require_estimable(responses: ResponseMatrix) -> None:
    """Refuses a matrix with a subject or an item that nothing was observed of.

    Raises:
        InputError: names the first such subject or item.
    """
    for axis, what, ids in ((1, "subject", responses.subject_ids), (0, "item", responses.item_ids)):
        _, observed = counts(responses.values, axis)
        if (observed == 0).any():
            empty = ids[observed == 0]
            raise InputError(
                f"{what} {str(empty[0])!r} has no responses (1 of {empty.size} such): "
                f"remove every {what} without responses"
            )


def grade(predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Grades predicted classes (J, I) against gold labels (I,): int8, 1 where equal, 0 where not."""
    return (np.asarray(predictions) == np.asarray(labels)[None, :]).astype(np.int8)


def concatenate_items(parts: list[ResponseMatrix]) -> ResponseMatrix:
    """One matrix of all items that the same subjects answered, in the order given."""
    first = parts[0]
    if any(not np.array_equal(first.subject_ids, part.subject_ids) for part in parts[1:]):
        raise InputError("response matrices to join along items have different subjects")
    return ResponseMatrix(
        values=np.concatenate([part.values for part in parts], axis=1),
        subject_ids=first.subject_ids,
        item_ids=np.concatenate([part.item_ids for part in parts]),
    )


def read_responses(path: str | Path) -> ResponseMatrix:
    """Reads a response matrix, its format told by the file's ending.

    `.csv`: a header of item ids, the subject id first in each row, cells 0, 1 or empty (missing).
    `.npz`: arrays `responses` (J, I) int8 with -1 for missing, `subject_ids` and `item_ids`.

    Raises:
        InputError: names the file and, where one cell is at fault, its row and column.
    """
    path = Path(path)
    readers = {".csv": _read_csv, ".npz": _read_npz}
    if path.suffix not in readers:
        raise InputError(f"{path}: unknown ending {path.suffix!r}, expected one of {', '.join(readers)}")
    try:
        return readers[path.suffix](path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except csv.Error as error:
        raise InputError(f"{path}: not a CSV file ({error})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from error
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def write_responses(responses: ResponseMatrix, path: str | Path) -> None:
    """Writes a response matrix in the format told by the ending (`.csv` or `.npz`, see `read_responses`)."""
    path = Path(path)
    writers = {".csv": _write_csv, ".npz": _write_npz}
    if path.suffix not in writers:
        raise InputError(f"{path}: unknown ending {path.suffix!r}, expected one of {', '.join(writers)}")
    with whole_file(path) as partial:
        writers[path.suffix](responses, partial)


# A cell as written by us, by people and by pandas (whose columns turn to floats where a cell is empty).
_CELLS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "": MISSING}


def _read_csv(path: Path) -> ResponseMatrix:
    subject_ids, rows = [], []
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        header = next(reader, [""])
        item_ids = header[1:]
        if not item_ids and (";" in header[0] or "\t" in header[0]):
            raise InputError("the header has no comma: separate the cells by commas")
        for row in reader:
            if not row:
                continue
            subject, cells = row[0], row[1:]
            if len(cells) != len(item_ids):
                raise InputError(
                    f"line {reader.line_num} (subject {subject!r}) has {len(cells)} responses, "
                    f"the header names {len(item_ids)} items"
                )
            codes = [_CELLS.get(cell) for cell in cells]
            if None in codes:
                codes = [_CELLS.get(cell.strip()) for cell in cells]
            if None in codes:
                column = codes.index(None)
                raise InputError(
                    f"line {reader.line_num} (subject {subject!r}), column {column + 2} (item {item_ids[column]!r}): "
                    f"{cells[column]!r} is not a response; use 0, 1 or an empty cell for missing"
                )
            subject_ids.append(subject)
            rows.append(np.array(codes, dtype=np.int8))
    values = np.stack(rows) if rows else np.zeros((0, len(item_ids)), np.int8)
    return ResponseMatrix(values=values, subject_ids=np.array(subject_ids, str), item_ids=np.array(item_ids, str))


def _write_csv(responses: ResponseMatrix, path: Path) -> None:
    # Cells are one of three short byte strings, so whole rows are built at once: a loop over the cells of a
    # crowd's answers would take longer than training it.
    text = np.array([b"0", b"1", b""], dtype="S1")  # index -1 is the last: missing
    with path.open("w", newline="", encoding="utf-8") as file:
        write = csv.writer(file, lineterminator="\n").writerow
        write(["subject_id", *responses.item_ids])
        for subject, row in zip(responses.subject_ids, responses.values, strict=True):
            write([subject, *text[row].astype(str)])


def _read_npz(path: Path) -> ResponseMatrix:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return ResponseMatrix(arrays["responses"], arrays["subject_ids"], arrays["item_ids"])
    except KeyError as error:
        raise InputError(f"{error.args[0]}; expected responses, subject_ids and item_ids") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"not an NPZ file of plain arrays ({error})") from error


def _write_npz(responses: ResponseMatrix, path: Path) -> None:
    np.savez_compressed(
        path, responses=responses.values, subject_ids=responses.subject_ids, item_ids=responses.item_ids
    )
