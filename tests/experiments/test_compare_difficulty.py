"""`experiments.compare_difficulty`, as a user runs it."""

import numpy as np
import pandas as pd
import pytest
from binaries import assert_bad_flags, run
from simulation import simulate

import irtjax

MODULE = "experiments.compare_difficulty"


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """Two crowds on the same items, and the true difficulties with 24 of 30 items; labels and texts."""
    folder = tmp_path_factory.mktemp("sources")
    responses, _, difficulty = simulate(150, 30)
    irtjax.write_responses(responses, folder / "people.csv")
    items = pd.DataFrame({"item_id": responses.item_ids, "difficulty": difficulty})
    items[6:].to_csv(folder / "items.csv", index=False)
    about = pd.DataFrame(
        {"pair_id": responses.item_ids, "gold_label": ["yes", "no"] * 15, "premise": "a|b", "hypothesis": "c"}
    )
    about.to_csv(folder / "texts.csv", index=False)
    return folder


def test_compares_two_sources(sources, tmp_path):
    given = [
        f"--items={sources / 'items.csv'}",
        f"--responses={sources / 'people.csv'}",
        f"--texts={sources / 'texts.csv'}",
        "--reliabilities=1",
        f"--output_dir={tmp_path}",
    ]
    result = run(*given, module=MODULE)
    assert result.returncode == 0, result.stderr
    rows = pd.read_csv(tmp_path / "agreement.csv")
    assert list(rows.group) == ["all", "no", "yes"]
    assert list(rows["items"]) == [24, 12, 12]
    assert (rows.one == "items").all()
    assert (rows.other == "people").all()
    assert rows.spearman[0] > 0.85  # people and the truth that their answers were drawn from
    assert rows.spearman[0] < rows.disattenuated[0] < 1.1
    assert (rows.low < rows.spearman).all()  # by the default seed
    assert (rows.spearman < rows.high).all()
    table = pd.read_csv(tmp_path / "difficulty.csv")
    assert list(table) == ["item_id", "items", "people", "label", "text"]
    assert np.corrcoef(table["items"], table["people"])[0, 1] > 0.9
    report = (tmp_path / "report.md").read_text()
    assert f"items and people: Spearman {rows.spearman[0]:.3f}" in report
    assert "items and people: Spearman" in result.stdout
    assert "a\\|b / c" in report
    subjects = next(line for line in report.splitlines() if line.startswith("| people | 150 |")).split(" | ")
    spread = [float(cell) for cell in subjects[3:8]]
    assert spread == sorted(spread)
    assert spread[0] < -1 < spread[2] < 1 < spread[4]
    assert float(subjects[2]) > 0.8  # the abilities were drawn with a standard deviation of 1
    easier = (table["people"] < float(subjects[7])).mean()
    assert subjects[8] == f"{easier:.1%} |"
    assert (tmp_path / "difficulty.png").read_bytes()[:4] == b"\x89PNG"


def test_a_correlation_above_one_is_told(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"item_id": [f"i{at}" for at in range(40)], "difficulty": rng.normal(size=40)})
    for name in ("one", "same"):
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    files = f"--items={tmp_path}/one.csv,{tmp_path}/same.csv"
    for reliabilities, told in (("0.5,0.5", True), ("1,1", False)):
        flags = [files, f"--reliabilities={reliabilities}", f"--output_dir={tmp_path}/{told}"]
        result = run(*flags, module="experiments.compare_difficulty")
        assert result.returncode == 0, result.stderr
        assert ("correlation above 1 is none" in (tmp_path / str(told) / "report.md").read_text()) == told


def test_bad_input_gets_one_line(sources, tmp_path):
    items, people = f"{sources}/items.csv", f"{sources}/people.csv"
    (tmp_path / "few.csv").write_text("item_id,difficulty\nnobody,1\n")
    (tmp_path / "words.csv").write_text("item_id,difficulty\na,hard\n")
    (tmp_path / "none.csv").write_text("item_id,discrimination\na,1\n")
    (tmp_path / "texts.csv").write_text("item_id,about\na,1\n")
    (tmp_path / "others.csv").write_text("item_id,text\na,b\n")
    both = [f"--items={items}", f"--responses={people}"]
    assert_bad_flags(
        MODULE,
        [
            ([f"--items={items}"], "--items and --responses: expected two files or more, separated by commas"),
            ([f"--items={items},{items}"], "items.csv is given twice"),
            ([*both, "--names=one"], "--names=one: expected 2 different names, one per source"),
            ([*both, "--reliabilities=0.9,0.8"], "expected a number above 0 and up to 1 for each of the 1 --items"),
            ([*both, "--reliabilities=90%"], "--reliabilities=90%: expected"),
            ([f"--items={items},{{tmp}}/few.csv"], "0 items in common, expected at least 4 (items has 24, few has 1)"),
            ([f"--items={items},{{tmp}}/words.csv"], "words.csv: item a: no number for difficulty"),
            ([f"--items={items},{{tmp}}/none.csv"], "none.csv: no column difficulty"),
            ([f"--items={items},{{tmp}}/nothing.csv"], "nothing.csv"),
            ([*both, "--texts={tmp}/texts.csv"], "texts.csv: expected label, text, or premise and hypothesis"),
            ([*both, "--texts={tmp}/others.csv"], "others.csv: none of its 1 items is in all sources"),
        ],
        tmp_path,
    )
