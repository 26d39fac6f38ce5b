"""The binary that makes items, as a user runs it."""

import numpy as np
import pandas as pd
import pytest
from binaries import assert_bad_flags, run
from matplotlib.image import imread

from irtjax import tasks

TASK = tasks.load("digits")
MODULE = "experiments.synthetic_items"
FILES = ["control.csv", "generated.npz", "generated.png", "items.csv", "levels.csv"]


@pytest.fixture(scope="module")
def items(tmp_path_factory):
    """Difficulties that can be read from an image: that of ink, on the left."""
    path = tmp_path_factory.mktemp("items") / "items.csv"
    ink = TASK.train.inputs[:, :, :4].mean((1, 2, 3)) / 4
    pd.DataFrame({"item_id": TASK.train.ids, "difficulty": ink}).to_csv(path, index=False)
    return path


def test_images_follow_the_difficulty_and_those_of_the_control_do_not(items, tmp_path):
    result = run("--task=digits", f"--items={items}", "--per_level=4", f"--output_dir={tmp_path}/run", module=MODULE)
    assert result.returncode == 0, result.stderr
    assert "images, 4 of each class at each difficulty" in result.stdout
    folder = tmp_path / "run"
    assert sorted(path.name for path in folder.iterdir()) == FILES
    assert imread(folder / "generated.png").std() > 0.01
    tables = [pd.read_csv(folder / name) for name in ("items.csv", "control.csv")]
    assert [len(table) for table in tables] == [280, 280]
    task = tasks.load("digits", extra_items=folder / "generated.npz")
    assert task.extra.ids.tolist() == [*tables[0].item_id, *tables[1].item_id]
    assert [task.classes[label] for label in task.extra.labels[:280]] == tables[0].label.astype(str).tolist()
    ink = task.extra.inputs[:, :, :4].mean((1, 2, 3)) / 4
    asked, dealt = (
        np.corrcoef(table.difficulty, part)[0, 1] for table, part in zip(tables, np.split(ink, 2), strict=True)
    )
    assert asked > 0.7
    assert abs(dealt) < 0.3
    assert tables[0].class_kept.mean() > 0.8
    levels = pd.read_csv(folder / "levels.csv")
    assert levels["set"].tolist() == ["items"] * 7 + ["control"] * 7
    assert (levels.images == 40).all()


def test_bad_input_gets_one_line(items, tmp_path):
    pd.read_csv(items).assign(difficulty=1.0).to_csv(tmp_path / "equal.csv", index=False)
    pd.read_csv(items).assign(difficulty=lambda table: np.where(table.index < 5, 1.0, 0.0)).to_csv(
        tmp_path / "tied.csv"
    )
    (tmp_path / "file").write_text("")
    cases = [
        (["--items={tmp}/tied.csv"], "tied.csv: nine of ten difficulties are 0"),
        ([f"--items={items}", "--train_examples=15"], "digits: 15 training images, expected 20 or more"),
        ([f"--items={items}", "--output_dir={tmp}/file"], "file: is a file"),
        (["--items={tmp}/equal.csv"], "equal.csv: all training items are equally difficult"),
        (["--items={tmp}/none.csv"], "none.csv"),
        ([f"--items={items}", "--levels=1"], "levels"),
        ([f"--items={items}", "--latent=0"], "latent"),
    ]
    assert_bad_flags(MODULE, cases, tmp_path)
