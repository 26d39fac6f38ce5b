r"""What does more training data do for easy and for hard items? Trains networks on sets of several sizes.

  python -m experiments.training_size --task=digits --items=runs/demo/difficulty/hierarchical/items.csv \
    --output_dir=runs/training_size

Every network of every size trains in one pool, on a random subset with its own labels. Their right answers to the items
are regressed on difficulty and log size (Lalor, Wu, Munkhdalai and Yu 2018). Writes report.md, coefficients.csv,
observed.csv and training_size.png, and `crowd/` with members and answers as experiments.crowd does.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from absl import flags

from experiments.common import app, factory, peers, settings, shared_flags, task_flags
from experiments.common.path_flags import define_output_dir
from experiments.common.progress import networks_bar
from experiments.common.run_directory import checkpoints_of, open_run, stage
from experiments.common.sources import difficulties_of, names_of
from experiments.reports import document, training_size
from experiments.stages import crowd as crowd_stage
from irtjax import InputError, ResponseMatrix, read_responses
from irtjax.arguments import LARGEST
from irtjax.comparison.training_size import regress
from irtjax.crowd import Crowd, train_crowd
from irtjax.crowd.training_size import half_decades, sized_members
from irtjax.responses.joining import concatenate_items
from irtjax.tasks import Task

LEAST = 100  # examples, of the sizes that are chosen for the user
LEAST_ITEMS = 10  # of a scale that is regressed on

_OUTPUT_DIR = define_output_dir("run directory")
_ITEMS = flags.DEFINE_list(
    "items", [], "items.csv files with difficulties of items of the validation, test or extra split; one scale each"
)
_NAMES = flags.DEFINE_list("names", [], "what to call these scales, in their order (default: their paths)")
_SIZES = flags.DEFINE_list(
    "sizes", [], "training examples, of which `all` is all (default: 100, 320, 1000, 3200 and so on, and all)"
)
_SEEDS = flags.DEFINE_integer("seeds", 10, "networks of each size and architecture", lower_bound=1, upper_bound=LARGEST)
NOT_USED = {  # of what a crowd is drawn by: here no label is corrupted, and sizes are given
    *settings.OF_DRAWN_MEMBERS,
    "members",
    "only",
    "out_of_bag",
    "stop_on",
}
USED = settings.of_stage("crowd") - NOT_USED
task_flags.define_flags(USED)
shared_flags.define_processes()


def main() -> None:
    """Trains the networks unless that is done already, regresses, and writes the report."""
    if not _ITEMS.value:
        raise InputError("--items is missing: difficulties of items that the networks answer")
    names = names_of(_ITEMS.value, _NAMES.value)
    scales = dict(zip(names, map(difficulties_of, _ITEMS.value), strict=True))
    chosen = task_flags.from_flags()
    task = factory.load_task(chosen, task_flags.DATA_DIR.value)
    sizes = sizes_of(_SIZES.value, len(task.train.labels))
    joined = {name: answered(task, scales[name], path) for name, path in zip(names, _ITEMS.value, strict=True)}
    used = settings.values(chosen, USED) | {"seeds": _SEEDS.value, "sizes": ",".join(map(str, sizes))}
    directory = open_run(_OUTPUT_DIR.value, used, task)

    def work() -> Crowd:
        recipe = factory.recipe_of(chosen)
        members = sized_members(sizes, _SEEDS.value, chosen.seed, recipe, chosen.networks)
        with networks_bar("networks", len(members)) as on_progress:
            return train_crowd(
                task,
                members,
                seed=chosen.seed,
                recipe=recipe,
                slots=chosen.slots or None,
                checkpoints=checkpoints_of(directory, "crowd"),
                on_progress=on_progress,
                mesh=peers.mesh(),
            )

    folder = stage(directory, "crowd", "networks of several sizes", work, crowd_stage.write)
    if not peers.is_first():
        return
    found = [analysis for name in names for analysis in analyses(folder, task, name, joined[name])]
    values = training_size.write(found, directory) | document.made(used | {"items": ",".join(_ITEMS.value)}, directory)
    document.save("training_size", {"task": task, **values}, directory)


def sizes_of(words: list[str], num_examples: int) -> list[int]:
    """The sizes of --sizes, ascending, or half-decades from `LEAST` on and all examples.

    Raises:
        InputError: fewer than two, or one that is no number of examples.
    """
    if not words:
        return half_decades(LEAST, num_examples)
    try:
        sizes = sorted({num_examples if word == "all" else int(word) for word in words})
    except ValueError:
        sizes = []
    if len(sizes) < 2 or not 1 <= sizes[0] <= sizes[-1] <= num_examples:
        raise InputError(f"--sizes={','.join(words)}: expected two or more different numbers, 1 to {num_examples}")
    return sizes


def answered(task: Task, difficulty: pd.Series, path: str) -> pd.Series:
    """The difficulties of the items that networks answer and are not trained on.

    Raises:
        InputError: there are too few, or all have the same.
    """
    ids = np.concatenate([task.split(name).ids for name in task.splits if name != "train"])
    difficulty = difficulty[difficulty.index.isin(ids)]
    if len(difficulty) < LEAST_ITEMS:
        raise InputError(
            f"{path}: {len(difficulty)} of its items are in the validation, test or extra split of {task.name}, "
            f"expected {LEAST_ITEMS} or more; give the texts of others by --extra_items"
        )
    if difficulty.nunique() < 2:
        raise InputError(f"{path}: all difficulties are the same, so that nothing can depend on them")
    return difficulty


def analyses(folder: Path, task: Task, scale: str, difficulty: pd.Series) -> list[training_size.Analysis]:
    """One regression per architecture on the items of a scale."""
    members = pd.read_csv(folder / "members.csv")
    splits = [name for name in task.splits if name != "train"]
    responses: ResponseMatrix = concatenate_items(
        [read_responses(folder / f"responses_{name}.npz", sparse=False) for name in splits]
    )
    table = pd.DataFrame(np.asarray(responses.values).T, responses.item_ids)
    correct = table.loc[difficulty.index].to_numpy().T
    found = []
    for network, rows in members.groupby("network", sort=False):
        at = rows.index.to_numpy()
        sizes = rows.subset_size.to_numpy()
        with app.naming(f"{network} on {scale}"):
            model = regress(correct[at], difficulty.to_numpy(), sizes)
        analysis = training_size.Analysis(scale, str(network), sizes, correct[at], difficulty.to_numpy(), model)
        found.append(analysis)
    return found


if __name__ == "__main__":
    app.run(main, resumes=True, device_per_core=True)
