"""What the formats share: codes of cells, and ids that look like responses."""

import re
from collections.abc import Iterable

from irtjax.errors import InputError
from irtjax.responses.matrix import MISSING
from irtjax.storage.sources import shown

Answer = tuple[str, str, str, int]  # place in the file, subject, item, code
# A cell as written by us, by people, by pandas (whose columns turn to floats where a cell is empty) and by R.
CELLS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "": MISSING, "NA": MISSING, "NaN": MISSING}
CELLS |= {word: code for code, words in enumerate(("FALSE False false", "TRUE True true")) for word in words.split()}
ID_WORDS = {"id", "ids", "subject", "userid", "uuid", "model", "person", "student", "user", "respondent", "name"}


def refuse_responses_as_ids(name: str, ids: Iterable[str]) -> None:
    """Refuses a first column of a matrix that looks like an item: it has responses only, and no name of ids.

    Raises:
        InputError: says what to do; where 0 and 1 are ids indeed, too.
    """
    words = set(re.findall(r"[a-z]+", name.lower()))
    if words & ID_WORDS or not name.strip() or name.startswith("Unnamed"):
        return
    found = {cell.strip() for cell in ids}
    if found and found <= CELLS.keys():
        raise InputError(
            f"the first column, {shown(name)}, has only responses where subject ids belong: put a column subject_id "
            "with an id for each subject before it, or call it subject_id if these are ids"
        )
