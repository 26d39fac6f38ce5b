r"""Does a network learn from how people divide over the classes of an item? Trains on soft labels beside hard ones.

Soft labels are shares of answers: of people (--answers), given (--soft_labels), or of the networks of a crowd
(--predictions, which is distillation from an ensemble). Methods, from the same initial weights for the same seed:

  B0            the training data
  B1            with the soft items and their gold labels
  B2            with these and further data (--extra_data)
  B3            with every answer as an example of its own
  I-CCE, I-MSE  SLMG-I: in every epoch the training data, then the soft items with their soft labels
  S-CCE, S-MSE  SLMG-S: --epochs_in_a_row epochs on the training data, then as many on the soft items, and so on

  python -m experiments.soft_labels --task=digits --predictions=runs/demo/crowd/predictions_train.npz \
    --output_dir=runs/soft_labels

With --held_out, also says how far the networks' probabilities are from the shares of people on items that they did not
learn from.

Writes report.md, methods.csv, confusion.csv and pictures. Method and sources: docs/guide/soft_labels.md.
"""

import dataclasses
import functools
from pathlib import Path

import jax
import numpy as np
import pandas as pd
from absl import flags

from experiments.common import app, factory, settings, task_flags
from experiments.common.path_flags import define_output_dir, define_path
from experiments.common.progress import CurriculumProgress, reading_bar
from experiments.common.run_directory import open_run, stage
from experiments.common.soft_items import Found, counts_of_networks, of_answers, of_predictions, of_shares
from experiments.reports import document, soft_labels
from irtjax import InputError, read_items
from irtjax.arguments import LARGEST
from irtjax.pretrained.folder import read_pretrained
from irtjax.soft_labels.calibration import calibration, permuted
from irtjax.soft_labels.items import unseen
from irtjax.soft_labels.labels import people_and_networks
from irtjax.soft_labels.methods import METHODS, WITHOUT_HARD_DATA, epochs_of
from irtjax.soft_labels.train import SoftItems, train_method
from irtjax.storage.files import write_csv
from irtjax.tasks.extra_items import read_examples, read_split
from irtjax.tasks.task import Split, join
from irtjax.training.features import frozen_examples
from irtjax.training.mixture import TrainedSeeds

_OUTPUT_DIR = define_output_dir("run directory")
_ANSWERS = define_path(
    "answers", "CSV of answers of people: subject id first in each row, one column per item; or a row per label"
)
_CODES = flags.DEFINE_list("codes", [], "what answers stand for, as 1:negative,2:negative (default: names of classes)")
_SOFT_LABELS = define_path(
    "soft_labels", "CSV of item_id and one column per class, of shares or numbers of answers, in place of --answers"
)
_PREDICTIONS = define_path("predictions", "predictions_train.npz of a crowd, in place of --answers")
_SHARE = flags.DEFINE_float(
    "soft_share",
    0.1,
    "share of the training items that have soft labels, of --predictions",
    lower_bound=0,
    upper_bound=1,
)
_METHODS = flags.DEFINE_list("methods", [], f"which to compare (default: {','.join(METHODS)}, as far as possible)")
_EXTRA_DATA = define_path("extra_data", "CSV of further training data of method B2: ids, texts and labels")
_RESPONDENTS = flags.DEFINE_integer(
    "respondents",
    0,
    "also train by I-CCE on the soft labels of so many people, drawn anew for each seed (--answers)",
    lower_bound=0,
    upper_bound=LARGEST,
)
_HELD_OUT = flags.DEFINE_float(
    "held_out",
    0,
    "share of the items with soft labels that are not learned from: how far the networks are from their soft labels",
    lower_bound=0,
    upper_bound=1,
)
_PERMUTED = flags.DEFINE_bool(
    "permuted", False, "also train by I-CCE on soft labels that are exchanged among the items of a gold label"
)
_EQUAL_PASSES = flags.DEFINE_bool(
    "equal_passes", False, "SLMG-S has as many passes over the training data as the others, in up to twice the epochs"
)
_NETWORKS = define_path("networks", "predictions_extra.npz of a crowd: compare its soft labels with those of --answers")
_ITEMS = define_path("items", "items.csv with the items' difficulties, for --networks")
_EPOCHS_IN_A_ROW = flags.DEFINE_integer(
    "epochs_in_a_row", 3, "epochs in a row on either kind of data, of SLMG-S", lower_bound=1, upper_bound=LARGEST
)
_SEEDS = flags.DEFINE_integer("seeds", 20, "networks for each method", lower_bound=1, upper_bound=LARGEST)
PERMUTED = 4  # the random stream of the control
SOURCES = ("answers", "soft_labels", "predictions")
USED = (settings.of_stage("filtering") - {"filtering_seeds", "centre", "epoch", "steps_per_epoch", "slots"}) | {
    "extra_items"
}
task_flags.define_flags(USED)


def main() -> None:
    """Trains by each method unless that is done already, then writes the report."""
    given = [name for name in SOURCES if flags.FLAGS[name].value]
    if len(given) != 1:
        raise InputError(f"expected one of {', '.join(f'--{name}' for name in SOURCES)}, found {len(given)}")
    source = given[0]
    app.without_effect([] if source == "predictions" else ["soft_share"], f"--{source}")
    if _SHARE.value == 0:
        raise InputError("--soft_share=0: expected a share above 0, such as 0.1")
    app.without_effect([] if source == "answers" else ["codes", "respondents", "networks", "items"], f"--{source}")
    app.refuse_idle({"no --networks": ["items"]})
    if _NETWORKS.value is not None and _ITEMS.value is None:
        raise InputError("--networks needs --items: the difficulties of the items")
    chosen = task_flags.from_flags()
    if source == "predictions":
        app.without_effect(["extra_items"], "--predictions")
    task = factory.load_task(chosen, task_flags.DATA_DIR.value)
    found = _read(source, task, chosen.seed)
    answered = source != "predictions" and found.items.counts is not None
    given_data = {"B2": _EXTRA_DATA.value is not None, "B3": answered}
    possible = METHODS if len(found.task.train.labels) else WITHOUT_HARD_DATA
    usual = [name for name in possible if given_data.get(name, True)]
    methods = app.choose("methods", _METHODS.value, METHODS) if _METHODS.value else usual
    if impossible := [name for name in methods if name not in possible]:
        raise InputError(
            f"--methods: {impossible[0]} needs examples without soft labels, and --soft_share=1 leaves none"
        )
    if "B3" in methods and found.items.counts is None:
        raise InputError("--methods: B3 trains on every answer, and --soft_labels has shares only: leave it out")
    if ("B2" in methods) != given_data["B2"]:
        raise InputError("--methods: B2 and --extra_data go together: it trains on these data")
    in_turns = any(name.startswith("S-") for name in methods)
    app.without_effect([] if in_turns else ["equal_passes"], f"--methods={','.join(methods)}")
    further = _further(found, chosen)
    compared = _compared(found)
    items = found.items
    if _HELD_OUT.value:
        found = found.holding_out(_HELD_OUT.value, chosen.seed)
    if _RESPONDENTS.value:
        found.of_people(_RESPONDENTS.value, chosen.seed)  # raises before anything is trained
    own = {"seeds": _SEEDS.value, "methods": ",".join(methods), "epochs_in_a_row": _EPOCHS_IN_A_ROW.value}
    own |= {"codes": ",".join(_CODES.value)} if source == "answers" else {}
    own |= {"soft_share": _SHARE.value} if source == "predictions" else {}
    own |= {"respondents": _RESPONDENTS.value} if _RESPONDENTS.value else {}
    own |= {"extra_data": _EXTRA_DATA.value} if further is not None else {}
    further_flags = {name: flags.FLAGS[name].value for name in ("held_out", "permuted", "equal_passes")}
    own |= {name: value for name, value in further_flags.items() if value}
    used = settings.values(chosen, USED) | own
    labels = pd.DataFrame(items.shares if items.counts is None else items.counts, items.split.ids)
    read = items.split if further is None else join(items.split, further)
    directory = open_run(_OUTPUT_DIR.value, used, dataclasses.replace(found.task, extra=read), labels)
    stage(directory, "soft_labels", "soft labels", lambda: _train(chosen, found, methods, further), _write)
    values = soft_labels.write(chosen, found, source, directory, compared)
    made = document.made(used | {source: flags.FLAGS[source].value}, directory)
    document.save("soft_labels", values | made, directory)


def _read(source: str, task: factory.tasks.Task, seed: int) -> Found:
    path = str(flags.FLAGS[source].value)
    if source == "predictions":
        return of_predictions(path, _SHARE.value, task, seed)
    if source == "soft_labels":
        return of_shares(path, task)
    codes = {name: code for name, _, code in (pair.partition(":") for pair in _CODES.value)}
    if "" in codes.values():
        raise InputError(f"--codes={','.join(_CODES.value)}: expected pairs such as 1:{task.classes[0]}")
    return of_answers(path, codes, task)


def _further(found: Found, chosen: settings.Settings) -> Split | None:
    """The data of --extra_data, without what is tested on and without the soft items."""
    path, task = _EXTRA_DATA.value, found.task
    if path is None:
        return None
    with app.naming(path):
        if not chosen.frozen:
            return unseen(read_split(path, task), task.validation, task.test, found.items.split)
        encoder = read_pretrained(chosen.pretrained)
        pairs = np.shape(task.train.inputs)[-1] != encoder.vectors.shape[-1]
        examples = read_examples(path, 1 + pairs, task.classes)
        with reading_bar() as on_progress:
            split = frozen_examples(examples, encoder, functools.partial(on_progress, "extra_data"))
        return unseen(split, task.validation, task.test, found.items.split)


def _compared(found: Found) -> pd.DataFrame | None:
    """What --networks says of the items: `item_id`, `difficulty`, and counts of people and networks by class."""
    if _NETWORKS.value is None:
        return None
    items, split = read_items(_ITEMS.value).set_index("item_id"), found.items.split
    if "difficulty" not in items:
        raise InputError(f"{_ITEMS.value}: no column difficulty")
    known = items["difficulty"].reindex(split.ids).to_numpy(float)
    if np.isnan(known).all():
        raise InputError(f"{_ITEMS.value}: has none of the items of {_ANSWERS.value}")
    networks = counts_of_networks(_NETWORKS.value, split, found.task)
    return people_and_networks(split.ids, known, np.asarray(found.items.shares), networks)


def _train(
    chosen: settings.Settings, found: Found, methods: list[str], further: Split | None
) -> dict[str, pd.DataFrame]:
    usual = dataclasses.replace(factory.recipe_of(chosen), steps_per_epoch=None)
    longer = dataclasses.replace(
        usual, max_epochs=epochs_of("S-CCE", usual.max_epochs, _EPOCHS_IN_A_ROW.value), patience=2 * usual.patience
    )
    progress = CurriculumProgress(usual.max_epochs)
    rows, confusion, of_items = [], [], []
    test, classes = found.task.test, found.task.classes

    def train(items: SoftItems, method: str, name: str, seed: int, number: int) -> TrainedSeeds:
        recipe = longer if _EQUAL_PASSES.value and method.startswith("S-") else usual
        with progress.strategy(name, recipe.max_epochs):
            return train_method(
                found.task,
                items,
                method,
                recipe=recipe,
                num_seeds=number,
                first_seed=seed,
                epochs_in_a_row=_EPOCHS_IN_A_ROW.value,
                further=further,
                held_out=None if found.held_out is None else found.held_out.split,
                on_epoch=progress.on_epoch,
            )

    def draws() -> TrainedSeeds:
        """Every network has soft labels of other people."""
        each = [
            train(found.of_people(_RESPONDENTS.value, seed), "I-CCE", f"{few} {at + 1}", seed, 1)
            for at, seed in enumerate(range(chosen.seed, chosen.seed + _SEEDS.value))
        ]
        return jax.tree.map(lambda *parts: np.concatenate(parts), *each)

    few, control = f"I-CCE of {_RESPONDENTS.value}", soft_labels.CONTROL
    shuffled = permuted(found.items.shares, found.items.split.labels, (chosen.seed, PERMUTED))
    for method in [*methods, *[few] * bool(_RESPONDENTS.value), *[control] * _PERMUTED.value]:
        if method == few:
            trained = draws()
        elif method == control:
            trained = train(SoftItems(found.items.split, shuffled), "I-CCE", control, chosen.seed, _SEEDS.value)
        else:
            trained = train(found.items, method, method, chosen.seed, _SEEDS.value)
        predicted = trained.answers["test"]
        accuracy = (predicted == test.labels).mean(1)
        columns = {"seed": chosen.seed + np.arange(len(accuracy)), "best_epoch": trained.best_epoch}
        columns |= {"dev_accuracy": trained.validation_accuracy, "test_accuracy": accuracy}
        if found.held_out is not None:
            of_people = calibration(found.held_out.shares, trained.answers["held_out"])
            columns |= {"kl": of_people.kl.mean(1), "temperature": of_people.temperature}
            columns |= {"kl_at_best": of_people.kl_at_best.mean(1)}
            means = {"kl": of_people.kl.mean(0), "kl_at_best": of_people.kl_at_best.mean(0)}
            of_items.append(pd.DataFrame({"method": method, "item_id": found.held_out.split.ids, **means}))
        rows.append(pd.DataFrame({"method": method, **columns}))
        pairs = np.bincount((test.labels * len(classes) + predicted).ravel(), minlength=len(classes) ** 2).reshape(
            len(classes), -1
        )
        for gold, counts in zip(classes, pairs / len(accuracy), strict=True):
            confusion.append({"method": method, "gold": gold, **dict(zip(classes, counts, strict=True))})
    tables = {"methods": pd.concat(rows, ignore_index=True), "confusion": pd.DataFrame(confusion)}
    return tables | ({"held_out": pd.concat(of_items, ignore_index=True)} if of_items else {})


def _write(tables: dict[str, pd.DataFrame], folder: Path) -> None:
    for name, table in tables.items():
        write_csv(table, folder / f"{name}.csv")


if __name__ == "__main__":
    app.run(main, device_per_core=True)
