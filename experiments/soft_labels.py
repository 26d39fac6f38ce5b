r"""Does a network learn from how people divide over the classes of an item? Trains on soft labels beside hard ones.

Soft labels are shares of answers: of people (--answers), given (--soft_labels), or of the networks of a crowd
(--predictions, which is distillation from an ensemble). Methods, from the same initial weights for the same seed:

  B0            the training data
  B1            with the soft items and their gold labels
  B3            with every answer as an example of its own
  I-CCE, I-MSE  SLMG-I: in every epoch the training data, then the soft items with their soft labels
  S-CCE, S-MSE  SLMG-S: --meta_epochs epochs on the training data, then as many on the soft items, and so on

  python -m experiments.soft_labels --task=digits --predictions=runs/demo/crowd/predictions_train.npz \
    --output_dir=runs/soft_labels

Writes report.md, methods.csv, confusion.csv and pictures. Method and sources: docs/guide/soft_labels.md.
"""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
from absl import flags

from experiments.common import app, factory, settings
from experiments.common.path_flags import define_output_dir, define_path
from experiments.common.progress import CurriculumProgress
from experiments.common.run_directory import open_run, stage
from experiments.common.soft_items import Found, of_answers, of_predictions, of_shares
from experiments.reports import document, soft_labels
from irtjax import InputError
from irtjax.soft_labels.methods import METHODS
from irtjax.soft_labels.train import train_method
from irtjax.storage.files import write_csv

_OUTPUT_DIR = define_output_dir("run directory")
_ANSWERS = define_path("answers", "CSV of answers of people: subject id first in each row, one column per item")
_CODES = flags.DEFINE_list("codes", [], "what answers stand for, as 1:negative,2:negative (default: names of classes)")
_SOFT_LABELS = define_path("soft_labels", "CSV of item_id and one column of shares per class, in place of --answers")
_PREDICTIONS = define_path("predictions", "predictions_train.npz of a crowd, in place of --answers")
_SHARE = flags.DEFINE_float(
    "soft_share",
    0.1,
    "share of the training items that have soft labels, of --predictions",
    lower_bound=0,
    upper_bound=1,
)
_METHODS = flags.DEFINE_list("methods", [], f"which to compare (default: {','.join(METHODS)}, as far as possible)")
_META_EPOCHS = flags.DEFINE_integer(
    "meta_epochs", 3, "epochs in a row on either kind of data, of SLMG-S", lower_bound=1, upper_bound=settings.LARGEST
)
_SEEDS = flags.DEFINE_integer("seeds", 20, "networks for each method", lower_bound=1, upper_bound=settings.LARGEST)
SOURCES = ("answers", "soft_labels", "predictions")
USED = (settings.of_stage("filtering") - {"filtering_seeds", "centre", "epoch", "steps_per_epoch", "slots"}) | {
    "extra_items"
}
settings.define_flags(USED)


def main() -> None:
    """Trains by each method unless that is done already, then writes the report."""
    given = [name for name in SOURCES if flags.FLAGS[name].value]
    if len(given) != 1:
        raise InputError(f"expected one of {', '.join(f'--{name}' for name in SOURCES)}, found {len(given)}")
    source = given[0]
    app.without_effect([] if source == "predictions" else ["soft_share"], f"--{source}")
    app.without_effect([] if source == "answers" else ["codes"], f"--{source}")
    chosen = settings.from_flags()
    if source == "predictions":
        app.without_effect(["extra_items"], "--predictions")
    task = factory.load_task(chosen, settings.DATA_DIR.value)
    found = _read(source, task, chosen.seed)
    usual = [name for name in METHODS if name != "B3" or source == "answers"]
    methods = app.choose("methods", _METHODS.value, METHODS) if _METHODS.value else usual
    if "B3" in methods and found.items.counts is None:
        raise InputError("--methods: B3 trains on every answer, and --soft_labels has shares only: leave it out")
    own = {"seeds": _SEEDS.value, "methods": ",".join(methods), "meta_epochs": _META_EPOCHS.value}
    own |= {"codes": ",".join(_CODES.value)} if source == "answers" else {}
    own |= {"soft_share": _SHARE.value} if source == "predictions" else {}
    used = settings.values(chosen, USED) | own
    items = found.items
    labels = pd.DataFrame(items.shares if items.counts is None else items.counts, items.split.ids)
    directory = open_run(_OUTPUT_DIR.value, used, found.task, labels)
    stage(directory, "soft_labels", "soft labels", lambda: _train(chosen, found, methods), _write)
    parts = [
        f"# {task.name}: learning from soft labels",
        *soft_labels.write(chosen, found, source, directory),
        document.how_it_was_made(used | {source: flags.FLAGS[source].value}, directory),
    ]
    document.save(parts, directory)


def _read(source: str, task: factory.tasks.Task, seed: int) -> Found:
    path = flags.FLAGS[source].value
    if source == "predictions":
        return of_predictions(path, _SHARE.value, task, seed)
    if source == "soft_labels":
        return of_shares(path, task)
    codes = dict(pair.split(":", 1) if ":" in pair else (pair, "") for pair in _CODES.value)
    if "" in codes.values():
        raise InputError(f"--codes={','.join(_CODES.value)}: expected pairs such as 1:{task.classes[0]}")
    return of_answers(path, codes, task)


def _train(chosen: settings.Settings, found: Found, methods: list[str]) -> dict[str, pd.DataFrame]:
    recipe = dataclasses.replace(factory.recipe_of(chosen), steps_per_epoch=None)
    progress = CurriculumProgress(recipe.max_epochs)
    rows, confusion = [], []
    test, classes = found.task.test, found.task.classes
    for method in methods:
        with progress.strategy(method):
            trained = train_method(
                found.task,
                found.items,
                method,
                recipe=recipe,
                num_seeds=_SEEDS.value,
                first_seed=chosen.seed,
                meta_epochs=_META_EPOCHS.value,
                on_epoch=progress.on_epoch,
            )
        accuracy = (trained.classes == test.labels).mean(1)
        columns = {"seed": chosen.seed + np.arange(len(accuracy)), "best_epoch": trained.best_epoch}
        columns |= {"dev_accuracy": trained.validation_accuracy, "test_accuracy": accuracy}
        rows.append(pd.DataFrame({"method": method, **columns}))
        pairs = np.bincount(
            (test.labels * len(classes) + trained.classes).ravel(), minlength=len(classes) ** 2
        ).reshape(len(classes), -1)
        for gold, counts in zip(classes, pairs / len(accuracy), strict=True):
            confusion.append({"method": method, "gold": gold, **dict(zip(classes, counts, strict=True))})
    return {"methods": pd.concat(rows, ignore_index=True), "confusion": pd.DataFrame(confusion)}


def _write(tables: dict[str, pd.DataFrame], folder: Path) -> None:
    for name, table in tables.items():
        write_csv(table, folder / f"{name}.csv")


if __name__ == "__main__":
    app.run(main, device_per_core=True)
