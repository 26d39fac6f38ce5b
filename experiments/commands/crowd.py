"""A crowd, and the examples whose labels look wrong, by the flags of `experiments.crowd`."""

import dataclasses

from absl import flags

from experiments.common import factory, flag_settings, tensorboard
from experiments.common.run_directory import checkpoints_of, open_run, stage
from experiments.stages import crowd, suspects
from irtjax.crowd import Crowd

FLAGS = flags.FLAGS


def run() -> None:
    """Trains the crowd, or what is left of it."""
    chosen = flag_settings.from_flags()
    tensorboard.require()
    task = factory.load_task(chosen, FLAGS.data_dir)
    factory.check_crowd(chosen, task)
    crowd.note_other_settings(chosen)
    members = crowd.choose_members(chosen, task)  # refuses bad ones before anything is written
    directory = open_run(FLAGS.output_dir, dataclasses.asdict(chosen), task)

    def work() -> Crowd:
        return crowd.train(
            chosen,
            task,
            checkpoints=checkpoints_of(directory, "crowd"),
            checkpoint_seconds=FLAGS.checkpoint_seconds,
        )

    folder = stage(directory, "crowd", "crowd", work, crowd.write)
    if len(members) > 1:
        found = stage(directory, "suspects", "suspects", lambda: suspects.run(task, folder), suspects.write)
        print(f"Examples whose labels look wrong, the likeliest first: {found}/suspects.csv", flush=True)
    fit = f"python -m experiments.fit_irt --model=rasch --responses={folder}/responses_train.npz"
    print(f"Done: {folder}. Difficulties for filtering and curricula: {fit} --output_dir=FOLDER", flush=True)
