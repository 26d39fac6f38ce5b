"""Data of the user's own as --task names them: what is read, which defaults suit it, and what is refused."""

import json

import numpy as np
import pandas as pd
import pytest
from binaries import assert_one_line, run
from PIL import Image

from experiments.common import own_tasks
from experiments.common.own_tasks import defaults_by_size
from experiments.common.settings import Settings
from irtjax import InputError, tasks

CROWD = "experiments.crowd"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "flowers.csv"
    rng = np.random.default_rng(0)
    kinds = np.arange(90) % 3
    frame = pd.DataFrame({"length": rng.normal(kinds, 0.3), "width": rng.normal(-kinds, 0.5), "kind": kinds})
    frame.assign(name=[f"flower {at}" for at in range(90)]).to_csv(path, index=False)
    return path


def test_what_is_taken_for_data(tmp_path, table):
    assert all(map(own_tasks.is_own, ("a.csv", "A.JSONL", "b/c.parquet", "images:x", "tfds:x", str(tmp_path))))
    assert not any(map(own_tasks.is_own, ("digits", "", "imagenet", "sst2")))


def test_defaults_go_by_the_data(table, tmp_path):
    settings = Settings(task=str(table), label_column="kind", feature_columns="length,width", id_column="name")
    task = own_tasks.load(settings, None)
    assert own_tasks.load(settings, None) is task  # read once
    assert task.name == "flowers"
    assert task.train.ids[0].startswith("flower ")
    assert defaults_by_size(task)["steps_per_epoch"] == 10
    folder = tmp_path / "pictures"
    for at in range(12):
        (folder / "ab"[at % 2]).mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((9, 9, 3), at, np.uint8)).save(folder / "ab"[at % 2] / f"{at}.png")
    pictures = own_tasks.load(Settings(task=f"images:{folder}", image_size=6), None)
    assert pictures.train.inputs.shape[1:] == (6, 6, 3)
    found = defaults_by_size(pictures)
    assert (found["network"], found["num_models"]) == ("lenet", 64)
    # with 3 epochs of patience DDaCLAE stops before it has selected enough to learn from
    assert (found["curriculum_patience"], found["curriculum_seeds"], found["filtering_seeds"]) == (10, 3, 3)
    grey = tasks.from_arrays(np.arange(9 * 9 * 40).reshape(-1, 9, 9) % 256, np.arange(40) % 2)
    assert defaults_by_size(grey)["num_models"] == 256  # as mnist
    texts = pd.DataFrame({"text": [f"text {at}" for at in range(40)], "label": ["a", "b"] * 20})
    texts.to_csv(tmp_path / "texts.csv", index=False)
    task = own_tasks.load(Settings(task=str(tmp_path / "texts.csv"), min_count=1, seed=3), None)
    found = defaults_by_size(task)
    assert (found["network"], found["max_corruption"], found["num_models"]) == ("lstm", 0.5, 200)
    longer = pd.DataFrame({"text": texts.text.str.cat(["word " * 78] * 40, sep=" "), "label": texts.label})
    longer.to_csv(tmp_path / "longer.csv", index=False)
    task = own_tasks.load(Settings(task=str(tmp_path / "longer.csv"), min_count=1), None)
    assert defaults_by_size(task)["num_models"] == 50  # of 80 words, four times the usual ones
    pairs = texts.assign(premise=texts.text, hypothesis=texts.text).drop(columns="text")
    pairs.to_csv(tmp_path / "pairs.csv", index=False)
    pair = own_tasks.load(Settings(task=str(tmp_path / "pairs.csv"), min_count=1), None)
    assert defaults_by_size(pair)["num_models"] == 96


def test_long_texts_are_cut_and_the_note_names_the_flag(tmp_path, capsys):
    texts = pd.DataFrame({"text": [f"text {at} " + "word " * at for at in range(40)], "label": ["a", "b"] * 20})
    texts.to_csv(tmp_path / "long.csv", index=False)
    task = own_tasks.load(Settings(task=str(tmp_path / "long.csv"), min_count=1, max_words=30), None)
    assert task.format.buckets[-1] == (30,)
    assert "11 texts have more than 30 words (up to 41), of which the first 30 are read; --max_words" in (
        capsys.readouterr().out
    )
    kept = {split: (task.split(split).inputs[0] != 0).sum(axis=1) for split in ("train", "validation", "test")}
    for split, number in kept.items():
        expected = [min(len(text.split()), 30) for text in task.split(split).texts]
        assert number.tolist() == expected  # and the text that is shown is whole


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"label_column": "species"}, "flowers: no column species, only length, width, kind, name"),
        ({"label_column": "kind"}, "flowers: which columns are the inputs"),
        ({"dataset": "mnist"}, "--dataset=mnist: the task .* has no use for it"),
        (
            {"label_column": "kind", "feature_columns": "length", "glove": "g.txt"},
            "`glove`=g.txt: the task flowers has no",
        ),
    ],
)
def test_what_does_not_suit_the_data_is_refused(table, changes, message):
    with pytest.raises(InputError, match=message):
        own_tasks.load(Settings(task=str(table), **changes), None)


def test_columns_are_of_tables_alone(tmp_path):
    with pytest.raises(InputError, match="--label_column: has no effect with --task=images:"):
        own_tasks.load(Settings(task=f"images:{tmp_path}", label_column="kind"), None)


def test_a_command_refuses_in_one_line(table, tmp_path):
    result = run(f"--task={table}", "--label_column=kind", f"--output_dir={tmp_path / 'run'}", module=CROWD)
    assert_one_line(result, "which columns are the inputs? Name those of text")
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_crowd_on_a_table_and_the_next_table_is_another_run(table, tmp_path):
    flags = [
        f"--task={table}",
        "--label_column=kind",
        "--feature_columns=length,width",
        "--num_models=6",
        f"--output_dir={tmp_path / 'run'}",
    ]
    result = run(*flags, module=CROWD)
    assert result.returncode == 0, result.stderr
    members = pd.read_csv(tmp_path / "run" / "crowd" / "members.csv")
    assert len(members) == 6
    assert members.accuracy_test.max() > 0.7
    assert json.loads((tmp_path / "run" / "config.json").read_text())["feature_columns"] == "length,width"

    frame = pd.read_csv(table)
    frame.assign(length=frame.length + np.arange(90) % 2).to_csv(table, index=False)
    assert_one_line(run(*flags, module=CROWD), "holds a run on other data")


def test_a_file_without_names_of_columns_and_the_flag_that_names_one(tmp_path):
    path = tmp_path / "bare.tsv"
    path.write_text("\n".join(f"{'word ' * 20}{at}\t{at % 2}" for at in range(20)))
    expected = (
        r"bare: no column label, only (word ){8}…, 0: name the one of the classes, --label_column \(is the first line"
    )
    with pytest.raises(InputError, match=expected):
        own_tasks.load(Settings(task=str(path)), None)
