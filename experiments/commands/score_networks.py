"""Scores of networks on scales of people, by the flags of `experiments.score_networks`."""

import numpy as np
import pandas as pd
from absl import flags

import irtjax
from experiments.common import app, formulas
from experiments.common.sources import names_of
from experiments.reports import score_networks as report
from irtjax import InputError, ResponseMatrix
from irtjax.fits.fit_files import holds_fit
from irtjax.populations.percentiles import percentile_among
from irtjax.responses.joining import concatenate_items
from irtjax.scoring.abilities import item_table
from irtjax.storage.sources import expanded
from irtjax.storage.tables import read_table
from irtjax.tasks.task import SPLITS

FLAGS = flags.FLAGS
LEAST_ITEMS = 3  # of a scale that a network must have answered


def run() -> None:
    """Scores every network on every scale and writes the report."""
    if not FLAGS.scales:
        raise InputError("--scales is missing: items.csv of the scales that networks are scored on")
    if not FLAGS.crowds:
        raise InputError("--crowds is missing: run directories of experiments.crowd")
    if FLAGS.people and len(FLAGS.people) != len(FLAGS.scales):
        raise InputError(f"--people: {len(FLAGS.people)} files for {len(FLAGS.scales)} scales, expected one each")
    app.keep_inputs(["scales", "people"], FLAGS.output_dir, report.FILES)
    scale_names = names_of(FLAGS.scales, FLAGS.scale_names, "scale_names")
    people = dict(zip(scale_names, map(abilities_of, FLAGS.people), strict=False))
    crowds = dict(zip(names_of(FLAGS.crowds, FLAGS.names), map(crowd_of, FLAGS.crowds), strict=True))
    tables = []
    for scale, path in zip(scale_names, FLAGS.scales, strict=True):
        fit = irtjax.load_fit(path) if holds_fit(path) else None  # whose population percentiles refer to
        items = item_table(path if fit is None else fit)
        for crowd, (members, answers) in crowds.items():
            chosen = np.isin(answers.item_ids, items.index)
            if chosen.sum() < LEAST_ITEMS:
                raise InputError(
                    f"{path}: networks of {crowd} have answered {chosen.sum()} of its {len(items):,} items, expected "
                    f"{LEAST_ITEMS} or more; give the texts to experiments.crowd by --extra_items"
                )
            with app.naming(path):
                scores = irtjax.score(fit or items.reset_index(), answers.choose_items(chosen), FLAGS.method)
            if "ability" not in scores:
                raise InputError(f"{path}: a scale of several dimensions; expected one")
            tables.append(table_of(crowd, scale, members, scores, int(chosen.sum()), len(items), people.get(scale)))
    given = app.lists(("scales", "scale_names", "people", "crowds", "names"))
    given |= {"method": FLAGS.method}
    with formulas.guarded_results(FLAGS.output_dir) as directory:
        report.write(pd.concat(tables, ignore_index=True), given, directory)
    print(f"Done: {FLAGS.output_dir}/report.html, report.md, networks.csv and networks.png")


def abilities_of(path: str) -> np.ndarray:
    """The abilities of the people of a scale.

    Raises:
        InputError: there are none.
    """
    table = read_table(path)
    if "ability" not in table:
        raise InputError(f"{path}: no column ability; experiments.build_scale and experiments.fit_irt write it")
    abilities = pd.to_numeric(table["ability"], errors="coerce").dropna().to_numpy(float)
    if not abilities.size:
        raise InputError(f"{path}: no numbers in the column ability")
    return abilities


def crowd_of(path: str) -> tuple[pd.DataFrame, ResponseMatrix]:
    """The members of a crowd, and their answers to all items that they were not trained on.

    Raises:
        InputError: the folder is no run directory of a crowd.
    """
    folder = expanded(path) / "crowd"
    if not (folder / "members.csv").is_file():
        raise InputError(f"{path}: no crowd/members.csv; expected a run directory of experiments.crowd")
    members = read_table(folder / "members.csv")
    files = [folder / f"responses_{split}.npz" for split in (*SPLITS, "extra") if split != "train"]
    parts = [irtjax.read_responses(file, sparse=False) for file in files if file.is_file()]
    seen: set[str] = set()
    unique = []
    for part in reversed(parts):  # an item that is in a split and among the extra ones is there once
        new = np.array([item not in seen for item in part.item_ids])
        seen |= set(part.item_ids)
        if new.any():
            unique.append(part.choose_items(new))
    return members, concatenate_items(unique)


def table_of(
    crowd: str,
    scale: str,
    members: pd.DataFrame,
    scores: pd.DataFrame,
    answered: int,
    items: int,
    people: np.ndarray | None,
) -> pd.DataFrame:
    """One row per network of a crowd: its ability on a scale, percentiles, and accuracies."""
    columns = {"subset_size": members.subset_size, "accuracy_test": members.accuracy_test}
    if "accuracy_extra" in members:
        columns["accuracy_extra"] = members.accuracy_extra
    among = np.full(len(scores), np.nan)
    if people is not None:
        among = percentile_among(people, scores.ability.to_numpy())
    return pd.DataFrame(
        {
            "crowd": crowd,
            "subject_id": members.subject_id.to_numpy(),
            "scale": scale,
            "items": items,
            "answered": answered,
            "ability": scores.ability,
            "ability_se": scores.ability_se,
            "percentile_people": among,
            "percentile_normal": scores.percentile,
            "accuracy_scale": scores.proportion_correct,
            **{name: column.to_numpy() for name, column in columns.items()},
        }
    )
