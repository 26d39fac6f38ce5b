r"""Can a network learn a task and predict how difficult its items are? Trains on both, and on the task alone.

A second head predicts the difficulty of the item that is read, with a standard deviation, from a crowd's
difficulties of the training items (--items). Networks of one seed begin with the same weights.

  python -m experiments.joint_training --task=digits --items=runs/digits/fit/items.csv \
    --test_items=runs/digits/test/items.csv --output_dir=runs/joint

Writes report.md, networks.csv (one row per network), outside.csv (how well out-of-distribution examples are
detected), said.csv (one row per example) and pictures. Method: docs/guide/joint_training.md.
"""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from absl import flags

from experiments.common import app, factory, settings, task_flags
from experiments.common.path_flags import define_output_dir, define_path
from experiments.common.progress import CurriculumProgress
from experiments.common.run_directory import open_run, stage
from experiments.common.task_items import items_of
from experiments.reports import document, joint_training
from irtjax import InputError
from irtjax.arguments import LARGEST
from irtjax.joint.outside import auc, outside_images, outside_texts
from irtjax.joint.predicted import against_responses, outside_scores, together
from irtjax.joint.train import Difficulties, require_sound, train_jointly
from irtjax.storage.files import write_csv
from irtjax.tasks import Task
from irtjax.tasks.item_texts import read_item_texts
from irtjax.tasks.task import Split, TextFormat, join
from irtjax.training.mixture import TrainedSeeds

METHODS = {"alone": 0.0, "joint": 1.0}  # by what --difficulty_weight is multiplied
TEST = "test"  # the name of the test split among the sets that are asked
NEED = ("difficulty", "difficulty_se")

_OUTPUT_DIR = define_output_dir("run directory")
_ITEMS = define_path("items", "items.csv with the difficulty of every training example, and its error", required=True)
_TEST_ITEMS = define_path("test_items", "items.csv with that of every test example: what predictions are compared with")
_WEIGHT = flags.DEFINE_float(
    "difficulty_weight", 0.3, "weight of the difficulties' part of the loss", lower_bound=0, upper_bound=1e6
)
_OUTSIDE = define_path("outside", "text: CSV of ids and texts that are of none of the classes")
_OUTSIDE_COLUMNS = flags.DEFINE_list(
    "outside_columns", [], "its columns of text, one or two (default: text, or premise and hypothesis)"
)
_SEEDS = flags.DEFINE_integer("seeds", 10, "networks for each method", lower_bound=1, upper_bound=LARGEST)
USED = settings.of_stage("filtering") - {"filtering_seeds", "centre", "epoch", "steps_per_epoch", "slots"}
task_flags.define_flags(USED)


def main() -> None:
    """Trains by each method unless that is done already, then writes the report."""
    chosen = task_flags.from_flags()
    if not 0 < _WEIGHT.value < np.inf:
        raise InputError(f"--difficulty_weight={_WEIGHT.value}: expected a finite number above 0")
    app.refuse_idle({"no --outside": ["outside_columns"]})
    task = factory.load_task(chosen, task_flags.DATA_DIR.value)
    items = items_of(_ITEMS.value, task, need=NEED)
    with app.naming(_ITEMS.value):
        require_sound(task, _known(items))
    test = None if _TEST_ITEMS.value is None else items_of(_TEST_ITEMS.value, task, need=NEED, split="test")
    outside = _outside(task, chosen)
    own: dict[str, Any] = {"seeds": _SEEDS.value, "difficulty_weight": _WEIGHT.value}
    own |= {} if _OUTSIDE.value is None else {"outside": _OUTSIDE.value, "outside_columns": _OUTSIDE_COLUMNS.value}
    used = settings.values(chosen, USED) | own
    read = pd.concat([items] if test is None else [items, test])
    task_read = dataclasses.replace(task, extra=join(*outside.values())) if outside else task
    directory = open_run(_OUTPUT_DIR.value, used, task_read, read)
    stage(directory, "joint", "joint", lambda: _train(chosen, task, items, test, outside), _write)
    made = document.made(used | {"items": _ITEMS.value, "test_items": _TEST_ITEMS.value}, directory)
    document.save("joint_training", joint_training.write(task, directory, test) | made, directory)


def _known(items: pd.DataFrame) -> Difficulties:
    """What the table says of the training items."""
    return Difficulties(items.difficulty.to_numpy(), items.difficulty_se.to_numpy())


def _outside(task: Task, chosen: settings.Settings) -> dict[str, Split]:
    """Out-of-distribution examples, by name."""
    if chosen.frozen:  # vectors of texts
        app.without_effect(["outside"], "--frozen")
        return {}
    if not isinstance(task.format, TextFormat):
        app.without_effect(["outside"], f"a task of images such as {task.name}")
        return outside_images(task, chosen.seed)
    if _OUTSIDE.value is None:
        return {}
    texts = read_item_texts(_OUTSIDE.value, _OUTSIDE_COLUMNS.value)
    with app.naming(_OUTSIDE.value):
        name = Path(_OUTSIDE.value).stem
        return {"outside" if name == TEST else name: outside_texts(task, texts)}


def _train(
    chosen: settings.Settings,
    task: Task,
    items: pd.DataFrame,
    test: pd.DataFrame | None,
    outside: dict[str, Split],
) -> dict[str, pd.DataFrame]:
    recipe = dataclasses.replace(factory.recipe_of(chosen), steps_per_epoch=None)
    progress = CurriculumProgress(recipe.max_epochs)
    asked = {TEST: task.test, **outside}
    networks, found = [], []
    trained: TrainedSeeds | None = None
    for method, factor in METHODS.items():
        with progress.strategy(method):
            trained = train_jointly(
                task,
                _known(items),
                factor * _WEIGHT.value,
                recipe=recipe,
                asked=asked,
                num_seeds=_SEEDS.value,
                first_seed=chosen.seed,
                on_epoch=progress.on_epoch,
            )
        seeds = chosen.seed + np.arange(_SEEDS.value)
        columns = {"method": method, "seed": seeds, "best_epoch": trained.best_epoch}
        columns |= {"dev_accuracy": trained.validation_accuracy}
        columns |= {"test_accuracy": (trained.answers[TEST].classes == task.test.labels).mean(1)}
        if test is not None:
            known_of_test = test.difficulty.to_numpy(), test.difficulty_se.to_numpy()
            columns |= against_responses(trained.answers[TEST], *known_of_test, predicts=factor > 0)
        networks.append(pd.DataFrame(columns))
        found += [
            {"method": method, "seed": seed, "outside": name, "score": score, "auc": auc(inside[at], values[at])}
            for name in outside
            for (score, inside), values in zip(
                outside_scores(trained.answers[TEST], predicts=factor > 0).items(),
                outside_scores(trained.answers[name], predicts=factor > 0).values(),
                strict=True,
            )
            for at, seed in enumerate(seeds)
        ]
    assert trained is not None
    of_sets = {name: together(trained.answers[name], split.ids) for name, split in asked.items()}
    said = pd.concat(of_sets, names=["set", None]).reset_index("set").reset_index(drop=True)
    return {
        "networks": pd.concat(networks, ignore_index=True),
        "outside": pd.DataFrame(found, columns=["method", "seed", "outside", "score", "auc"]),
        "said": said,
    }


def _write(tables: dict[str, pd.DataFrame], folder: Path) -> None:
    for name, table in tables.items():
        write_csv(table, folder / f"{name}.csv")


if __name__ == "__main__":
    app.run(main, device_per_core=True)
