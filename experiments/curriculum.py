r"""When should a network train on which examples? Curricula by item difficulty, and DDaCLAE, by the network's ability.

Strategies:

  baseline              all data in every epoch
  no-effect             the same with other seeds: the null control
  CB-linear, CB-root    a growing share of the data, the easiest first
  CB-…-length           the same with the shortest texts first
  DDaCLAE               items no harder than the network's ability, which is estimated before each epoch
  DDaCLAE-hard          items no easier than it
  window                items within --window logits of it

  python -m experiments.curriculum --task=digits --items=runs/demo/difficulty/hierarchical/items.csv \
    --output_dir=runs/curriculum

Ends with report.md and its pictures in the run directory. Durations and expected numbers: docs/results/curriculum.md.
"""

import dataclasses
from pathlib import Path

from absl import flags

from experiments.common import app, factory, peers, settings, shared_flags, task_flags, tensorboard
from experiments.common.path_flags import define_output_dir, define_path
from experiments.common.run_directory import checkpoints_of, open_run, stage
from experiments.common.task_items import crowd_cost, crowd_population, items_of
from experiments.reports import curriculum as report
from experiments.reports import document
from experiments.stages import curriculum
from irtjax import read_items
from irtjax.arguments import LARGEST
from irtjax.populations.normal import STANDARD
from irtjax.selection.strategies import BASELINE, STRATEGIES, choices

_OUTPUT_DIR = define_output_dir("run directory")
_ITEMS = define_path("items", "items.csv with the difficulty of every training example", required=True)
_STRATEGIES = flags.DEFINE_list(
    "strategies", None, f"which to compare with the baseline (default: {','.join(STRATEGIES)})"
)
_SEEDS = flags.DEFINE_integer("seeds", 5, "networks for each strategy", lower_bound=1, upper_bound=LARGEST)
_MONITOR = flags.DEFINE_integer(
    "monitor",
    0,
    "adaptive items that networks are asked after each epoch, to see whether a few track their accuracy; 0 for none",
    lower_bound=0,
    upper_bound=LARGEST,
)
OF_COMPETENCE = {"CB-linear", "CB-root", "CB-linear-length", "CB-root-length"}
OF_ABILITY = {"DDaCLAE", "DDaCLAE-hard", "window"}
OF_STRATEGIES = {  # settings, and the strategies that use them
    ("curriculum_length", "initial_share"): OF_COMPETENCE,
    ("ability", "probe", "probe_error"): OF_ABILITY,
    ("window",): {"window"},
    ("floor",): OF_ABILITY,
}
USED = settings.of_stage("curriculum") - {"curriculum_seeds"}  # --seeds takes its place here
task_flags.define_flags(USED)
shared_flags.define_tensorboard()
shared_flags.define_processes()


def main() -> None:
    """Trains under each strategy unless that has been done already, then writes the report."""
    chosen = dataclasses.replace(task_flags.from_flags(), curriculum_seeds=_SEEDS.value)
    tensorboard.require()
    task = factory.load_task(chosen, task_flags.DATA_DIR.value)
    possible = choices(task)
    strategies = possible if _STRATEGIES.value is None else app.choose("strategies", _STRATEGIES.value, possible)
    strategies = (BASELINE, *(name for name in strategies if name != BASELINE))
    for names, users in OF_STRATEGIES.items():
        if not users & set(strategies):
            app.without_effect(names, f"strategies other than {', '.join(sorted(users))}")
    items = items_of(_ITEMS.value, task)
    population = crowd_population(_ITEMS.value) if chosen.ability == "map" else STANDARD
    used = settings.values(chosen, USED) | {"seeds": _SEEDS.value, "strategies": ",".join(strategies)}
    if chosen.ability == "map":  # results depend on the population, which no flag holds
        used |= {"population_mean": population.mean, "population_sd": population.sd}
    monitor = None
    if _MONITOR.value:
        beside = Path(_ITEMS.value).with_name("subjects.csv").exists()
        crowd = crowd_population(_ITEMS.value, "--monitor") if beside else STANDARD
        used |= {"monitor": _MONITOR.value, "population_mean": crowd.mean, "population_sd": crowd.sd}
        with app.naming(_ITEMS.value):
            table = read_items(_ITEMS.value).set_index("item_id")
            monitor = curriculum.monitor_of(table, task, _MONITOR.value, crowd)
    directory = open_run(_OUTPUT_DIR.value, used, task, items)
    stage(
        directory,
        "curriculum",
        "curriculum",
        lambda: curriculum.run(
            chosen, task, items, population, checkpoints_of(directory, "curriculum"), strategies, monitor
        ),
        curriculum.write,
    )
    if not peers.is_first():
        return
    values = report.write(chosen, task, items, crowd_cost(_ITEMS.value), _MONITOR.value, directory)
    made = document.made(used | {"items": _ITEMS.value}, directory)
    document.save("curriculum", values | made, directory)


if __name__ == "__main__":
    app.run(main, resumes=True, device_per_core=True)
