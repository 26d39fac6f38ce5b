r"""From a task to a curriculum in one command.

Trains an artificial crowd, fits IRT to its answers, ranks examples whose labels look wrong, filters training data by
difficulty and compares curricula. Writes report.md and its pictures to the run directory. After an interruption the
same command goes on where it stopped.

  python -m experiments.pipeline --task=digits --output_dir=runs/demo

On 2 CPU cores: digits 1 to 2 minutes, mnist about 7 minutes, 5,000 phrases of sst2 about 16 minutes.
"""

import dataclasses

from experiments.common import app, factory, peers, settings, shared_flags, task_flags, tensorboard
from experiments.common.path_flags import define_output_dir
from experiments.common.run_directory import checkpoints_of, open_run, stage
from experiments.reports import pipeline as report
from experiments.stages import crowd, curriculum, difficulty, filtering, mislabelled, suspects
from irtjax import InputError, tasks
from irtjax.crowd.members import in_every_subset
from irtjax.populations.normal import Population

_OUTPUT_DIR = define_output_dir("run directory")
task_flags.define_flags()
shared_flags.define_tensorboard()
shared_flags.define_processes()


def main() -> None:
    """Runs the stages that are not finished yet, then writes the report."""
    chosen = task_flags.from_flags()
    tensorboard.require()
    task = factory.load_task(chosen, task_flags.DATA_DIR.value)
    factory.check_crowd(chosen, task)
    _check(chosen, task)
    directory = open_run(_OUTPUT_DIR.value, dataclasses.asdict(chosen), task)

    stage(
        directory,
        "crowd",
        "1/6 crowd",
        lambda: crowd.train(chosen, task, checkpoints_of(directory, "crowd")),
        crowd.write,
    )
    stage(
        directory,
        "difficulty",
        "2/6 difficulty",
        lambda: difficulty.run(chosen, crowd.load_responses(directory / "crowd")),
        difficulty.write,
    )
    stage(directory, "suspects", "3/6 suspects", lambda: suspects.run(task, directory / "crowd"), suspects.write)
    if chosen.mislabelled > 0:
        stage(
            directory,
            "mislabelled",
            "4/6 mislabelled examples",
            lambda: mislabelled.run(chosen, task, checkpoints_of(directory, "mislabelled")),
            mislabelled.write,
        )

    items = difficulty.load_items(directory / "difficulty", chosen.priors, task.train.ids)
    stage(
        directory,
        "filtering",
        "5/6 filtering",
        lambda: filtering.run(chosen, task, items, checkpoints_of(directory, "filtering")),
        filtering.write,
    )
    abilities = difficulty.load_subjects(directory / "difficulty", chosen.priors).ability
    population = Population(float(abilities.mean()), float(abilities.std()))
    stage(
        directory,
        "curriculum",
        "6/6 curriculum",
        lambda: curriculum.run(chosen, task, items, population, checkpoints_of(directory, "curriculum")),
        curriculum.write,
    )
    if peers.is_first():
        report.write(chosen, task, directory)


def _check(chosen: settings.Settings, task: tasks.Task) -> None:
    """Refuses settings that stages after the crowd could not work with.

    Raises:
        InputError: names the flag.
    """
    crowd.note_other_settings(chosen)
    members, num_examples = crowd.choose_members(chosen, task), len(task.train.labels)
    num_members = len(members)
    if num_members < 4:
        raise InputError(f"--num_models={num_members}: expected at least 4, for two halves of at least two")
    if chosen.out_of_bag:
        seen = in_every_subset(members, num_examples)
        if seen.any():
            raise InputError(
                f"--out_of_bag: every one of {num_members} networks would be trained on {task.train.ids[seen][0]}, and "
                "so none could answer it; give more --num_models, or smaller subsets"
            )
    if chosen.mislabelled > 0 and round(chosen.mislabelled * num_examples) < 1:
        raise InputError(
            f"--mislabelled={chosen.mislabelled}: not one of {num_examples} training labels; 0 leaves the stage out"
        )


if __name__ == "__main__":
    app.run(main, resumes=True, device_per_core=True)
