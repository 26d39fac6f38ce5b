"""Response files: CSV matrix, long CSV, py-irt JSON lines, Parquet, NPZ and shards, told by ending and content."""

from pathlib import Path

from irtjax.errors import InputError
from irtjax.responses.formats import csv_matrix, json_lines, npz, parquet, shards
from irtjax.responses.formats.answers import require_sound_ids
from irtjax.responses.matrix import ResponseMatrix
from irtjax.responses.stored import Responses
from irtjax.storage.files import whole_file
from irtjax.storage.sources import COMPRESSED, naming, reading, refuse_address

READERS = {
    ".csv": csv_matrix.read,
    ".jsonl": json_lines.read,
    ".jsonlines": json_lines.read,
    ".parquet": parquet.read,
    ".npz": npz.read,
}
OPENERS = {".parquet": parquet.open_parquet, ".npz": npz.open_npz}
WRITERS = {".csv": csv_matrix.write, ".npz": npz.write}


def read_responses(path: str | Path) -> ResponseMatrix:
    """Reads graded responses from a local file that is not compressed.

    * `.csv`, a matrix: a header of item ids, the subject id first in each row, cells 0, 1 or empty (missing).
    * `.csv`, long: columns subject_id, item_id and response, one row per response, in any order; other columns are
      ignored.
    * `.jsonl`, `.jsonlines`: py-irt's lines `{"subject_id": "s", "responses": {"i": 1, ...}}`.
    * `.parquet`: a matrix, its first column (or the named index of a data frame) the subject ids; one with one row
      per item, its first column (or that index) called item_id, and one column per subject; or the long columns.
    * `.npz`: arrays `responses` (J, I) int8 with -1 for missing, `subject_ids` and `item_ids`.
    * A folder of `write_shards`.

    Ids are text or whole numbers, which become text, and none is empty. Subjects and items come in the order in which
    they first appear.

    Raises:
        InputError: names the file and, where one value is at fault, its row and column.
    """
    if shards.holds_shards(path):
        return open_responses(path).read()
    with reading(_of_known_format(path)) as path:
        return READERS[path.suffix](path)


def open_responses(path: str | Path) -> Responses:
    """Opens graded responses that stay in their files, so that a fit reads the part that it needs.

    * A folder of `write_shards`, and Parquet with one row per item: blocks of items are read in each pass. They may be
      larger than the memory.
    * `.npz` and Parquet with one row per subject: each process reads its items, or its subjects, once, and holds only
      those. One process holds them all.
    * Whatever else `read_responses` knows is read as a whole.

    Raises:
        InputError: as `read_responses`; or a shard is missing.
    """
    if shards.holds_shards(path):
        return shards.open_shards(Path(path))
    with reading(_of_known_format(path)) as path:
        return OPENERS.get(path.suffix, READERS[path.suffix])(path)


def _of_known_format(path: str | Path) -> Path:
    refuse_address(path)
    ending = Path(path).suffix
    if ending not in READERS and ending.lower() not in COMPRESSED:
        raise InputError(f"{path}: unknown ending {ending!r}, expected one of {', '.join(READERS)}")
    return Path(path)


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
