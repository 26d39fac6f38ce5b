"""All stages from a task to curricula, by the flags of `experiments.pipeline`."""

import dataclasses

from absl import flags

from experiments.common import factory, flag_settings, peers, settings, tensorboard
from experiments.common.run_directory import checkpoints_of, open_run, stage
from experiments.reports import pipeline as report
from experiments.stages import crowd, curriculum, difficulty, filtering, mislabelled, suspects
from irtjax import InputError, tasks
from irtjax.crowd.members import in_every_subset
from irtjax.populations.normal import Population

FLAGS = flags.FLAGS


def run() -> None:
    """Runs the stages that are not finished yet, then writes the report."""
    chosen = flag_settings.from_flags()
    tensorboard.require()
    task = factory.load_task(chosen, FLAGS.data_dir)
    factory.check_crowd(chosen, task)
    _check(chosen, task)
    directory = open_run(FLAGS.output_dir, dataclasses.asdict(chosen), task)

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
