r"""Downloads a task's data set and prepares it as array_record files; reading them later needs no TensorFlow.

This needs network access and TensorFlow: pip install 'irtjax[prepare]'.

  python -m experiments.prepare --task=sst2 --data_dir=data
  python -m experiments.pipeline --task=sst2 --data_dir=data --output_dir=runs/sst2

Expected duration: that of the download and, for SNLI, some minutes of writing.
"""

from absl import flags

from experiments.common import app
from experiments.common.path_flags import define_path
from experiments.common.task_names import TFDS
from irtjax.tasks.choices import DATASETS

flags.DEFINE_string(
    "task", None, f"task whose data set to prepare: {', '.join(sorted(DATASETS))}, or {TFDS}NAME", required=True
)
define_path("data_dir", "folder to prepare it in (default: that of TensorFlow Datasets, ~/tensorflow_datasets)")


def main() -> None:
    """Prepares the data set unless that is done already, and finds it as the task will."""
    from experiments.commands import prepare  # here, as `--help` and wrong flags need not wait for JAX

    prepare.run()


if __name__ == "__main__":
    app.run(main)
