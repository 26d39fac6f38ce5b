r"""From a task to a curriculum in one command.

Trains an artificial crowd, fits IRT to its answers, ranks examples whose labels look wrong, filters training data by
difficulty and compares curricula. Writes report.md and its pictures to the run directory. After an interruption the
same command goes on where it stopped.

  python -m experiments.pipeline --task=digits --output_dir=runs/demo

On 2 CPU cores: digits 1 to 2 minutes, mnist about 7 minutes, 5,000 phrases of sst2 about 16 minutes.
"""

from experiments.common import app, shared_flags, task_flags
from experiments.common.path_flags import define_output_dir

define_output_dir("run directory")
task_flags.define_flags()
shared_flags.define_tensorboard()
shared_flags.define_processes()


def main() -> None:
    """Runs the stages that are not finished yet, then writes the report."""
    from experiments.commands import pipeline  # here, as `--help` and wrong flags need not wait for JAX

    pipeline.run()


if __name__ == "__main__":
    app.run(main, resumes=True, device_per_core=True)
