r"""Which examples should a network train on? Filters training data by item difficulty and trains on the rest.

Strategies: AVI keeps |b - c| < d, AVO |b - c| > d, UB b < d, LB b > d, PCUB pc < d and PCLB pc > d; random keeps any.
Here b is the difficulty of an item, c that of an average one (--centre), and pc the share of the crowd that answered it
right. The threshold d is set so that each of --shares of the data is kept.

  python -m experiments.filtering --task=digits --items=runs/demo/difficulty/hierarchical/items.csv \
    --output_dir=runs/filtering

Writes report.md and its pictures to the run directory. Durations and expected numbers: docs/results/filtering.md.
"""

import dataclasses

from absl import flags

from experiments.common import app, factory, peers, settings, shared_flags, task_flags
from experiments.common.path_flags import define_output_dir, define_path
from experiments.common.run_directory import checkpoints_of, open_run, stage
from experiments.common.task_items import items_of
from experiments.reports import document
from experiments.reports import filtering as report
from experiments.stages import filtering
from irtjax import InputError
from irtjax.arguments import LARGEST
from irtjax.selection.filtering import CENTRED, STRATEGIES

SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
BY_PERCENT = {"PCUB", "PCLB"}

_OUTPUT_DIR = define_output_dir("run directory")
_ITEMS = define_path("items", "items.csv with the difficulty of every training example", required=True)
_RESPONSES = define_path(
    "responses", "answers of the crowd, for the percent correct of PCUB and PCLB; default: that of --items"
)
_COLUMNS = shared_flags.define_columns()
_TRANSPOSE = shared_flags.define_transpose()
_STRATEGIES = flags.DEFINE_list("strategies", list(STRATEGIES), "strategies to compare")
_SHARES = flags.DEFINE_list("shares", [f"{share:g}" for share in SHARES], "shares of the training data to keep, 0 to 1")
_SEEDS = flags.DEFINE_integer("seeds", 5, "networks for each strategy and share", lower_bound=1, upper_bound=LARGEST)
USED = settings.of_stage("filtering") - {"filtering_seeds"}  # which is --seeds here
task_flags.define_flags(USED)
shared_flags.define_processes()


def main() -> None:
    """Trains all networks unless that is done already, then writes the report."""
    chosen = dataclasses.replace(task_flags.from_flags(), filtering_seeds=_SEEDS.value)
    shares = _shares()
    strategies = app.choose("strategies", _STRATEGIES.value, STRATEGIES)
    if not BY_PERCENT & set(strategies):
        app.without_effect(["responses", "columns", "transpose"], "strategies other than PCUB and PCLB")
    if not set(CENTRED) & set(strategies):
        app.without_effect(["centre"], f"strategies other than {' and '.join(CENTRED)}")
    task = factory.load_task(chosen, task_flags.DATA_DIR.value)
    need = ("difficulty", "proportion_correct") if BY_PERCENT & set(strategies) else ("difficulty",)
    items = items_of(_ITEMS.value, task, _RESPONSES.value, need)
    if "proportion_correct" not in items:
        items = items.assign(proportion_correct=float("nan"))
    used = settings.values(chosen, USED) | {"seeds": _SEEDS.value, "strategies": ",".join(strategies)}
    used |= {"shares": ",".join(repr(share).removesuffix(".0") for share in shares)}
    directory = open_run(_OUTPUT_DIR.value, used, task, items)
    stage(
        directory,
        "filtering",
        "filtering",
        lambda: filtering.run(chosen, task, items, checkpoints_of(directory, "filtering"), strategies, shares),
        filtering.write,
    )
    if not peers.is_first():
        return
    values = report.write(task, items, chosen.centre, directory)
    made = document.made(used | {"items": _ITEMS.value}, directory)
    document.save("filtering", values | made, directory)


def _shares() -> list[float]:
    """The value of --shares.

    Raises:
        InputError: it is not a list of numbers above 0, up to 1.
    """
    try:
        shares = sorted({float(share) for share in _SHARES.value})
    except ValueError:
        shares = []
    if not shares or not all(0 < share <= 1 for share in shares):
        raise InputError(f"--shares={','.join(_SHARES.value)}: expected numbers above 0, up to 1")
    return shares


if __name__ == "__main__":
    app.run(main, resumes=True, device_per_core=True)
