"""A test scale for each group of items, by the flags of `experiments.build_scale`."""

import contextlib
import warnings
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pandas as pd
from absl import flags

from experiments.common import app, formulas, guessing, item_tables, response_files
from experiments.common.progress import steps
from experiments.reports.scale.findings import GroupFindings, Wanted
from experiments.reports.scale.write import GROUP_FILES, RUN_FILES, folder_name, former_files, write
from irtjax import FitWarning, InputError, ResponseMatrix
from irtjax.choices import AUTO
from irtjax.responses.agreement import agreement_table
from irtjax.responses.matrix import MISSING, completed
from irtjax.responses.reversing import reversed_items
from irtjax.responses.scaled import ScaledResponses
from irtjax.scale.choices import GRADED
from irtjax.scale.confirmation import confirm, require_enough
from irtjax.scale.elimination import Rules
from irtjax.scale.groups import compare_groups, levels, values_of_subjects
from irtjax.scale.procedure import ScaleOptions, ScaleResult, build_scale, usable_items

FLAGS = flags.FLAGS
ALL, BY_DESIGN = "all", "by_design"
IDLE = {
    "no --items": ["group_column"],
    "no --answers": ["gold_column"],
    "no --subjects": ["baseline"],
    "--guessing": ["choices"],
}
RIGHT_WRONG_ONLY = ("guessing", "choices", "triplets", "fresh", "answers")  # what grades do not have
RESULTS = (*RUN_FILES, *GROUP_FILES)


def run(own: Iterable[flags.Flag]) -> None:
    """Reads, builds a scale for each group of items, writes.

    Args:
        own: the flags of the command, for the record.
    """
    _check_flags()
    responses = _responses()
    items = None if FLAGS.items is None else item_tables.by_id(FLAGS.items, text=True)
    groups = _groups(responses, items)
    expert = item_tables.named_by("expert_drop", responses.item_ids, FLAGS.responses)
    wanted = Wanted(FLAGS.short_form, _range(), FLAGS.least_information)
    subjects = _subjects(responses)
    fresh = None if FLAGS.fresh is None else _fresh(responses)
    agreement = _agreement(items)
    held = _held(responses, items)
    parts = {name: responses.choose_items(groups == name) for name in dict.fromkeys(groups.tolist())}
    options = {name: _options(part, expert, held) for name, part in parts.items()}
    for name, part in parts.items():
        with _naming(name):
            usable_items(part, options[name])  # raises for any group before the first is built
    _check_folders(list(parts))
    with formulas.guarded_results(FLAGS.output_dir, former_files(Path(FLAGS.output_dir))) as directory:
        found = []
        for name, part in parts.items():
            with steps(name) as on_step, _naming(name):
                result = build_scale(part, options[name], on_step)
            found.append(_findings(name, result, fresh, subjects))
        write(found, directory, wanted, agreement, _values(own))
    retained = sum(group.result.num_retained for group in found)
    print(
        f"Done: {FLAGS.output_dir}/report.html, report.md and scale.csv "
        f"({retained} of {responses.num_items} items retained)",
        flush=True,
    )


def _check_flags() -> None:
    """Refuses flags that are out of range or without effect, and results in place of what is read."""
    if FLAGS.least_information == 0:
        raise InputError("--least_information=0: expected a number above 0, such as 4")
    app.refuse_idle(IDLE)
    # the results of a former run are removed from its group folders too
    app.keep_inputs(
        ["responses", "items", "answers", "fresh", "subjects", "expert_drop", "reverse", "guessing"],
        FLAGS.output_dir,
        [*RESULTS, *(f"*/{file}" for file in GROUP_FILES)],
    )
    response_files.require_effect([FLAGS.responses])


Answers = ResponseMatrix | ScaledResponses


def _responses() -> Answers:
    """The responses of --responses, as --missing and --reverse want them."""
    responses = _read()
    reserved = sorted({"theta", "test", "standard_error"} & set(responses.item_ids.tolist()))
    if reserved:
        raise InputError(
            f"{FLAGS.responses}: item '{reserved[0]}' is named like a column of information.csv: rename it"
        )
    turned = item_tables.named_by("reverse", responses.item_ids, FLAGS.responses)
    with app.naming(FLAGS.responses):
        if turned:
            responses = reversed_items(responses, turned)
        return _without_gaps(responses)


def _read() -> Answers:
    """Right and wrong answers; or grades, where --model, --grades or most of the items say so."""
    path = FLAGS.responses
    if FLAGS.model == AUTO and not FLAGS.grades:
        found = response_files.read_or_grades(path, "a scale of grades needs --model=graded")
    else:
        found = response_files.read_scaled(path, FLAGS.model)
    if isinstance(found, ScaledResponses):
        app.without_effect(RIGHT_WRONG_ONLY, "grades")
    return found


def _options(part: Answers, expert: list[str], held: dict[str, float] | None) -> ScaleOptions:
    """How the scale of a group of items is built."""
    there = set(part.item_ids.tolist())
    return ScaleOptions(
        Rules(FLAGS.level, FLAGS.communality, triplets=FLAGS.triplets),
        FLAGS.eigenvalue_ratio,
        tuple(item for item in expert if item in there),
        FLAGS.seed,
        FLAGS.factors,
        FLAGS.choices,
        held,
        FLAGS.missing == BY_DESIGN,
        GRADED[0] if FLAGS.model == AUTO else FLAGS.model,
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
                warnings.warn(f"{FLAGS.fresh}, items of group '{name}': {error}", FitWarning, stacklevel=2)
        if subjects is not None:
            ids = fit.responses.subject_ids
            comparisons = compare_groups(
                values_of_subjects(fit.responses.read(), fit.ability), ids, subjects, FLAGS.baseline
            )
            words = levels(ids, subjects)
    return GroupFindings(name, result, confirmation, comparisons, words)


def _without_gaps(responses: Answers) -> Answers:
    """Responses as --missing wants them."""
    if FLAGS.missing != BY_DESIGN:
        return completed(responses, FLAGS.missing)
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
    return app.naming(f"{FLAGS.responses}, items of group '{group}'")


def _subjects(responses: Answers) -> pd.DataFrame | None:
    """The table of --subjects; raises before anything is fitted if they cannot be compared."""
    if FLAGS.subjects is None:
        return None
    subjects = item_tables.by_id(FLAGS.subjects)
    with app.naming(FLAGS.subjects):
        compare_groups(values_of_subjects(responses), responses.subject_ids, subjects, FLAGS.baseline)
    return subjects


def _fresh(responses: Answers) -> ResponseMatrix:
    """The responses of --fresh to the items that --responses has too."""
    fresh = response_files.read(FLAGS.fresh)
    both = np.isin(fresh.item_ids, responses.item_ids)
    if not both.any():
        raise InputError(f"{FLAGS.fresh}: has no item of {FLAGS.responses}: compare the ids")
    with app.naming(FLAGS.fresh):
        fresh = fresh.choose_items(both)
        if FLAGS.missing != BY_DESIGN:
            fresh = completed(fresh, FLAGS.missing)
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
    name = FLAGS.group_column
    if name not in items:
        raise InputError(f"{FLAGS.items}: no column {name}: name one of {', '.join(items.columns)} by --group_column")
    return item_tables.column(items, name, responses.item_ids, FLAGS.items, FLAGS.responses).to_numpy()


def _range() -> tuple[float, float]:
    with contextlib.suppress(ValueError):
        low, high = map(float, FLAGS.ability_range)
        if -np.inf < low < high < np.inf:
            return low, high
    raise InputError(f"--ability_range={','.join(FLAGS.ability_range)}: expected two numbers, the lower first")


def _agreement(items: pd.DataFrame | None) -> pd.DataFrame | None:
    if FLAGS.answers is None:
        return None
    if items is None or FLAGS.gold_column not in items:
        raise InputError(f"--answers needs --items with a column of gold labels (--gold_column={FLAGS.gold_column})")
    answers = item_tables.by_id(FLAGS.answers, text=True)
    gold = item_tables.column(items, FLAGS.gold_column, answers.columns, FLAGS.items, FLAGS.answers)
    with app.naming(FLAGS.answers):
        return agreement_table(answers, gold)


def _values(own: Iterable[flags.Flag]) -> dict[str, object]:
    """The values of flags by name, lists as on the command line."""
    values = {flag.name: flag.value for flag in own}
    return {name: ",".join(value) if isinstance(value, list) else value for name, value in values.items()}
