"""Agreement on labels, against the published figures and statsmodels."""

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.inter_rater import fleiss_kappa

from irtjax import InputError
from irtjax.responses.agreement import agreement, label_counts

LABELS = ["c", "e", "n"]


@pytest.mark.parametrize(
    ("group", "majority", "supermajority", "gold", "mode", "kappa"),
    [(4, 95.6, 61.1, 81.1, 73.2, 0.43), (5, 96.7, 82.2, 93.3, 82.3, 0.60)],
)
def test_published_figures_to_the_printed_digit(shared, group, majority, supermajority, gold, mode, kappa):
    """Lalor, Wu and Yu 2016, table 1: what it calls an individual label equal to gold is one equal to the mode."""
    folder = shared / "human_responses" / "snli_emnlp2016"
    answers = pd.read_csv(folder / f"irt_file_{group}.csv", keep_default_na=False).iloc[:, 1:]
    by_item = dict(line.split() for line in (folder / f"group_{group}.txt").read_text().splitlines())
    found = agreement(label_counts(answers, LABELS), LABELS, np.array([by_item[item][0] for item in answers]))
    assert round(100 * found.majority, 1) == majority
    assert round(100 * found.supermajority, 1) == supermajority
    assert round(100 * found.mode_is_gold, 1) == gold
    assert round(100 * found.answer_is_mode, 1) == mode
    assert round(found.kappa, 2) == kappa


def test_kappa_of_the_sentiment_answers(shared):
    answers = pd.read_csv(shared / "human_responses" / "sst_emnlp2018" / "response_patterns.csv", index_col=0)
    binary = pd.DataFrame(np.where(answers <= 2, "negative", "positive"))
    counts = label_counts(binary, ["negative", "positive"])
    assert round(agreement(counts, ["negative", "positive"], np.full(131, "positive")).kappa, 2) == 0.52


def test_kappas_by_definition():
    rng = np.random.default_rng(0)
    answers = pd.DataFrame(rng.choice(LABELS, (7, 12), p=[0.5, 0.3, 0.2]))
    answers.iloc[:, :6] = "c"
    counts = label_counts(answers, LABELS)
    found = agreement(counts, LABELS, np.full(12, "c"))
    assert found.kappa == pytest.approx(fleiss_kappa(counts))
    for label, kappa in found.kappa_of_label.items():
        this = (answers == label).to_numpy().sum(axis=0)
        assert kappa == pytest.approx(fleiss_kappa(np.stack([this, 7 - this], axis=1)))
    # that of all labels is the mean of those of single ones, weighted by p (1 - p)
    share = counts.sum(0) / counts.sum()
    weights = share * (1 - share)
    assert found.kappa == pytest.approx(weights @ list(found.kappa_of_label.values()) / weights.sum())
    assert found.answer_is_gold == pytest.approx((answers == "c").to_numpy().mean())


def test_ties_and_thresholds():
    counts = np.array([[2, 2, 0], [2, 1, 0], [3, 0, 0]])
    found = agreement(counts, LABELS, np.array(["c", "c", "e"]))
    assert found.majority == pytest.approx(2 / 3)  # half is no majority
    assert found.answer_is_mode == pytest.approx(7 / 10)
    assert found.supermajority == pytest.approx(2 / 3)
    assert found.mode_is_gold == pytest.approx(2 / 3)


def test_an_item_without_two_answers():
    with pytest.raises(InputError, match="item number 2 has fewer than two answers"):
        agreement(np.array([[2, 0, 0], [1, 0, 0]]), LABELS, np.array(["c", "c"]))
