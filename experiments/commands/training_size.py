"""Networks trained on sets of several sizes, by the flags of `experiments.training_size`."""

from pathlib import Path

import numpy as np
import pandas as pd
from absl import flags

from experiments.common import app, factory, flag_settings, peers
from experiments.common.progress import networks_bar
from experiments.common.run_directory import checkpoints_of, open_run, stage
from experiments.common.sources import difficulties_of, names_of
from experiments.reports import document, training_size
from experiments.stages import crowd as crowd_stage
from irtjax import InputError, ResponseMatrix, read_responses
from irtjax.comparison.training_size import regress
from irtjax.crowd import Crowd, train_crowd
from irtjax.crowd.training_size import half_decades, sized_members
from irtjax.responses.joining import concatenate_items
from irtjax.tasks import Task

FLAGS = flags.FLAGS
LEAST = 100  # examples, of the sizes that are chosen for the user
LEAST_ITEMS = 10  # of a scale that is regressed on


def run() -> None:
    """Trains the networks unless that is done already, regresses, and writes the report."""
    if not FLAGS.items:
        raise InputError("--items is missing: difficulties of items that the networks answer")
    names = names_of(FLAGS.items, FLAGS.names)
    scales = dict(zip(names, map(difficulties_of, FLAGS.items), strict=True))
    chosen = flag_settings.from_flags()
    task = factory.load_task(chosen, FLAGS.data_dir)
    sizes = sizes_of(FLAGS.sizes, len(task.train.labels))
    joined = {name: answered(task, scales[name], path) for name, path in zip(names, FLAGS.items, strict=True)}
    used = flag_settings.used(chosen) | {"seeds": FLAGS.seeds, "sizes": ",".join(map(str, sizes))}
    directory = open_run(FLAGS.output_dir, used, task)

    def work() -> Crowd:
        recipe = factory.recipe_of(chosen)
        members = sized_members(sizes, FLAGS.seeds, chosen.seed, recipe, chosen.networks)
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
    values = training_size.write(found, directory) | document.made(used | {"items": ",".join(FLAGS.items)}, directory)
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
