"""The binary that prepares data sets, as far as it goes without TensorFlow and a network."""

import dataclasses
import importlib.util
import json

import pytest
from binaries import assert_one_line, run

from experiments.common.factory import load_task
from experiments.common.settings import Settings
from irtjax import InputError

MODULE = "experiments.prepare"


@pytest.mark.skipif(importlib.util.find_spec("tensorflow") is not None, reason="TensorFlow is here")
def test_the_missing_extra_is_named(tmp_path):
    result = run("--task=sst2", f"--data_dir={tmp_path}", module=MODULE)
    assert result.returncode == 2
    assert result.stderr == (
        "error: preparing a data set needs TensorFlow, which the extra `prepare` brings: "
        "pip install 'irtjax[prepare]'\n"
    )
    assert not list(tmp_path.iterdir())


def test_what_is_prepared_already_is_left_alone(shared):
    result = run("--task=mnist", f"--data_dir={shared / 'tfds'}", module=MODULE)
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"Done: {shared / 'tfds' / 'mnist' / '3.0.1'} (train 60,000, test 10,000)\n"


@pytest.fixture
def other_format(tmp_path):
    """A copy of sst2 that only TensorFlow can read."""
    folder = tmp_path / "glue" / "sst2" / "2.0.0"
    folder.mkdir(parents=True)
    (folder / "dataset_info.json").write_text(json.dumps({"fileFormat": "tfrecord"}))
    return tmp_path


def test_a_copy_in_another_format_is_not_overwritten(other_format):
    result = run("--task=sst2", f"--data_dir={other_format}", module=MODULE)
    assert_one_line(result, "is prepared as tfrecord, but only array_record can be read without TensorFlow")
    assert "; prepare it again in another --data_dir\n" in result.stderr


@pytest.mark.parametrize("dataset", ["", "other"])
def test_experiments_say_how_to_prepare_a_data_set(tmp_path, other_format, dataset):
    settings = Settings(task="sst2", dataset=dataset)
    command = "python -m experiments.prepare --task=sst2 --data_dir="
    with pytest.raises(InputError) as caught:
        load_task(settings, str(tmp_path / "none"))
    assert str(caught.value).endswith(f": pip install 'irtjax[prepare]' and {command}{tmp_path}/none") == (not dataset)
    with pytest.raises(InputError) as caught:
        load_task(dataclasses.replace(settings, dataset=dataset and "glue/sst2"), str(other_format))
    assert str(caught.value).endswith(f"; prepare it again in another `data_dir`: {command}FOLDER") == (not dataset)


def test_arguments_that_errors_name_are_shown_as_flags(tmp_path):
    (tmp_path / "cifar10" / "3.0.2").mkdir(parents=True)
    (tmp_path / "cifar10" / "3.0.2" / "dataset_info.json").write_text("{}")
    result = run("--task=mnist", f"--data_dir={tmp_path}", f"--output_dir={tmp_path}/run")
    assert_one_line(result, f"in {tmp_path} (which has cifar10; --dataset can name one); prepare mnist there once")
