r"""Trains an artificial crowd and lets it answer every example of a task.

  python -m experiments.crowd --task=digits --network=mlp,lenet --num_models=100 --output_dir=runs/crowd

Writes two folders into the run directory. `crowd/` has `members.csv`, one row per member, and `responses_<split>.npz`
and `.csv`, ready for `experiments.fit_irt`; `suspects/suspects.csv` ranks the examples whose labels look wrong. The
same command goes on where a killed one stopped, and ends with the same bits.
docs/guide/crowd.md says what to expect, docs/results/crowd.md how long it takes.
"""

from absl import flags

from experiments.common import app, settings, shared_flags, task_flags
from experiments.common.path_flags import define_output_dir
from irtjax.training.choices import CHECKPOINT_SECONDS

define_output_dir("run directory")
flags.DEFINE_float(
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
    from experiments.commands import crowd  # here, as `--help` and wrong flags need not wait for JAX

    crowd.run()


if __name__ == "__main__":
    app.run(main, resumes=True, device_per_core=True)
