"""Networks trained on soft labels beside hard ones, by the flags of `experiments.soft_labels`."""

import dataclasses
import functools
from pathlib import Path

import jax
import numpy as np
import pandas as pd
from absl import flags

from experiments.common import app, factory, flag_settings, settings
from experiments.common.progress import CurriculumProgress, reading_bar
from experiments.common.run_directory import open_run, stage
from experiments.common.soft_items import Found, counts_of_networks, of_answers, of_predictions, of_shares
from experiments.reports import document, soft_labels
from irtjax import InputError, read_items
from irtjax.pretrained.folder import read_pretrained
from irtjax.soft_labels.calibration import calibration, permuted
from irtjax.soft_labels.choices import METHODS, WITHOUT_HARD_DATA
from irtjax.soft_labels.items import unseen
from irtjax.soft_labels.labels import people_and_networks
from irtjax.soft_labels.methods import epochs_of
from irtjax.soft_labels.train import SoftItems, train_method
from irtjax.storage.files import write_csv
from irtjax.tasks.extra_items import read_examples, read_split
from irtjax.tasks.task import Split, join
from irtjax.training.features import frozen_examples
from irtjax.training.mixture import TrainedSeeds

FLAGS = flags.FLAGS
PERMUTED = 4  # the random stream of the control
SOURCES = ("answers", "soft_labels", "predictions")


def run() -> None:
    """Trains by each method unless that is done already, then writes the report."""
    given = [name for name in SOURCES if FLAGS[name].value]
    if len(given) != 1:
        raise InputError(f"expected one of {', '.join(f'--{name}' for name in SOURCES)}, found {len(given)}")
    source = given[0]
    app.without_effect([] if source == "predictions" else ["soft_share"], f"--{source}")
    if FLAGS.soft_share == 0:
        raise InputError("--soft_share=0: expected a share above 0, such as 0.1")
    app.without_effect([] if source == "answers" else ["codes", "respondents", "networks", "items"], f"--{source}")
    app.refuse_idle({"no --networks": ["items"]})
    if FLAGS.networks is not None and FLAGS.items is None:
        raise InputError("--networks needs --items: the difficulties of the items")
    chosen = flag_settings.from_flags()
    if source == "predictions":
        app.without_effect(["extra_items"], "--predictions")
    task = factory.load_task(chosen, FLAGS.data_dir)
    found = _read(source, task, chosen.seed)
    answered = source != "predictions" and found.items.counts is not None
    given_data = {"B2": FLAGS.extra_data is not None, "B3": answered}
    possible = METHODS if len(found.task.train.labels) else WITHOUT_HARD_DATA
    usual = [name for name in possible if given_data.get(name, True)]
    methods = app.choose("methods", FLAGS.methods, METHODS) if FLAGS.methods else usual
    if impossible := [name for name in methods if name not in possible]:
        raise InputError(
            f"--methods: {impossible[0]} needs examples without soft labels, and --soft_share=1 leaves none"
        )
    if "B3" in methods and found.items.counts is None:
        raise InputError("--methods: B3 trains on every answer, and --soft_labels has shares only: leave it out")
    if ("B2" in methods) != given_data["B2"]:
        raise InputError("--methods: B2 and --extra_data go together: it trains on these data")
    in_turns = any(name.startswith("S-") for name in methods)
    app.without_effect([] if in_turns else ["equal_passes"], f"--methods={','.join(methods)}", ["equal_passes"])
    further = _further(found, chosen)
    compared = _compared(found)
    items = found.items
    if FLAGS.held_out:
        found = found.holding_out(FLAGS.held_out, chosen.seed)
    if FLAGS.respondents:
        found.of_people(FLAGS.respondents, chosen.seed)  # raises before anything is trained
    own = {"seeds": FLAGS.seeds, "methods": ",".join(methods), "epochs_in_a_row": FLAGS.epochs_in_a_row}
    own |= {"codes": ",".join(FLAGS.codes)} if source == "answers" else {}
    own |= {"soft_share": FLAGS.soft_share} if source == "predictions" else {}
    own |= {"respondents": FLAGS.respondents} if FLAGS.respondents else {}
    own |= {"extra_data": FLAGS.extra_data} if further is not None else {}
    further_flags = {name: FLAGS[name].value for name in ("held_out", "permuted", "equal_passes")}
    own |= {name: value for name, value in further_flags.items() if value}
    used = flag_settings.used(chosen) | own
    labels = pd.DataFrame(items.shares if items.counts is None else items.counts, items.split.ids)
    read = items.split if further is None else join(items.split, further)
    directory = open_run(FLAGS.output_dir, used, dataclasses.replace(found.task, extra=read), labels)
    stage(directory, "soft_labels", "soft labels", lambda: _train(chosen, found, methods, further), _write)
    values = soft_labels.write(chosen, found, source, directory, compared)
    made = document.made(used | {source: FLAGS[source].value}, directory)
    document.save("soft_labels", values | made, directory)


def _read(source: str, task: factory.tasks.Task, seed: int) -> Found:
    path = str(FLAGS[source].value)
    if source == "predictions":
        return of_predictions(path, FLAGS.soft_share, task, seed)
    if source == "soft_labels":
        return of_shares(path, task)
    codes = {name: code for name, _, code in (pair.partition(":") for pair in FLAGS.codes)}
    if "" in codes.values():
        raise InputError(f"--codes={','.join(FLAGS.codes)}: expected pairs such as 1:{task.classes[0]}")
    return of_answers(path, codes, task)


def _further(found: Found, chosen: settings.Settings) -> Split | None:
    """The data of --extra_data, without what is tested on and without the soft items."""
    path, task = FLAGS.extra_data, found.task
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
    if FLAGS.networks is None:
        return None
    items, split = read_items(FLAGS.items).set_index("item_id"), found.items.split
    if "difficulty" not in items:
        raise InputError(f"{FLAGS.items}: no column difficulty")
    known = items["difficulty"].reindex(split.ids).to_numpy(float)
    if np.isnan(known).all():
        raise InputError(f"{FLAGS.items}: has none of the items of {FLAGS.answers}")
    networks = counts_of_networks(FLAGS.networks, split, found.task)
    return people_and_networks(split.ids, known, np.asarray(found.items.shares), networks)


def _train(
    chosen: settings.Settings, found: Found, methods: list[str], further: Split | None
) -> dict[str, pd.DataFrame]:
    usual = dataclasses.replace(factory.recipe_of(chosen), steps_per_epoch=None)
    longer = dataclasses.replace(
        usual, max_epochs=epochs_of("S-CCE", usual.max_epochs, FLAGS.epochs_in_a_row), patience=2 * usual.patience
    )
    progress = CurriculumProgress(usual.max_epochs)
    rows, confusion, of_items = [], [], []
    test, classes = found.task.test, found.task.classes

    def train(items: SoftItems, method: str, name: str, seed: int, number: int) -> TrainedSeeds:
        recipe = longer if FLAGS.equal_passes and method.startswith("S-") else usual
        with progress.strategy(name, recipe.max_epochs):
            return train_method(
                found.task,
                items,
                method,
                recipe=recipe,
                num_seeds=number,
                first_seed=seed,
                epochs_in_a_row=FLAGS.epochs_in_a_row,
                further=further,
                held_out=None if found.held_out is None else found.held_out.split,
                on_epoch=progress.on_epoch,
            )

    def draws() -> TrainedSeeds:
        """Every network has soft labels of other people."""
        each = [
            train(found.of_people(FLAGS.respondents, seed), "I-CCE", f"{few} {at + 1}", seed, 1)
            for at, seed in enumerate(range(chosen.seed, chosen.seed + FLAGS.seeds))
        ]
        return jax.tree.map(lambda *parts: np.concatenate(parts), *each)

    few, control = f"I-CCE of {FLAGS.respondents}", soft_labels.CONTROL
    shuffled = permuted(found.items.shares, found.items.split.labels, (chosen.seed, PERMUTED))
    for method in [*methods, *[few] * bool(FLAGS.respondents), *[control] * FLAGS.permuted]:
        if method == few:
            trained = draws()
        elif method == control:
            trained = train(SoftItems(found.items.split, shuffled), "I-CCE", control, chosen.seed, FLAGS.seeds)
        else:
            trained = train(found.items, method, method, chosen.seed, FLAGS.seeds)
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
