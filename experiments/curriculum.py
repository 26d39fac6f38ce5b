r"""When should a network train on which examples? Curricula by item difficulty, and DDaCLAE, by the network's ability.

Strategies: baseline (all data), CB-linear and CB-root (a growing share, the easiest first; with -length the shortest
texts first), DDaCLAE (before each epoch the network's ability is scored, and it trains on the items no harder than
that), DDaCLAE-hard (on those no easier), window (on those within --window logits of it).

  python -m experiments.curriculum --task=digits --items=runs/demo/difficulty/hierarchical/items.csv \
    --output_dir=runs/curriculum

Ends with report.md and its pictures in the run directory. docs/curriculum.md tells durations and expected numbers.
"""

import dataclasses

from absl import flags

from experiments.common import app, factory, settings
from experiments.common.run_directory import open_run, stage
from experiments.common.task_items import crowd_cost, crowd_population, training_items
from experiments.reports import document, sections
from experiments.stages import curriculum
from irtjax.kernels.scoring import STANDARD
from irtjax.tasks.task import TextFormat

_OUTPUT_DIR = flags.DEFINE_string("output_dir", None, "run directory; made where missing", required=True)
_ITEMS = flags.DEFINE_string("items", None, "items.csv with the difficulty of every training example", required=True)
_STRATEGIES = flags.DEFINE_list(
    "strategies", None, f"which to compare, beside the baseline (default: {','.join(curriculum.ALL_STRATEGIES)})"
)
_SEEDS = flags.DEFINE_integer("seeds", 5, "networks for each strategy", lower_bound=1)
USED = settings.of_stage("curriculum") - {"curriculum_seeds"}  # which is --seeds here
settings.define_flags(USED)


def main() -> None:
    """Trains under each strategy, or finds it done; then the report."""
    app.one_device_a_core()
    chosen = dataclasses.replace(settings.from_flags(), curriculum_seeds=_SEEDS.value)
    task = factory.load_task(chosen, settings.DATA_DIR.value)
    possible = curriculum.choices(task)
    strategies = possible if _STRATEGIES.value is None else app.choose("strategies", _STRATEGIES.value, possible)
    strategies = (curriculum.BASELINE, *(name for name in strategies if name != curriculum.BASELINE))
    items = training_items(_ITEMS.value, task)
    population = crowd_population(_ITEMS.value) if chosen.ability == "map" else STANDARD
    used = settings.values(chosen, USED) | {"seeds": _SEEDS.value, "strategies": ",".join(strategies)}
    if chosen.ability == "map":  # results depend on it, and it is in no flag
        used |= {"population_mean": population.mean, "population_sd": population.sd}
    directory = open_run(_OUTPUT_DIR.value, used, task, items)
    stage(
        directory,
        "curriculum",
        "curriculum",
        lambda folder: curriculum.run(chosen, task, items, population, folder, strategies),
    )
    parts = [
        f"# {task.name}: when to train on which examples?",
        sections.against_published(chosen, directory),
        sections.curriculum(chosen, directory),
        sections.cost(directory, crowd_cost(_ITEMS.value)),
    ]
    if isinstance(task.format, TextFormat):
        parts.append(sections.discrepancies(task, items))
    parts.append(document.how_it_was_made(used | {"items": _ITEMS.value}, directory))
    document.save(parts, directory)


if __name__ == "__main__":
    app.run(main)
