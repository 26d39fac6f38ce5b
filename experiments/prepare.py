r"""Downloads a task's data set and prepares it as array_record files; reading them later needs no TensorFlow.

This needs network access and TensorFlow: pip install 'irtjax[prepare]'.

  python -m experiments.prepare --task=sst2 --data_dir=data
  python -m experiments.pipeline --task=sst2 --data_dir=data --output_dir=runs/sst2

Expected duration: that of the download and, for SNLI, some minutes of writing.
"""

import importlib.util

from absl import flags

from experiments.common import app
from experiments.common.own_tasks import TFDS
from experiments.common.path_flags import define_path
from irtjax.errors import InputError
from irtjax.tasks import TASKS, prepared

DATASETS = {task: loader.dataset for task, loader in TASKS.items() if loader.dataset is not None}

_TASK = flags.DEFINE_string(
    "task", None, f"task whose data set to prepare: {', '.join(sorted(DATASETS))}, or {TFDS}NAME", required=True
)
_DATA_DIR = define_path(
    "data_dir", "folder to prepare it in (default: that of TensorFlow Datasets, ~/tensorflow_datasets)"
)


def main() -> None:
    """Prepares the data set unless that is done already, and finds it as the task will."""
    task = _TASK.value
    dataset = task.removeprefix(TFDS) if task.startswith(TFDS) else DATASETS.get(task)
    if not dataset:
        raise InputError(f"--task={task}: expected one of {', '.join(sorted(DATASETS))}, or {TFDS}NAME")
    data_dir = _DATA_DIR.value or str(prepared.default_data_dir())
    try:
        source = prepared.find(task, dataset, data_dir)
    except prepared.NotPreparedError:
        _prepare(dataset, data_dir)
        source = prepared.find(task, dataset, data_dir)
    sizes = ", ".join(f"{split} {count:,}" for split, count in source.splits.items())
    print(f"Done: {source.folder} ({sizes})")


def _prepare(dataset: str, data_dir: str) -> None:
    if importlib.util.find_spec("tensorflow") is None:
        raise InputError(
            "preparing a data set needs TensorFlow, which the extra `prepare` brings: pip install 'irtjax[prepare]'"
        )
    import tensorflow_datasets as tfds  # takes seconds to import together with TensorFlow

    try:
        builder = tfds.builder(dataset, data_dir=data_dir, file_format=prepared.FORMAT)
        builder.download_and_prepare(file_format=prepared.FORMAT)
    except (OSError, tfds.download.DownloadError) as error:  # errors of the network are OSError too
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{dataset}: could not be downloaded and prepared in {data_dir} ({reason})") from error


if __name__ == "__main__":
    app.run(main)
