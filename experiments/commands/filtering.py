"""Networks on filtered training data, and the report, by the flags of `experiments.filtering`."""

import dataclasses

from absl import flags

from experiments.common import app, factory, flag_settings, peers
from experiments.common.run_directory import checkpoints_of, open_run, stage
from experiments.common.task_items import items_of
from experiments.reports import document
from experiments.reports import filtering as report
from experiments.stages import filtering
from irtjax import InputError
from irtjax.selection.choices import CENTRED, FILTERS

FLAGS = flags.FLAGS
BY_PERCENT = {"PCUB", "PCLB"}


def run() -> None:
    """Trains all networks unless that is done already, then writes the report."""
    chosen = dataclasses.replace(flag_settings.from_flags(), filtering_seeds=FLAGS.seeds)
    shares = _shares()
    strategies = app.choose("strategies", FLAGS.strategies, FILTERS)
    if not BY_PERCENT & set(strategies):
        app.without_effect(["responses", "columns", "transpose"], "strategies other than PCUB and PCLB")
    if not set(CENTRED) & set(strategies):
        app.without_effect(["centre"], f"strategies other than {' and '.join(CENTRED)}", ["centre"])
    task = factory.load_task(chosen, FLAGS.data_dir)
    by_percent = bool(BY_PERCENT & set(strategies))
    need = ["difficulty", *["difficulty_se"] * chosen.sampled, *["proportion_correct"] * by_percent]
    items = items_of(FLAGS.items, task, FLAGS.responses, need)
    if "proportion_correct" not in items:
        items = items.assign(proportion_correct=float("nan"))
    used = flag_settings.used(chosen) | {"seeds": FLAGS.seeds, "strategies": ",".join(strategies)}
    used |= {"shares": ",".join(repr(share).removesuffix(".0") for share in shares)}
    directory = open_run(FLAGS.output_dir, used, task, items)
    stage(
        directory,
        "filtering",
        "filtering",
        lambda: filtering.run(chosen, task, items, checkpoints_of(directory, "filtering"), strategies, shares),
        filtering.write,
    )
    if not peers.is_first():
        return
    values = report.write(task, items, chosen, directory)
    made = document.made(used | {"items": FLAGS.items}, directory)
    document.save("filtering", values | made, directory)


def _shares() -> list[float]:
    """The value of --shares.

    Raises:
        InputError: it is not a list of numbers above 0, up to 1.
    """
    try:
        shares = sorted({float(share) for share in FLAGS.shares})
    except ValueError:
        shares = []
    if not shares or not all(0 < share <= 1 for share in shares):
        raise InputError(f"--shares={','.join(FLAGS.shares)}: expected numbers above 0, up to 1")
    return shares
