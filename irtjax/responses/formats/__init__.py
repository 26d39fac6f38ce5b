"""Response files: CSV, JSON lines, Parquet, NPZ, folders of shards or of JSON lines, told by ending and content."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, overload

from irtjax.arguments import checks_types
from irtjax.choices import LAST
from irtjax.errors import InputError
from irtjax.responses.formats import csv_matrix, json_lines, npz, parquet, shards
from irtjax.responses.formats.collecting import How, InMemory
from irtjax.responses.formats.given import Given
from irtjax.responses.matrix import ResponseMatrix, require_sound_ids
from irtjax.responses.sparse import SparseResponses, of_matrix
from irtjax.responses.values import Responses
from irtjax.storage.files import whole_file
from irtjax.storage.sources import COMPRESSED, naming, reading, refuse_address

READERS: dict[str, Callable[..., InMemory]] = {
    ".csv": csv_matrix.read,
    ".parquet": parquet.read,
    ".npz": npz.read,
}
TABLES = (".csv", ".parquet")
OPENERS: dict[str, Callable[..., Responses]] = {".parquet": parquet.open_parquet, ".npz": npz.open_npz}
GIVEN: dict[str, Callable[..., Given]] = {
    ".csv": csv_matrix.read_given,
    ".parquet": parquet.read_given,
    ".npz": npz.read_given,
}
WRITERS = {".csv": csv_matrix.write, ".npz": npz.write}
ENDINGS = (".csv", *json_lines.ENDINGS, ".parquet", ".npz")
Paths = str | Path | Sequence[str | Path]
Columns = Mapping[str, str] | None


@overload
def read_responses(
    path: Paths,
    *,
    metric: json_lines.Names = None,
    filter: json_lines.Names = None,
    columns: Columns = None,
    sparse: Literal[False],
    repeats: str | None = None,
) -> ResponseMatrix: ...
@overload
def read_responses(
    path: Paths,
    *,
    metric: json_lines.Names = None,
    filter: json_lines.Names = None,
    columns: Columns = None,
    sparse: bool | None = None,
    repeats: str | None = None,
) -> InMemory: ...
@checks_types
def read_responses(
    path: Paths,
    *,
    metric: json_lines.Names = None,
    filter: json_lines.Names = None,
    columns: Columns = None,
    sparse: bool | None = None,
    repeats: str | None = None,
) -> InMemory:
    """Reads responses, scored right or wrong, from a local file that is not compressed, or from a folder.

    * `.csv`, a matrix: a header of item ids, the subject id first in each row, cells 0, 1 or empty (missing).
      True and False in usual spellings, NA and NaN do as well.
    * `.csv`, long: columns subject_id, item_id and response, one row per response, in any order; other columns, such
      as trial, are ignored, and a second response of a subject to an item is refused. Columns of other names are
      recognised where there are three (and perhaps row numbers without a name), with responses in one of them: the
      subject comes before the item, unless names such as model or question say otherwise. `columns` names any others.
    * `.jsonl`, `.jsonlines`, by the keys of the first line:
        * py-irt's lines `{"subject_id": "s", "responses": {"i": 1, ...}}`;
        * `samples_<task>_<time>.jsonl` of the lm-evaluation-harness, with `doc_id` and a key for each metric. The
          subject is the name of the folder that the file is in (the model), the item is `task/doc_id`;
        * instance-level lines of every_eval_ever, with `model_id`, `sample_id` and `evaluation`. The item is
          `evaluation_name/sample_id`. Right is what `evaluation.is_correct` says; where it is null or not there,
          `evaluation.score`, which must be 0 or 1.
    * `.parquet`: a matrix, its first column (or the named index of a data frame) the subject ids; one with one row
      per item, its first column (or that index) called item_id, and one column per subject; or the long columns.
    * `.npz`: arrays `responses` (J, I) int8 with -1 for missing, `subject_ids` and `item_ids`; or, of single answers,
      `starts`, `items` and `answers` as of `SparseResponses`, and the same ids.
    * A folder of `write_shards`.
    * Any other folder: all files of JSON lines in it and below it, as one matrix. What a model did not answer is
      missing. Hidden files and lines of other kinds are left out. If a folder has several runs of one task, the last
      counts, by the time in its name. Runs of one task in two folders of the same name are refused.
    * Several paths: such folders and files of JSON lines, as one matrix.

    Tables with one row per response, files of JSON and `.npz` of single answers may be larger than a matrix in memory:
    where there are more than 4 million cells of which fewer than 10% have an answer, these are held one by one. Tables
    are read a part at a time, in up to three times the memory that the answers take.

    Ids are text or whole numbers, which become text, and none is empty. Subjects and items come in the order in which
    they first appear, files in the order of their names.

    Args:
        path: of the file or folder; or several.
        metric: which metric of a language-model harness says what is right, or several, the most wanted first. A file
            that has none of them goes by the first that it has of `acc`, `exact_match`, `pass@1` and `pass_at_1`, else
            by the only one that is 0 or 1 throughout.
        filter: which filter of answers, such as "strict-match", or several. A file that has none of them goes by its
            first filter. Lines of other filters are skipped.
        columns: of a long table, the columns of the subject, the item and the response:
            `{"subject": "model", "item": "instance_id", "response": "resolved"}`. One that is not given has the usual
            name.
        sparse: whether to hold single answers (`SparseResponses`) or a matrix; by default as is said above.
        repeats: "last": where a subject answers an item several times, the last answer counts that is not missing. By
            default that is refused.

    Raises:
        InputError: names the file and, where one value is at fault, its row and column, or its line and key.
    """
    how = _how(sparse, repeats)
    if isinstance(path, str | os.PathLike):
        if shards.holds_shards(path):
            return _as_asked(open_responses(path, columns=columns).read(), sparse)
        if not _is_of_lines(path):
            _require_no_choice(path, metric, filter)
            with reading(_of_known_format(path)) as file:
                found = READERS[file.suffix](file, **_of_table(path, columns), **_of_rows(path, how))
                return _as_asked(found, sparse)
    _of_table(path, columns)
    return json_lines.read(_paths_of_lines(path), metric, filter, how)


def _how(sparse: bool | None, repeats: str | None) -> How:
    """How single answers are held.

    Raises:
        InputError: one of the arguments is another.
    """
    if repeats not in (None, LAST):
        raise InputError(f"`repeats` {repeats!r}, expected {LAST!r}, or None to refuse several answers to an item")
    return How(sparse, repeats)


def _of_rows(path: str | Path, how: How) -> dict[str, How]:
    """The argument of readers that may find one row per response."""
    return {"how": how} if Path(path).suffix in TABLES else {}


def _as_asked(found: InMemory, sparse: bool | None) -> InMemory:
    """A matrix, or what came as single answers, in the form that was asked for."""
    if sparse and isinstance(found, ResponseMatrix):
        return of_matrix(found)
    return found.read() if sparse is False and isinstance(found, SparseResponses) else found  # type: ignore[return-value]


def read_given(
    path: Paths, *, metric: json_lines.Names = None, filter: json_lines.Names = None, columns: Columns = None
) -> Given:
    """Reads responses as they were given, such as grades, from all files of `read_responses` but shards.

    Args:
        path: of the file or folder, or several.
        metric: as of `read_responses`; where it has to be guessed, the only one that has numbers.
        filter: as of `read_responses`.
        columns: as of `read_responses`. With `trial` or other columns a subject may answer an item several times.

    Raises:
        InputError: as `read_responses`.
    """
    if isinstance(path, str | os.PathLike):
        if shards.holds_shards(path):
            raise InputError(f"{path}: shards hold right and wrong answers")
        if not _is_of_lines(path):
            _require_no_choice(path, metric, filter)
            with reading(_of_known_format(path)) as file:
                return GIVEN[file.suffix](file, **_of_table(path, columns))
    _of_table(path, columns)
    return json_lines.read_given(_paths_of_lines(path), metric, filter)


@checks_types
def open_responses(
    path: str | Path,
    *,
    metric: json_lines.Names = None,
    filter: json_lines.Names = None,
    columns: Columns = None,
    sparse: bool | None = None,
    repeats: str | None = None,
) -> Responses:
    """Opens responses, scored right or wrong, that stay in their files, so that a fit reads the part that it needs.

    * A folder of `write_shards`, and Parquet with one row per item: blocks of items are read in each pass. They may be
      larger than the memory.
    * `.npz` and Parquet with one row per subject: each process reads its items, or its subjects, once, and holds only
      those. One process holds them all.
    * Whatever else `read_responses` knows is read as a whole.

    Args:
        path: of the file or folder.
        metric: as of `read_responses`.
        filter: as of `read_responses`.
        columns: as of `read_responses`.
        sparse: as of `read_responses`; what stays in its files is read where it is True.
        repeats: as of `read_responses`.

    Raises:
        InputError: as `read_responses`; or a shard is missing.
    """
    how = _how(sparse, repeats)
    if sparse:
        return read_responses(path, metric=metric, filter=filter, columns=columns, sparse=True, repeats=repeats)
    if not shards.holds_shards(path) and (_is_of_lines(path) or Path(path).suffix not in OPENERS):
        return read_responses(path, metric=metric, filter=filter, columns=columns, sparse=sparse, repeats=repeats)
    _require_no_choice(path, metric, filter)
    if shards.holds_shards(path):
        _of_table(path, columns)
        return shards.open_shards(Path(path))
    with reading(_of_known_format(path)) as file:
        return OPENERS[file.suffix](file, **_of_table(path, columns), **_of_rows(path, how))


def names_models(path: str | Path) -> bool:
    """Whether a path is one of answers of language models, which have the same names wherever they are.

    Raises:
        InputError: a file of JSON lines cannot be read, or its first line fits no format.
    """
    return not shards.holds_shards(path) and (
        _is_folder(path) or (_is_of_lines(path) and json_lines.names_models(path))
    )


def _is_folder(path: str | Path) -> bool:
    """Whether it is a folder, and not one that some program took for a file (as of partitions in Parquet)."""
    return Path(path).suffix not in ENDINGS and os.path.isdir(path)


def _is_of_lines(path: str | Path) -> bool:
    refuse_address(path)
    return Path(path).suffix in json_lines.ENDINGS or _is_folder(path)


def _paths_of_lines(paths: Paths) -> list[str | Path]:
    """The paths as a list.

    Raises:
        InputError: one is of another format.
    """
    if isinstance(paths, str | os.PathLike):
        return [paths]
    for path in paths:
        if shards.holds_shards(path) or not _is_of_lines(path):
            raise InputError(f"{path}: is read alone: several paths are folders or files of JSON lines")
    return list(paths)


def _require_no_choice(path: str | Path, metric: json_lines.Names, filter: json_lines.Names) -> None:
    for name, given in (("metric", metric), ("filter", filter)):
        if given is not None and len(given):
            raise InputError(f"{path}: is no file of a language-model harness: leave out `{name}`")


def _of_table(path: Paths, columns: Columns) -> dict[str, Columns]:
    """The argument `columns` of a reader of tables; nothing where none are named.

    Raises:
        InputError: some are, and the file is no table.
    """
    if not columns:
        return {}
    if isinstance(path, str | os.PathLike) and Path(path).suffix in TABLES and not os.path.isdir(path):
        return {"columns": columns}
    raise InputError(f"{path}: is no table ({' or '.join(TABLES)}), whose columns have names: leave out `columns`")


def _of_known_format(path: str | Path) -> Path:
    refuse_address(path)
    ending = Path(path).suffix
    if ending not in ENDINGS and ending.lower() not in COMPRESSED:
        raise InputError(f"{path}: unknown ending {ending!r}, expected one of {', '.join(ENDINGS)}, or a folder")
    return Path(path)


@checks_types
def write_responses(responses: InMemory, path: str | Path) -> None:
    """Writes a response matrix in the format that the ending says (`.csv` or `.npz`, see `read_responses`).

    Of `SparseResponses` that is CSV with one row per response, or NPZ of single answers. Who is read from the CSV comes
    in the order of the first appearance again.

    Raises:
        InputError: another ending, a folder that cannot be written to, or ids that the format cannot hold.
    """
    path = Path(path)
    if isinstance(responses, SparseResponses) and responses.scales is not None:
        raise InputError(f"{path}: only right and wrong answers are written")
    if path.suffix not in WRITERS:
        raise InputError(f"{path}: unknown ending {path.suffix!r}, expected one of {', '.join(WRITERS)}")
    with whole_file(path) as partial, naming(path):
        for what, ids in (("item", responses.item_ids), ("subject", responses.subject_ids)):
            require_sound_ids(ids, what)
        WRITERS[path.suffix](responses, partial)
