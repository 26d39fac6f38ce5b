"""An audit of planted faults: each is found, nothing else is, and sound responses raise no alarm."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import irtjax
import irtjax.auditing.audit as module
from experiments.reports import audit as report
from irtjax import InputError
from irtjax.auditing.audit import audit
from irtjax.auditing.findings import DEPENDENT, DOUBTFUL, FALLING, FLAT, HIGHEST, LOWEST, information_shares
from irtjax.auditing.told_apart import enough

J, NUM_ITEMS = 600, 30
SUBJECTS, ITEMS = [f"s{j}" for j in range(J)], [f"i{i}" for i in range(NUM_ITEMS)]


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    theta = rng.normal(size=J)
    slope, difficulty = rng.lognormal(0.3, 0.2, NUM_ITEMS), rng.normal(size=NUM_ITEMS)
    slope[3] = 0  # tells nothing
    values = (rng.random((J, NUM_ITEMS)) < expit(slope * (theta[:, None] - difficulty))).astype(int)
    astray = rng.random(J) < 0.6
    values[:, 5] = (1 - values[:, 5]) * astray  # the key is another option, which most choose who miss the right one
    values[:, 8] = np.where(rng.random(J) < 0.7, values[:, 7], values[:, 8])
    values[:, 10], values[:, 11] = 0, 1
    return audit(pd.DataFrame(values, SUBJECTS, ITEMS), model="2pl", integration="nodes")


def test_planted_faults_are_found(found):
    table = found.items.set_index("item_id")
    reasons = {
        name: set(table.index[table["reasons"].str.split("; ").apply(lambda r, n=name: n in r)])
        for name in found.reasons
    }
    assert reasons[DOUBTFUL] == {"i5"}
    assert reasons[FALLING] == {"i5"}
    assert reasons[FLAT] == {"i3"}
    assert reasons[DEPENDENT] == {"i7", "i8"}
    assert (reasons[LOWEST], reasons[HIGHEST]) == ({"i10"}, {"i11"})
    assert table.index[0] == "i5"  # the worst is first
    assert table["depends_on"][["i7", "i8"]].tolist() == ["i8", "i7"]
    assert {name: len(some) for name, some in reasons.items()} == found.reasons


def test_sound_responses_raise_no_alarm(found):
    assert sum(number for name, number in found.alarms.items() if name not in (LOWEST, HIGHEST)) <= 1


def test_reliability_against_the_null_control(found):
    assert found.reliability > 0.75
    assert abs(found.shuffled) < 0.3
    assert found.second.share >= found.second.expected


def test_items_that_are_needed(found):
    share, needed = information_shares(found.fit)
    np.testing.assert_allclose(share.sum(), 1)
    assert share[needed].min() >= share[~needed].max()
    assert not needed[[3, 10, 11]].any()


def test_choices_are_scored_by_their_key():
    rng = np.random.default_rng(1)
    theta, truth = rng.normal(size=60), rng.integers(0, 4, 200)
    able = rng.random((60, 200)) < expit(1.2 * theta[:, None] + rng.normal(size=200))
    chosen = np.where(able, truth, rng.integers(0, 4, (60, 200)))
    letters = pd.DataFrame(np.array(list("ABCD"))[chosen])
    key = pd.Series(np.array(list("ABCD"))[truth])
    key.iloc[:6] = [{"A": "B", "B": "C", "C": "D", "D": "A"}[one] for one in key.iloc[:6]]
    found = audit(choices=letters, key=key, model="2pl", integration="nodes")
    doubtful = found.items[found.items["reasons"].str.contains(DOUBTFUL)]
    assert set(doubtful["item_id"]) >= set(map(str, range(6)))
    assert len(doubtful) <= 8
    assert (
        doubtful.set_index("item_id")["instead"].loc[list("012345")].to_numpy()
        == letters.columns.map(lambda i: "ABCD"[truth[i]])[:6]
    ).all()


def test_what_is_refused():
    with pytest.raises(InputError, match="`responses` or `choices` with a `key`: expected one of them"):
        audit()
    with pytest.raises(InputError, match="`dates` of the items and `cutoffs` of the subjects are given together"):
        audit(pd.DataFrame([[0, 1], [1, 0]]), dates={"0": "2024-01-01"})
    assert irtjax.auditing.audit.audit is audit


@pytest.mark.filterwarnings("ignore::irtjax.FitWarning")  # of what is shuffled
def test_the_null_control_of_many_subjects_is_one_division(found, monkeypatch):
    asked, fit = [], module.fit_responses
    monkeypatch.setattr(module, "MANY", 100)
    monkeypatch.setattr(module, "fit_responses", lambda *given, **how: asked.append(how) or fit(*given, **how))
    assert abs(module.half_to_half(found.fit, np.random.default_rng(0), shuffled=True)) < 0.3
    assert [how["max_iterations"] for how in asked] == [module.MOST_STEPS] * 2


def test_the_report_of_many_subjects(found, tmp_path, monkeypatch):
    """Which share of all pairs is told apart, by the ranges: those whose ranges say which is the higher."""
    monkeypatch.setattr(report, "MANY", 100)
    monkeypatch.setattr(report, "FEW", 2.0)
    lines = report.write(found, {"level": 0.05}, tmp_path)
    ability, error = (np.asarray(one, float) for one in (found.fit.ability, found.fit.ability_se))
    far = enough(ability, error**2, 0.95)
    z = (ability[:, None] - ability) / np.hypot(error[:, None], error)
    share = (z > far).sum() / (J * (J - 1) / 2)
    text = " ".join((tmp_path / "report.md").read_text().split())
    assert 0.05 < share < 0.95
    assert f"about 179,700 pairs, of which {share:.0%} are told apart. Here are the first 20" in text
    assert "here they answered 30 each" in " ".join(lines)
