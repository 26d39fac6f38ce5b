"""Networks under several curricula, and the report, by the flags of `experiments.curriculum`."""

import dataclasses
from pathlib import Path

from absl import flags

from experiments.common import app, factory, flag_settings, peers, tensorboard
from experiments.common.run_directory import checkpoints_of, open_run, stage
from experiments.common.task_items import crowd_cost, crowd_population, items_of
from experiments.reports import curriculum as report
from experiments.reports import document
from experiments.stages import curriculum
from irtjax import read_items
from irtjax.populations.normal import STANDARD
from irtjax.selection.choices import BASELINE, STRATEGIES, USUAL
from irtjax.selection.strategies import choices

FLAGS = flags.FLAGS
OF_COMPETENCE = {name for name in STRATEGIES if name.startswith("CB-")}
OF_ABILITY = {"DDaCLAE", "DDaCLAE-hard", "window"}
OF_STRATEGIES = {  # settings, and the strategies that use them
    ("curriculum_length", "initial_share"): OF_COMPETENCE,
    ("ability", "probe", "probe_error"): OF_ABILITY,
    ("window",): {"window"},
    ("floor",): OF_ABILITY,
}
OF_FLAG_FILES = [name for names in OF_STRATEGIES for name in names if name != "ability"]


def run() -> None:
    """Trains under each strategy unless that has been done already, then writes the report."""
    chosen = dataclasses.replace(flag_settings.from_flags(), curriculum_seeds=FLAGS.seeds)
    tensorboard.require()
    task = factory.load_task(chosen, FLAGS.data_dir)
    possible = choices(task)
    usual = tuple(name for name in possible if name in USUAL)
    strategies = usual if FLAGS.strategies is None else app.choose("strategies", FLAGS.strategies, possible)
    strategies = (BASELINE, *(name for name in strategies if name != BASELINE))
    for names, users in OF_STRATEGIES.items():
        if not users & set(strategies):
            app.without_effect(names, f"strategies other than {', '.join(sorted(users))}", OF_FLAG_FILES)
    items = items_of(FLAGS.items, task)
    population = crowd_population(FLAGS.items) if chosen.ability == "map" else STANDARD
    used = flag_settings.used(chosen) | {"seeds": FLAGS.seeds, "strategies": ",".join(strategies)}
    if chosen.ability == "map":  # results depend on the population, which no flag holds
        used |= {"population_mean": population.mean, "population_sd": population.sd}
    monitor = None
    if FLAGS.monitor:
        beside = Path(FLAGS.items).with_name("subjects.csv").exists()
        crowd = crowd_population(FLAGS.items, "--monitor") if beside else STANDARD
        used |= {"monitor": FLAGS.monitor, "population_mean": crowd.mean, "population_sd": crowd.sd}
        with app.naming(FLAGS.items):
            table = read_items(FLAGS.items).set_index("item_id")
            monitor = curriculum.monitor_of(table, task, FLAGS.monitor, crowd)
    directory = open_run(FLAGS.output_dir, used, task, items)
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
    values = report.write(chosen, task, items, crowd_cost(FLAGS.items), FLAGS.monitor, directory)
    made = document.made(used | {"items": FLAGS.items}, directory)
    document.save("curriculum", values | made, directory)
