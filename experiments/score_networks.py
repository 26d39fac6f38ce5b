r"""How able are networks on the scale of people? Scores the answers of crowds to the items of one or more scales.

  python -m experiments.score_networks --scales=runs/scale/items.csv --people=runs/scale/subjects.csv \
    --crowds=runs/lstm,runs/nse --output_dir=runs/networks

A scale is an items.csv of experiments.build_scale or experiments.fit_irt; a crowd is a run directory of
experiments.crowd, whose networks have answered the items (--extra_items gives them the texts). Writes report.md,
networks.csv (one row per network and scale) and networks.png.

On 2 CPU cores, a quarter of a minute.
"""

import numpy as np
import pandas as pd
from absl import flags

import irtjax
from experiments.common import app, formulas, shared_flags
from experiments.common.path_flags import define_output_dir
from experiments.common.sources import names_of
from experiments.reports import score_networks as report
from irtjax import InputError, ResponseMatrix
from irtjax.fits.fit_files import holds_fit
from irtjax.populations.percentiles import percentile_among
from irtjax.responses.joining import concatenate_items
from irtjax.scoring.abilities import METHODS, item_table
from irtjax.storage.sources import expanded
from irtjax.storage.tables import read_table
from irtjax.tasks.task import SPLITS

LEAST_ITEMS = 3  # of a scale that a network must have answered

_SCALES = flags.DEFINE_list("scales", [], "items.csv of each scale, or the folder of a saved fit")
_SCALE_NAMES = flags.DEFINE_list("scale_names", [], "what to call the scales, in their order (default: their paths)")
_PEOPLE = flags.DEFINE_list(
    "people", [], "subjects.csv with the abilities of the people of each scale, in the order of --scales; or none"
)
_CROWDS = flags.DEFINE_list("crowds", [], "run directories of experiments.crowd")
_NAMES = flags.DEFINE_list("names", [], "what to call the crowds, in their order (default: their paths)")
_METHOD = flags.DEFINE_enum("method", "eap", METHODS, "maximum likelihood, posterior mode or mean")
_OUTPUT_DIR = define_output_dir()
shared_flags.define_guard()


def main() -> None:
    """Scores every network on every scale and writes the report."""
    if not _SCALES.value:
        raise InputError("--scales is missing: items.csv of the scales that networks are scored on")
    if not _CROWDS.value:
        raise InputError("--crowds is missing: run directories of experiments.crowd")
    if _PEOPLE.value and len(_PEOPLE.value) != len(_SCALES.value):
        raise InputError(f"--people: {len(_PEOPLE.value)} files for {len(_SCALES.value)} scales, expected one each")
    app.keep_inputs(["scales", "people"], _OUTPUT_DIR.value, report.FILES)
    scale_names = names_of(_SCALES.value, _SCALE_NAMES.value, "scale_names")
    people = dict(zip(scale_names, map(abilities_of, _PEOPLE.value), strict=False))
    crowds = dict(zip(names_of(_CROWDS.value, _NAMES.value), map(crowd_of, _CROWDS.value), strict=True))
    tables = []
    for scale, path in zip(scale_names, _SCALES.value, strict=True):
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
                scores = irtjax.score(fit or items.reset_index(), answers.choose_items(chosen), _METHOD.value)
            if "ability" not in scores:
                raise InputError(f"{path}: a scale of several dimensions; expected one")
            tables.append(table_of(crowd, scale, members, scores, int(chosen.sum()), len(items), people.get(scale)))
    given = app.lists(("scales", "scale_names", "people", "crowds", "names"))
    given |= {"method": _METHOD.value}
    with formulas.guarded_results(_OUTPUT_DIR.value) as directory:
        report.write(pd.concat(tables, ignore_index=True), given, directory)
    print(f"Done: {_OUTPUT_DIR.value}/report.html, report.md, networks.csv and networks.png")


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


if __name__ == "__main__":
    app.run(main)
