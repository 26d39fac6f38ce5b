r"""Builds a test scale from scored responses or grades: which items measure one ability well, and how precisely?

Tests dimensionality and guessing, removes items that do not discriminate, depend on one another or do not fit, then
reports overall fit, information and a short form. Each decision is written down.

  python -m experiments.build_scale --responses=responses.csv --output_dir=runs/scale
  python -m experiments.build_scale --responses=responses.csv --items=items.csv --group_column=gold_label \
    --output_dir=runs/scale

The second builds a scale for each group of items. Grades, such as answers from 1 to 5, are read as they are. Both end
with report.md and its pictures. Durations and expected numbers: docs/results/scale.md.
"""

import contextlib
import warnings
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pandas as pd
from absl import flags

from experiments.common import app, formulas, guessing, help, item_tables, response_files, shared_flags
from experiments.common.path_flags import define_output_dir, define_path
from experiments.common.progress import steps
from experiments.reports.scale.findings import GroupFindings, Wanted
from experiments.reports.scale.write import GROUP_FILES, RUN_FILES, folder_name, former_files, write
from irtjax import FitWarning, InputError, ResponseMatrix
from irtjax.fits.reading import AUTO
from irtjax.responses.agreement import agreement_table
from irtjax.responses.matrix import MISSING, completed
from irtjax.responses.reversing import reversed_items
from irtjax.responses.scaled import ScaledResponses
from irtjax.scale.confirmation import confirm, require_enough
from irtjax.scale.elimination import Rules
from irtjax.scale.groups import compare_groups, levels, values_of_subjects
from irtjax.scale.item_tests import GRADED
from irtjax.scale.procedure import ScaleOptions, ScaleResult, build_scale, usable_items

ALL, BY_DESIGN = "all", "by_design"
IDLE = {
    "no --items": ["group_column"],
    "no --answers": ["gold_column"],
    "no --subjects": ["baseline"],
    "--guessing": ["choices"],
}
RIGHT_WRONG_ONLY = ("guessing", "choices", "triplets", "fresh", "answers")  # what grades do not have
RESULTS = (*RUN_FILES, *GROUP_FILES)

_RESPONSES = define_path("responses", "file or folder of scored responses", required=True)
_METRIC = shared_flags.define_metric()
_FILTER = shared_flags.define_filter()
_COLUMNS = shared_flags.define_columns()
_TRANSPOSE = shared_flags.define_transpose()
_GRADES = shared_flags.define_grades()
_MODEL = flags.DEFINE_enum(
    "model",
    AUTO,
    [AUTO, *GRADED],
    "of grades; auto takes the graded model, and of right and wrong answers the 2PL or 3PL",
)
_REVERSE = flags.DEFINE_list(
    "reverse", [], "ids of items that are worded the other way round, or a file with one id per line: scored reversed"
)
_OUTPUT_DIR = define_output_dir()
_MISSING = flags.DEFINE_enum(
    "missing",
    "refuse",
    ["refuse", "wrong", "drop", BY_DESIGN],
    "what missing answers are: refused, scored as wrong, dropped with their subjects, or not asked for, by a design in "
    "which each subject was given some blocks of items",
)
_ITEMS = define_path("items", "CSV of items, with their ids in the first column")
_GROUP_COLUMN = flags.DEFINE_string("group_column", "group", "column of --items: a scale is built for each group in it")
_ANSWERS = define_path("answers", "CSV of the labels that people gave, to report their agreement")
_GOLD_COLUMN = flags.DEFINE_string("gold_column", "gold_label", "column of --items with the gold labels, for --answers")
_EXPERT_DROP = flags.DEFINE_list("expert_drop", [], "ids of items removed by reading, or a file with one id per line")
_LEVEL = flags.DEFINE_float(
    "level",
    0.05,
    "level of the tests of guessing, dependence and fit, after Holm's adjustment",
    lower_bound=0,
    upper_bound=1,
)
_COMMUNALITY = flags.DEFINE_float(
    "communality", 0.15, "least share of variance explained", lower_bound=0, upper_bound=1
)
_RATIO = flags.DEFINE_float(
    "eigenvalue_ratio",
    3.0,
    "least ratio of the first eigenvalue to the second, if both are above those of independent items; 0 for any",
    lower_bound=0,
)
_FACTORS = flags.DEFINE_bool("factors", True, "compare one factor with two")
_CHOICES = flags.DEFINE_integer(
    "choices",
    None,
    "answers that subjects choose from, such as 4: items are tested for guessing; otherwise all get 2PL curves",
    lower_bound=2,
)
_GUESSING = shared_flags.define_guessing("a column of --items, ")
_TRIPLETS = flags.DEFINE_bool("triplets", False, "remove items of dependent triplets too, as those of pairs")
_SHORT_FORM = flags.DEFINE_integer("short_form", 10, "number of items in the short form", lower_bound=1)
_RANGE = flags.DEFINE_list("ability_range", ["-2", "2"], "abilities that the short form is chosen for")
_LEAST = flags.DEFINE_float(
    "least_information", 4.0, "information that is enough: the report says where the scale has more", lower_bound=0
)
_FRESH = define_path("fresh", "responses of other subjects, on which the scale is confirmed")
_SUBJECTS = define_path(
    "subjects",
    "CSV of subjects, with their ids in the first column: group and covariates, to compare scores and abilities",
)
_BASELINE = flags.DEFINE_string("baseline", None, "group of --subjects that all others are compared with")
shared_flags.define_guard()
_SEED = flags.DEFINE_integer("seed", 0, "seed of the parallel analysis", lower_bound=0, upper_bound=2**31 - 1)


def main() -> None:
    """Reads, builds a scale for each group of items, writes."""
    _check_flags()
    responses = _responses()
    items = None if _ITEMS.value is None else item_tables.by_id(_ITEMS.value, text=True)
    groups = _groups(responses, items)
    expert = item_tables.named_by(_EXPERT_DROP, responses.item_ids, _RESPONSES.value)
    wanted = Wanted(_SHORT_FORM.value, _range(), _LEAST.value)
    subjects = _subjects(responses)
    fresh = None if _FRESH.value is None else _fresh(responses)
    agreement = _agreement(items)
    held = _held(responses, items)
    parts = {name: responses.choose_items(groups == name) for name in dict.fromkeys(groups.tolist())}
    options = {name: _options(part, expert, held) for name, part in parts.items()}
    for name, part in parts.items():
        with _naming(name):
            usable_items(part, options[name])  # raises for any group before the first is built
    _check_folders(list(parts))
    with formulas.guarded_results(_OUTPUT_DIR.value, former_files(Path(_OUTPUT_DIR.value))) as directory:
        found = []
        for name, part in parts.items():
            with steps(name) as on_step, _naming(name):
                result = build_scale(part, options[name], on_step)
            found.append(_findings(name, result, fresh, subjects))
        write(found, directory, wanted, agreement, _flags())
    retained = sum(group.result.num_retained for group in found)
    print(
        f"Done: {_OUTPUT_DIR.value}/report.html, report.md and scale.csv "
        f"({retained} of {responses.num_items} items retained)",
        flush=True,
    )


def _check_flags() -> None:
    """Refuses flags that are out of range or without effect, and results in place of what is read."""
    if _LEAST.value == 0:
        raise InputError("--least_information=0: expected a number above 0, such as 4")
    app.refuse_idle(IDLE)
    # the results of a former run are removed from its group folders too
    app.keep_inputs(
        ["responses", "items", "answers", "fresh", "subjects", "expert_drop", "reverse", "guessing"],
        _OUTPUT_DIR.value,
        [*RESULTS, *(f"*/{file}" for file in GROUP_FILES)],
    )
    response_files.require_effect([_RESPONSES.value])


Answers = ResponseMatrix | ScaledResponses


def _responses() -> Answers:
    """The responses of --responses, as --missing and --reverse want them."""
    responses = _read()
    reserved = sorted({"theta", "test", "standard_error"} & set(responses.item_ids.tolist()))
    if reserved:
        raise InputError(
            f"{_RESPONSES.value}: item '{reserved[0]}' is named like a column of information.csv: rename it"
        )
    turned = item_tables.named_by(_REVERSE, responses.item_ids, _RESPONSES.value)
    with app.naming(_RESPONSES.value):
        if turned:
            responses = reversed_items(responses, turned)
        return _without_gaps(responses)


def _read() -> Answers:
    """Right and wrong answers; or grades, where --model, --grades or most of the items say so."""
    path = _RESPONSES.value
    if _MODEL.value == AUTO and not _GRADES.value:
        found = response_files.read_or_grades(path, "a scale of grades needs --model=graded")
    else:
        found = response_files.read_scaled(path, _MODEL.value)
    if isinstance(found, ScaledResponses):
        app.without_effect(RIGHT_WRONG_ONLY, "grades")
    return found


def _options(part: Answers, expert: list[str], held: dict[str, float] | None) -> ScaleOptions:
    """How the scale of a group of items is built."""
    there = set(part.item_ids.tolist())
    return ScaleOptions(
        Rules(_LEVEL.value, _COMMUNALITY.value, triplets=_TRIPLETS.value),
        _RATIO.value,
        tuple(item for item in expert if item in there),
        _SEED.value,
        _FACTORS.value,
        _CHOICES.value,
        held,
        _MISSING.value == BY_DESIGN,
        GRADED[0] if _MODEL.value == AUTO else _MODEL.value,
    )


def _findings(
    name: str, result: ScaleResult, fresh: ResponseMatrix | None, subjects: pd.DataFrame | None
) -> GroupFindings:
    """A scale, with its confirmation and a comparison of subjects where they were asked for."""
    confirmation, comparisons, words = None, {}, None
    if result.scale is not None:
        fit = result.scale.fit
        if fresh is not None:
            try:
                confirmation = confirm(fresh, fit.items())
            except InputError as error:  # no reason to lose the scale
                warnings.warn(f"{_FRESH.value}, items of group '{name}': {error}", FitWarning, stacklevel=2)
        if subjects is not None:
            ids = fit.responses.subject_ids
            comparisons = compare_groups(
                values_of_subjects(fit.responses.read(), fit.ability), ids, subjects, _BASELINE.value
            )
            words = levels(ids, subjects)
    return GroupFindings(name, result, confirmation, comparisons, words)


def _without_gaps(responses: Answers) -> Answers:
    """Responses as --missing wants them."""
    if _MISSING.value != BY_DESIGN:
        return completed(responses, _MISSING.value)
    if not (np.asarray(responses.values) == MISSING).any():
        raise InputError("--missing=by_design: no answer is missing; leave it out")
    return responses


def _held(responses: Answers, items: pd.DataFrame | None) -> dict[str, float] | None:
    """The lower asymptotes of --guessing by item id."""
    found = guessing.held(responses.item_ids, items)
    if found is None:
        return None
    values = np.broadcast_to(np.asarray(found, float), responses.item_ids.shape)
    return {item: float(value) for item, value in zip(responses.item_ids.tolist(), values, strict=True) if value >= 0}


def _naming(group: str) -> AbstractContextManager[None]:
    return app.naming(f"{_RESPONSES.value}, items of group '{group}'")


def _subjects(responses: Answers) -> pd.DataFrame | None:
    """The table of --subjects; raises before anything is fitted if they cannot be compared."""
    if _SUBJECTS.value is None:
        return None
    subjects = item_tables.by_id(_SUBJECTS.value)
    with app.naming(_SUBJECTS.value):
        compare_groups(values_of_subjects(responses), responses.subject_ids, subjects, _BASELINE.value)
    return subjects


def _fresh(responses: Answers) -> ResponseMatrix:
    """The responses of --fresh to the items that --responses has too."""
    fresh = response_files.read(_FRESH.value)
    both = np.isin(fresh.item_ids, responses.item_ids)
    if not both.any():
        raise InputError(f"{_FRESH.value}: has no item of {_RESPONSES.value}: compare the ids")
    with app.naming(_FRESH.value):
        fresh = fresh.choose_items(both)
        if _MISSING.value != BY_DESIGN:
            fresh = completed(fresh, _MISSING.value)
        require_enough(fresh)
    return fresh


def _check_folders(names: list[str]) -> None:
    """Refuses groups that would share a folder."""
    taken = dict.fromkeys((*RUN_FILES, ""))
    for name in names if len(names) > 1 else []:
        folder = folder_name(name).lower()
        if folder in taken or len(folder.encode()) > 200:
            why = f"is that of group '{taken[folder]}'" if taken.get(folder) else "is no name for a folder here"
            raise InputError(f"--group_column: group '{name}' would have the folder '{folder}', which {why}: rename it")
        taken[folder] = name


def _groups(responses: Answers, items: pd.DataFrame | None) -> np.ndarray:
    """The group of each item; `ALL` for every item if there are no groups."""
    if items is None:
        return np.full(responses.num_items, ALL)
    name = _GROUP_COLUMN.value
    if name not in items:
        raise InputError(f"{_ITEMS.value}: no column {name}: name one of {', '.join(items.columns)} by --group_column")
    return item_tables.column(items, name, responses.item_ids, _ITEMS.value, _RESPONSES.value).to_numpy()


def _range() -> tuple[float, float]:
    with contextlib.suppress(ValueError):
        low, high = map(float, _RANGE.value)
        if -np.inf < low < high < np.inf:
            return low, high
    raise InputError(f"--ability_range={','.join(_RANGE.value)}: expected two numbers, the lower first")


def _agreement(items: pd.DataFrame | None) -> pd.DataFrame | None:
    if _ANSWERS.value is None:
        return None
    if items is None or _GOLD_COLUMN.value not in items:
        raise InputError(f"--answers needs --items with a column of gold labels (--gold_column={_GOLD_COLUMN.value})")
    answers = item_tables.by_id(_ANSWERS.value, text=True)
    gold = item_tables.column(items, _GOLD_COLUMN.value, answers.columns, _ITEMS.value, _ANSWERS.value)
    with app.naming(_ANSWERS.value):
        return agreement_table(answers, gold)


def _flags() -> dict[str, object]:
    """The flags of this binary and their values, for the record."""
    values = {flag.name: flag.value for flag in help.own_flags(main)}
    return {name: ",".join(value) if isinstance(value, list) else value for name, value in values.items()}


if __name__ == "__main__":
    app.run(main)
