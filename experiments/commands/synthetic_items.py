"""Images of a chosen class and difficulty, by the flags of `experiments.synthetic_items`."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from absl import flags

from experiments.common import app, factory, flag_settings, formulas
from experiments.common.progress import fit_bar
from experiments.common.task_items import items_of
from irtjax.errors import InputError
from irtjax.plots.difficulty import by_level
from irtjax.plots.style import save_figure
from irtjax.storage.files import write_csv
from irtjax.synthetic.generator import Settings, generate, require_difficulties, require_images, train_generator
from irtjax.tasks import Task

FLAGS = flags.FLAGS
FILES = ("generated.npz", "items.csv", "control.csv", "levels.csv", "generated.png")
ENDS = 0.05, 0.95  # of the training images' difficulties, between which images are asked for
MOST_JUDGED = 10_000  # training images that the judge learns from


def run() -> None:
    """Makes the generators, asks them for images, and writes these."""
    app.keep_inputs(["items"], FLAGS.output_dir, FILES)
    chosen = flag_settings.from_flags()
    task = factory.load_task(chosen, FLAGS.data_dir)
    known = items_of(FLAGS.items, task).difficulty.to_numpy()
    require_images(task)
    with app.naming(FLAGS.items):
        require_difficulties(task, known)
        low, high = np.quantile(known, ENDS)
        if low == high:
            raise InputError(f"nine of ten difficulties are {low:g}: there are no levels to ask for")
    with formulas.guarded_results(FLAGS.output_dir, FILES) as directory:
        _make(task, known, np.linspace(low, high, FLAGS.levels), chosen.seed, directory)
    print(f"Done: {FLAGS.output_dir}/{', '.join(FILES)}")


def _make(task: Task, known: np.ndarray, levels: np.ndarray, seed: int, directory: Path) -> None:
    """Both sets of images, and what the judge says of them."""
    number = task.num_classes
    labels = np.repeat(np.arange(number), levels.size * FLAGS.per_level)
    asked = np.tile(np.repeat(levels, FLAGS.per_level), number)
    settings = Settings(latent=FLAGS.latent, hidden=FLAGS.hidden)
    images, tables = [], {}
    judge = _judge(task, seed)
    for name, difficulty in (("items", known), ("control", _dealt(task, known, seed))):
        with fit_bar(name, "bound") as on_step:
            generator = train_generator(task, difficulty, settings, seed=seed, on_epoch=on_step)
        images.append(generate(generator, labels, asked, seed=seed))
        ids = [f"{'synthetic' if name == 'items' else name}_{at:05d}" for at in range(labels.size)]
        kept = judge.predict(_rows(images[-1])) == labels
        classes = np.array(task.classes)[labels]
        tables[name] = pd.DataFrame({"item_id": ids, "label": classes, "difficulty": asked, "class_kept": kept})
        write_csv(tables[name], directory / f"{name}.csv")
    arrays: dict[str, Any] = {"images": np.concatenate(images), "labels": np.tile(labels, 2)}
    ids = pd.concat(tables.values()).item_id.to_numpy(str)
    np.savez_compressed(directory / "generated.npz", allow_pickle=False, **arrays, item_id=ids)
    of_levels = pd.concat(tables, names=["set", None]).groupby(["set", "difficulty"], sort=False).class_kept
    summary = of_levels.agg(images="size", class_kept="mean").reset_index()
    write_csv(summary, directory / "levels.csv")
    title = f"Generated {task.name}, by the difficulty asked for"
    save_figure(by_level(images[0], labels, task.classes, asked, title), directory / "generated.png")
    held_out = float((judge.predict(_rows(task.validation.inputs)) == task.validation.labels).mean())
    wide = summary.pivot(index="difficulty", columns="set", values="class_kept")[list(tables)] * 100
    print(f"{labels.size:,} images, {FLAGS.per_level} of each class at each difficulty; % that keep their class, by a")
    print(f"support vector machine with {100 * held_out:.1f}% of the validation images right:")
    print(wide.rename(columns={"items": "asked for"}).rename_axis(columns=None).round(1).to_string())


def _dealt(task: Task, difficulty: np.ndarray, seed: int) -> np.ndarray:
    """The difficulties dealt out anew among the images of a class: all that they say of an image is its class."""
    rng, dealt = np.random.default_rng(seed), difficulty.copy()
    for label in range(task.num_classes):
        own = np.flatnonzero(task.train.labels == label)
        dealt[own] = difficulty[rng.permutation(own)]
    return dealt


def _judge(task: Task, seed: int) -> Any:
    """A support vector machine for the task, of another kind than what the crowd's networks are."""
    from sklearn.svm import SVC

    size = len(task.train.labels)
    rows = np.random.default_rng(seed).permutation(size)[:MOST_JUDGED]
    return SVC().fit(_rows(task.train.inputs)[rows], task.train.labels[rows])


def _rows(images: Any) -> np.ndarray:
    return np.asarray(images, np.float32).reshape(len(images), -1)
