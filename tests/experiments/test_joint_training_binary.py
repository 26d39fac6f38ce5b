"""The joint-training binary as a user runs it."""

import pandas as pd
import pytest
from binaries import assert_bad_flags, run
from matplotlib.image import imread

from irtjax import tasks

TASK = tasks.load("digits")
SMALL = ["--task=digits", "--width=8", "--epochs=3", "--seeds=2"]
MODULE = "experiments.joint_training"


@pytest.fixture(scope="module")
def items(tmp_path_factory):
    """Difficulties that can be read from an image, of training and test items."""
    folder = tmp_path_factory.mktemp("items")
    for name in ("train", "test"):
        split = TASK.split(name)
        ink = split.inputs[:, :, :4].mean((1, 2, 3)) / 4
        columns = {"item_id": split.ids, "difficulty": ink, "difficulty_se": 0.1}
        pd.DataFrame(columns).to_csv(folder / f"{name}.csv", index=False)
    return folder


@pytest.mark.slow
def test_a_run_leaves_the_promised_files(items, tmp_path):
    directory = tmp_path / "run"
    files = [f"--items={items}/train.csv", f"--test_items={items}/test.csv", f"--output_dir={directory}"]
    result = run(*SMALL, *files, module=MODULE)
    assert result.returncode == 0, result.stderr
    report = (directory / "report.md").read_text()
    for words in ("| difficulties by its own answers |", "Predicted to be the easiest", "is chance"):
        assert words in report
    for name in ("predicted", "outside"):
        assert imread(directory / f"{name}.png").std() > 0.01
    networks = pd.read_csv(directory / "joint" / "networks.csv")
    assert networks.method.tolist() == ["alone"] * 2 + ["joint"] * 2 + ["own"] * 2
    assert networks.spearman.notna().tolist() == [False, False, True, True, True, True]
    assert networks.rmse.notna().tolist() == [False, False, True, True, False, False]
    assert networks.spearman_train.notna().tolist() == [False] * 4 + [True] * 2
    assert (networks.spearman[2:4] > 0.5).all()
    assert (networks.adversarial_accuracy < networks.test_accuracy - 0.1).all()
    said = pd.read_csv(directory / "joint" / "said.csv")
    assert said["set"].value_counts().to_dict() == {"test": 300, "rotated": 300, "noise": 300, "adversarial": 300}
    outside = pd.read_csv(directory / "joint" / "outside.csv")
    assert len(outside) == 3 * 2 * (1 + 3 + 3)  # sets, seeds, scores of each method
    again = run(*SMALL, *files, "--attack=0", module=MODULE)
    assert "--attack=0.1 (now 0.0)" in again.stderr
    noise = outside[(outside.method == "joint") & (outside.outside == "noise") & (outside.score == "difficulty")]
    inside, values = (said.predicted[said["set"] == name].to_numpy() for name in ("test", "noise"))
    together = (values[:, None] > inside).mean()  # of the mean network
    assert noise.auc.mean() == pytest.approx(together, abs=0.2)


@pytest.mark.slow
def test_texts_and_a_set_called_adversarial(tmp_path):
    """Which is none of attacked images, and there are none."""
    words = ["bad", "poor", "fine", "good"]
    rows = [(f"r{at}", f"a {words[at % 4]} film of {at % 7} hours", at % 4 // 2) for at in range(120)]
    table = pd.DataFrame(rows, columns=["item_id", "text", "label"])
    table.to_csv(tmp_path / "reviews.csv", index=False)
    table.head(20)[["item_id", "text"]].to_csv(tmp_path / "adversarial.csv", index=False)
    text = [f"--task={tmp_path}/reviews.csv", "--network=lstm", "--width=4", "--epochs=2", "--seeds=2"]
    task = tasks.from_table(tmp_path / "reviews.csv")
    columns = {"item_id": task.train.ids, "difficulty": range(len(task.train.ids)), "difficulty_se": 0.1}
    pd.DataFrame(columns).to_csv(tmp_path / "items.csv", index=False)
    files = [f"--items={tmp_path}/items.csv", f"--outside={tmp_path}/adversarial.csv"]
    result = run(*text, *files, f"--output_dir={tmp_path}/run", module=MODULE)
    assert result.returncode == 0, result.stderr
    report = (tmp_path / "run" / "report.md").read_text()
    assert "gradient sign" not in report
    assert "were moved against it" not in report
    assert set(pd.read_csv(tmp_path / "run" / "joint" / "outside.csv").outside) == {"outside"}
    refused = run(*text, *files, "--attack=0.1", f"--output_dir={tmp_path}/other", module=MODULE)
    assert "--attack has no effect with reviews, which has no images" in refused.stderr


def test_bad_input_gets_one_line(items, tmp_path):
    table = pd.read_csv(items / "train.csv")
    table.drop(columns="difficulty_se").to_csv(tmp_path / "without.csv", index=False)
    table.iloc[1:].to_csv(tmp_path / "short.csv", index=False)
    for name, change in (
        ("huge", {"difficulty": 1e300 * table.difficulty}),
        ("tiny", {"difficulty": 1e-300 * table.difficulty}),
        ("negative", {"difficulty_se": -0.1}),
    ):
        table.assign(**change).to_csv(tmp_path / f"{name}.csv", index=False)
    first = table.item_id[0]
    good = f"--items={items}/train.csv"
    cases = (
        (["--items={tmp}/without.csv"], "without.csv: no column difficulty_se"),
        (["--items={tmp}/short.csv"], "1 of 1,197 training examples of digits are not in it"),
        (["--items={tmp}/huge.csv"], f"huge.csv: item {first}: expected at most 1,000,000,000 logits in size as diff"),
        (["--items={tmp}/tiny.csv"], "tiny.csv: all training items are equally difficult: nothing is to be learned"),
        (["--items={tmp}/negative.csv"], f"negative.csv: item {first}: expected a standard error from 0 to"),
        ([good, f"--test_items={items}/train.csv"], "300 of 300 test examples of digits are not in it"),
        ([good, f"--outside={items}/test.csv"], "--outside has no effect with a task of images such as digits"),
        ([good, "--outside_columns=text"], "--outside_columns has no effect with no --outside"),
        ([good, "--attack=nan"], "--attack=nan: expected a finite number"),
        ([good, "--difficulty_weight=0"], "--difficulty_weight=0.0: expected a finite number above 0"),
    )
    assert_bad_flags(MODULE, [([*SMALL, *flags], message) for flags, message in cases], tmp_path)
