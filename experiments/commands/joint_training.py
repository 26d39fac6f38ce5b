"""Networks that learn a task and difficulties, beside the task alone, by the flags of `experiments.joint_training`."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from absl import flags
from scipy.stats import spearmanr

from experiments.common import app, factory, flag_settings, settings
from experiments.common.progress import CurriculumProgress
from experiments.common.run_directory import open_run, stage
from experiments.common.task_items import items_of
from experiments.reports import document, joint_training
from irtjax import InputError
from irtjax.joint.outside import auc, has_images, outside_images, outside_texts
from irtjax.joint.predicted import against_responses, outside_scores, together
from irtjax.joint.train import ADVERSARIAL, Difficulties, Predictions, require_sound, train_jointly
from irtjax.storage.files import write_csv
from irtjax.tasks import Task
from irtjax.tasks.item_texts import read_item_texts
from irtjax.tasks.task import Split, TextFormat, join
from irtjax.training.mixture import TrainedSeeds

FLAGS = flags.FLAGS
METHODS = "alone", "joint", "own"  # the task; difficulties by a crowd as well; by the network's own answers
TEST = "test"  # the name of the test split among the sets that are asked
NEED = ("difficulty", "difficulty_se")


def run() -> None:
    """Trains by each method unless that is done already, then writes the report."""
    chosen = flag_settings.from_flags()
    if not 0 < FLAGS.difficulty_weight < np.inf:
        raise InputError(f"--difficulty_weight={FLAGS.difficulty_weight}: expected a finite number above 0")
    app.refuse_idle({"no --outside": ["outside_columns"]})
    task = factory.load_task(chosen, FLAGS.data_dir)
    items = items_of(FLAGS.items, task, need=NEED)
    with app.naming(FLAGS.items):
        require_sound(task, _known(items))
    test = None if FLAGS.test_items is None else items_of(FLAGS.test_items, task, need=NEED, split="test")
    outside = _outside(task, chosen)
    attack = _attack(task, chosen)
    own: dict[str, Any] = {"seeds": FLAGS.seeds, "difficulty_weight": FLAGS.difficulty_weight}
    own |= {} if FLAGS.outside is None else {"outside": FLAGS.outside, "outside_columns": FLAGS.outside_columns}
    own |= {"attack": attack} if has_images(task) else {}
    used = flag_settings.used(chosen) | own
    read = pd.concat([items] if test is None else [items, test])
    task_read = dataclasses.replace(task, extra=join(*outside.values())) if outside else task
    directory = open_run(FLAGS.output_dir, used | {"methods": ",".join(METHODS)}, task_read, read)
    stage(directory, "joint", "joint", lambda: _train(chosen, task, items, test, outside, attack), _write)
    made = document.made(used | {"items": FLAGS.items, "test_items": FLAGS.test_items}, directory)
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
        return outside_images(task, chosen.seed) if has_images(task) else {}
    if FLAGS.outside is None:
        return {}
    texts = read_item_texts(FLAGS.outside, FLAGS.outside_columns)
    with app.naming(FLAGS.outside):
        name = Path(FLAGS.outside).stem
        return {"outside" if name in (TEST, ADVERSARIAL) else name: outside_texts(task, texts)}


def _attack(task: Task, chosen: settings.Settings) -> float:
    """The step against images; 0 where there are none."""
    if has_images(task):
        return FLAGS.attack
    app.without_effect(["attack"], "--frozen" if chosen.frozen else f"{task.name}, which has no images")
    return 0.0


def _train(
    chosen: settings.Settings,
    task: Task,
    items: pd.DataFrame,
    test: pd.DataFrame | None,
    outside: dict[str, Split],
    attack: float,
) -> dict[str, pd.DataFrame]:
    recipe = dataclasses.replace(factory.recipe_of(chosen), steps_per_epoch=None)
    progress = CurriculumProgress(recipe.max_epochs)
    asked = {TEST: task.test, **outside}
    sets = asked | ({ADVERSARIAL: task.test} if attack else {})
    seeds = chosen.seed + np.arange(FLAGS.seeds)
    networks, found, trained = [], [], {}
    for method in METHODS:
        with progress.strategy(method):
            trained[method] = train_jointly(
                task,
                None if method == "own" else _known(items),
                0.0 if method == "alone" else FLAGS.difficulty_weight,
                recipe=recipe,
                asked=asked,
                attack=attack,
                num_seeds=FLAGS.seeds,
                first_seed=chosen.seed,
                on_epoch=progress.on_epoch,
            )
        networks.append(_networks(method, seeds, trained[method], task, items, test))
        found += _outside_aucs(method, seeds, {name: trained[method].answers[name] for name in sets})
    answers = trained["joint"].answers
    of_sets = {name: together(answers[name], split.ids) for name, split in sets.items()}
    said = pd.concat(of_sets, names=["set", None]).reset_index("set").reset_index(drop=True)
    return {
        "networks": pd.concat(networks, ignore_index=True),
        "outside": pd.DataFrame(found, columns=["method", "seed", "outside", "score", "auc"]),
        "said": said,
    }


def _networks(
    method: str, seeds: np.ndarray, trained: TrainedSeeds, task: Task, items: pd.DataFrame, test: pd.DataFrame | None
) -> pd.DataFrame:
    """One row for each network of a method."""
    columns = {"method": method, "seed": seeds, "best_epoch": trained.best_epoch}
    columns |= {"dev_accuracy": trained.validation_accuracy}
    for name in (TEST, ADVERSARIAL):
        if name in trained.answers:
            columns[f"{name}_accuracy"] = (trained.answers[name].classes == task.test.labels).mean(1)
    if test is not None:
        known_of_test = test.difficulty.to_numpy(), test.difficulty_se.to_numpy()
        columns |= against_responses(trained.answers[TEST], *known_of_test, predicts=method != "alone")
    if method == "own":  # on a scale of its own
        columns = {name: column for name, column in columns.items() if name not in ("rmse", "coverage")}
        own, by_crowd = trained.memory.mean, items.difficulty.to_numpy()
        columns["spearman_train"] = np.array([spearmanr(row, by_crowd).statistic for row in own])
    return pd.DataFrame(columns)


def _outside_aucs(method: str, seeds: np.ndarray, answers: dict[str, Predictions]) -> list[dict[str, Any]]:
    """How well each score of each network detects the examples of each set but the test split."""
    scores = {name: outside_scores(said, predicts=method != "alone") for name, said in answers.items()}
    return [
        {"method": method, "seed": seed, "outside": name, "score": score, "auc": auc(inside[at], of_set[score][at])}
        for name, of_set in scores.items()
        if name != TEST
        for score, inside in scores[TEST].items()
        for at, seed in enumerate(seeds)
    ]


def _write(tables: dict[str, pd.DataFrame], folder: Path) -> None:
    for name, table in tables.items():
        write_csv(table, folder / f"{name}.csv")
