r"""Trains an artificial crowd and lets it answer every example of a task.

  python -m experiments.crowd --task=digits --network=mlp,lenet --num_models=100 --output_dir=runs/crowd

Writes two folders into the run directory. `crowd/` has `members.csv`, one row per member, and `responses_<split>.npz`
and `.csv`, ready for `experiments.fit_irt`; `suspects/suspects.csv` ranks the examples whose labels look wrong. The
same command goes on where a killed one stopped, and ends with the same bits.
docs/guide/crowd.md says what to expect, docs/results/crowd.md how long it takes.
"""

import dataclasses

from absl import flags

from experiments.common import app, factory, settings, shared_flags, task_flags, tensorboard
from experiments.common.path_flags import define_output_dir
from experiments.common.run_directory import checkpoints_of, open_run, stage
from experiments.stages import crowd, suspects
from irtjax.crowd import Crowd
from irtjax.training.groups import CHECKPOINT_SECONDS

_OUTPUT_DIR = define_output_dir("run directory")
_CHECKPOINT_SECONDS = flags.DEFINE_float(
    "checkpoint_seconds",
    CHECKPOINT_SECONDS,
    "least time from one checkpoint to the next",
    lower_bound=0,
)
task_flags.define_flags(settings.of_stage("crowd"))
shared_flags.define_tensorboard()
shared_flags.define_processes()


def main() -> None:
    """Trains the crowd, or what is left of it."""
    chosen = task_flags.from_flags()
    tensorboard.require()
    task = factory.load_task(chosen, task_flags.DATA_DIR.value)
    factory.check_crowd(chosen, task)
    crowd.note_other_settings(chosen)
    members = crowd.choose_members(chosen, task)  # refuses bad ones before anything is written
    directory = open_run(_OUTPUT_DIR.value, dataclasses.asdict(chosen), task)

    def work() -> Crowd:
        return crowd.train(
            chosen,
            task,
            checkpoints=checkpoints_of(directory, "crowd"),
            checkpoint_seconds=_CHECKPOINT_SECONDS.value,
        )

    folder = stage(directory, "crowd", "crowd", work, crowd.write)
    if len(members) > 1:
        found = stage(directory, "suspects", "suspects", lambda: suspects.run(task, folder), suspects.write)
        print(f"Examples whose labels look wrong, the likeliest first: {found}/suspects.csv", flush=True)
    fit = f"python -m experiments.fit_irt --model=rasch --responses={folder}/responses_train.npz"
    print(f"Done: {folder}. Difficulties for filtering and curricula: {fit} --output_dir=FOLDER", flush=True)


if __name__ == "__main__":
    app.run(main, resumes=True, device_per_core=True)
