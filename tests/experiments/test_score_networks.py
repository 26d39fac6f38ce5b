"""Networks on the scales of people, as a user runs it."""

import numpy as np
import pandas as pd
import pytest
from binaries import assert_bad_flags, run
from matplotlib.image import imread
from simulation import simulate

import irtjax
from irtjax import ResponseMatrix

MODULE = "experiments.score_networks"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two crowds whose answers to test items and extra ones are those of a Rasch model, two scales of these, people."""
    folder = tmp_path_factory.mktemp("networks")
    responses, _, difficulty = simulate(120, 40)
    items = pd.DataFrame({"item_id": responses.item_ids, "difficulty": difficulty})
    items[:20].to_csv(folder / "first.csv", index=False)
    items[20:].to_csv(folder / "second.csv", index=False)
    people = np.random.default_rng(0).normal(size=500)
    pd.DataFrame({"subject_id": range(500), "ability": people}).to_csv(folder / "people.csv", index=False)
    for crowd, rows in (("large", slice(0, 100)), ("small", slice(100, 103))):
        home = folder / crowd / "crowd"
        home.mkdir(parents=True)
        subjects, values = responses.subject_ids[rows], responses.values[rows]
        parts = {"validation": slice(0, 5), "test": slice(5, 15), "extra": slice(10, 40)}  # some items are in two
        for split, columns in parts.items():
            part = ResponseMatrix(values[:, columns], subjects, responses.item_ids[columns])
            irtjax.write_responses(part, home / f"responses_{split}.npz")
        members = {
            "subset_size": 50,
            "accuracy_test": values[:, 5:15].mean(1),
            "accuracy_extra": values[:, 10:].mean(1),
        }
        pd.DataFrame({"subject_id": subjects, **members}).to_csv(home / "members.csv", index=False)
    return folder


def test_networks_are_scored_on_each_scale(folder, tmp_path):
    flags = [f"--scales={folder}/first.csv,{folder}/second.csv", f"--people={folder}/people.csv,{folder}/people.csv"]
    crowds = f"--crowds={folder}/large,{folder}/small"
    result = run(*flags, crowds, f"--output_dir={tmp_path}", module=MODULE)
    assert result.returncode == 0, result.stderr
    table = pd.read_csv(tmp_path / "networks.csv")
    assert len(table) == 2 * 103
    assert set(table.scale) == {"first", "second"}
    assert (table.answered == 20).all()
    wide = table.pivot(index="subject_id", columns="scale", values="ability")
    assert wide.corr().iloc[0, 1] > 0.5  # both measure the same
    people = np.sort(pd.read_csv(folder / "people.csv").ability)
    for row in table.sample(5, random_state=0).itertuples():
        assert row.percentile_people == pytest.approx(100 * (people < row.ability).mean(), abs=0.2)
    answers = irtjax.read_responses(folder / "small" / "crowd" / "responses_extra.npz").values[:, 10:]
    chosen = table[(table.crowd == "small") & (table.scale == "second")]
    np.testing.assert_allclose(chosen.accuracy_scale, answers.mean(1), rtol=1e-5)
    report = (tmp_path / "report.md").read_text()
    assert report.count("\n| small | ") == 6  # three networks on two scales, one by one
    assert report.count("| large | median |") == 2
    assert imread(tmp_path / "networks.png").std() > 0.01


def test_bad_input_gets_one_line(folder, tmp_path):
    pd.DataFrame({"item_id": ["x", "y", "z"], "difficulty": 0.0}).to_csv(tmp_path / "others.csv", index=False)
    scale, crowd = f"--scales={folder}/first.csv", f"--crowds={folder}/small"
    cases = [
        ([crowd], "--scales is missing"),
        ([scale], "--crowds is missing"),
        ([scale, crowd, f"--people={folder}/people.csv,{folder}/people.csv"], "--people: 2 files for 1 scales"),
        ([scale, crowd, "--scale_names=a,b"], "--scale_names=a,b: expected 1 different names, one per source"),
        ([scale, f"--crowds={folder}"], "no crowd/members.csv; expected a run directory of experiments.crowd"),
        (["--scales={tmp}/others.csv", crowd], "networks of small have answered 0 of its 3 items"),
        ([scale, crowd, f"--people={folder}/first.csv"], "first.csv: no column ability"),
    ]
    assert_bad_flags(MODULE, cases, tmp_path)
