"""Response files: CSV matrix, long CSV, py-irt JSON lines, Parquet and NPZ, told by ending and content."""

from pathlib import Path

from irtjax.errors import InputError
from irtjax.responses.formats import csv_matrix, json_lines, npz, parquet
from irtjax.responses.formats.answers import require_sound_ids
from irtjax.responses.matrix import ResponseMatrix
from irtjax.storage.files import whole_file
from irtjax.storage.sources import COMPRESSED, naming, reading, refuse_address

READERS = {
    ".csv": csv_matrix.read,
    ".jsonl": json_lines.read,
    ".jsonlines": json_lines.read,
    ".parquet": parquet.read,
    ".npz": npz.read,
}
WRITERS = {".csv": csv_matrix.write, ".npz": npz.write}


def read_responses(path: str | Path) -> ResponseMatrix:
    """Reads graded responses from a local file that is not compressed.

    * `.csv`, a matrix: a header of item ids, the subject id first in each row, cells 0, 1 or empty (missing).
    * `.csv`, long: columns subject_id, item_id and response, one row per response, in any order; other columns are
      ignored.
    * `.jsonl`, `.jsonlines`: py-irt's lines `{"subject_id": "s", "responses": {"i": 1, ...}}`.
    * `.parquet`: a matrix, its first column (or the named index of a data frame) the subject ids, or the long columns.
    * `.npz`: arrays `responses` (J, I) int8 with -1 for missing, `subject_ids` and `item_ids`.

    Ids are text or whole numbers, which become text, and none is empty. Subjects and items come in the order in which
    they first appear.

    Raises:
        InputError: names the file and, where one value is at fault, its row and column.
    """
    refuse_address(path)
    ending = Path(path).suffix
    if ending not in READERS and ending.lower() not in COMPRESSED:
        raise InputError(f"{path}: unknown ending {ending!r}, expected one of {', '.join(READERS)}")
    with reading(path) as path:
        return READERS[ending](path)


def write_responses(responses: ResponseMatrix, path: str | Path) -> None:
    """Writes a response matrix in the format that the ending says (`.csv` or `.npz`, see `read_responses`).

    Raises:
        InputError: another ending, a folder that cannot be written to, or ids that the format cannot hold.
    """
    path = Path(path)
    if path.suffix not in WRITERS:
        raise InputError(f"{path}: unknown ending {path.suffix!r}, expected one of {', '.join(WRITERS)}")
    with whole_file(path) as partial, naming(path):
        for what, ids in (("item", responses.item_ids), ("subject", responses.subject_ids)):
            require_sound_ids(ids, what)
        WRITERS[path.suffix](responses, partial)
