"""`experiments.dif` and `experiments.link` as a user runs them."""

import json

import numpy as np
import pandas as pd
import pytest
from binaries import run

from experiments.reports import render

DATA = "--responses=docs/guide/responses.csv", "--groups=docs/guide/people.csv:course"


def test_dif_of_a_file_leaves_what_it_promises(tmp_path):
    done = run(*DATA, "--method=mantel_haenszel", f"--output_dir={tmp_path}", module="experiments.dif")
    assert done.returncode == 0, done.stderr
    assert "24 items, 600 subjects: 294 evening, 306 morning." in done.stdout
    table = pd.read_csv(tmp_path / "dif.csv")
    assert {"item_id", "statistic", "df", "p_value", "p_adjusted", "effect", "class", "anchor"} <= set(table)
    assert {"report.md", "report.html", "dif.png"} <= {path.name for path in tmp_path.iterdir()}


def test_what_dif_cannot_use_is_told_in_a_line(tmp_path):
    out = f"--output_dir={tmp_path}"
    done = run(DATA[0], "--groups=docs/guide/people.csv:age", out, module="experiments.dif")
    assert done.returncode == 2
    assert "docs/guide/people.csv has no column 'age', but course" in done.stderr
    done = run(*DATA, "--method=mantel_haenszel", "--test=uniform", out, module="experiments.dif")
    assert done.returncode == 2
    assert "--test" in done.stderr
    done = run(*DATA, "--method=logistic", "--model=1pl", out, module="experiments.dif")
    assert done.returncode == 2
    assert "wald, lord and raju, and not of logistic" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("method", "flagged", "large", "anchors", "says"),
    [
        ("score", 0, 0, 24, "0 items show DIF at {}; 24 items are anchors."),
        ("score", 1, 1, 1, "1 item shows DIF at {}, of class C (large); 1 item is an anchor."),
        ("score", 2, 1, 9, "2 items show DIF at {}, 1 of them of class C (large); 9 items are"),
        ("raju", 1, 0, 9, "1 item shows DIF at {}; 9 items are anchors."),
    ],
)
def test_a_report_counts_and_names_what_it_shows(method, flagged, large, anchors, says):
    items = pd.DataFrame({"item_id": [f"i{k}" for k in range(24)], "statistic": 4.7, "df": 1, "p_value": 0.07})
    items = items.assign(p_adjusted=0.8, effect=0.4, **{"class": "" if method == "raju" else "A"})
    values = {"sizes": pd.Series({"a": 3, "b": 4}), "effect": "the area", "classes": method != "raju", "shown": 20}
    values["without_anchor"] = 3 if method == "score" else 0
    values |= {"flagged": flagged, "large": large, "anchors": anchors, "versions": {}, "items": items}
    text, lines = render.render("dif", values | {"flags": {"method": method, "level": 0.05}})
    assert lines[1].startswith(says.format("a false-discovery rate of 0.05"))
    assert lines[0].endswith("3 more answered no anchor and are left out.") == (method == "score")
    assert "Those with the 20 smallest p-values; `dif.csv` has all." in text
    assert ("| z² |" in text, "| class |" in text) == (method == "raju", method != "raju")


def test_a_link_of_two_tables(tmp_path):
    rng = np.random.default_rng(0)
    base = pd.DataFrame({"item_id": [f"i{k}" for k in range(8)], "discrimination": np.exp(rng.normal(0, 0.3, 8))})
    base["difficulty"] = rng.normal(size=8)
    other = base.assign(discrimination=1.3 * base.discrimination, difficulty=(base.difficulty + 0.4) / 1.3)
    for name, table in (("base", base), ("other", other)):
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    tests = f"--base={tmp_path / 'base.csv'}", f"--other={tmp_path / 'other.csv'}"
    done = run(*tests, f"--output_dir={tmp_path / 'link'}", module="experiments.link")
    assert done.returncode == 0, done.stderr
    assert "θ = 1.3000 θ' - 0.4000" in done.stdout
    record = json.loads((tmp_path / "link" / "link.json").read_text())
    np.testing.assert_allclose([record["slope"], record["intercept"]], [1.3, -0.4], atol=1e-5)
    found = pd.read_csv(tmp_path / "link" / "items.csv")
    np.testing.assert_allclose(found.difficulty, base.difficulty, atol=1e-5)
    scores = pd.read_csv(tmp_path / "link" / "equated_scores.csv")
    np.testing.assert_allclose(scores.true_score, scores.score, atol=1e-4)
    done = run(
        *tests, "--method=mean_mean", "--weights=uniform", f"--output_dir={tmp_path / 'no'}", module="experiments.link"
    )
    assert done.returncode == 2
    assert "--weights" in done.stderr
