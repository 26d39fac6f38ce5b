"""A data set, downloaded and prepared, by the flags of `experiments.prepare`."""

import importlib.util

from absl import flags

from experiments.common.task_names import TFDS
from irtjax.errors import InputError
from irtjax.tasks import prepared
from irtjax.tasks.choices import DATASETS

FLAGS = flags.FLAGS


def run() -> None:
    """Prepares the data set unless that is done already, and finds it as the task will."""
    task = FLAGS.task
    dataset = task.removeprefix(TFDS) if task.startswith(TFDS) else DATASETS.get(task)
    if not dataset:
        raise InputError(f"--task={task}: expected one of {', '.join(sorted(DATASETS))}, or {TFDS}NAME")
    data_dir = FLAGS.data_dir or str(prepared.default_data_dir())
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
