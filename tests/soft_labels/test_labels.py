"""Soft labels of people, against published counts, and how many answers they need."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import entropy

from irtjax import InputError
from irtjax.responses.agreement import label_counts
from irtjax.soft_labels.labels import check_soft_labels, divergence_by_number, gold_histogram, kl, soft_labels

SENTIMENT = ["very negative", "negative", "neutral", "positive", "very positive"]
NLI = ["contradiction", "entailment", "neutral"]


@pytest.fixture(scope="module")
def sentiment(shared):
    """Five-class answers of 999 people to 131 phrases: counts, and the classes and values of the treebank."""
    folder = shared / "human_responses" / "sst_emnlp2018"
    answers = pd.read_csv(folder / "response_patterns.csv", index_col=0).astype(str)
    items = pd.read_csv(folder / "sst_items.csv", dtype={"phrase_id": str}).set_index("phrase_id").loc[answers.columns]
    return label_counts(answers, list("12345")), items


@pytest.fixture(scope="module")
def pairs(shared):
    """Answers of about 980 people to each of two groups of 90 pairs, as class numbers; and the gold labels."""
    folder = shared / "human_responses" / "snli_emnlp2016"
    gold = pd.read_csv(folder / "snli_items.csv").drop_duplicates("pair_id").set_index("pair_id").gold_label
    groups = []
    for group in (4, 5):
        answers = pd.read_csv(folder / f"irt_file_{group}.csv", index_col=0, keep_default_na=False)
        codes = np.full(answers.shape, -1)
        for number, letter in enumerate("cen"):
            codes[(answers == letter).to_numpy()] = number
        groups.append((codes, gold.loc[answers.columns].map(NLI.index).to_numpy()))
    return groups


def counts_of(codes, num_classes):
    return (codes[..., None] == np.arange(num_classes)).sum(0)


def test_probabilities_of_the_gold_label_are_the_published_counts(sentiment, pairs):
    counts, items = sentiment
    five = items.sentiment_class.map(SENTIMENT.index).to_numpy()
    assert gold_histogram(soft_labels(counts), five).tolist() == [6, 6, 22, 18, 23, 19, 21, 7, 6, 3]
    assert round(soft_labels(counts)[np.arange(131), five].mean(), 3) == 0.460
    binary = np.stack([counts[:, :2].sum(1), counts[:, 2:].sum(1)], axis=1)
    two = (items.sentiment_value > 0.4).astype(int).to_numpy()
    assert gold_histogram(soft_labels(binary), two).tolist() == [0, 3, 3, 4, 4, 5, 13, 16, 24, 59]
    assert round(soft_labels(binary)[np.arange(131), two].mean(), 3) == 0.799
    nli = [(counts_of(codes, 3), gold) for codes, gold in pairs]
    assert sum(gold_histogram(soft_labels(counts), gold) for counts, gold in nli).tolist() == [
        0,
        0,
        3,
        10,
        14,
        13,
        22,
        22,
        45,
        51,
    ]
    shares = np.concatenate([soft_labels(counts)[np.arange(90), gold] for counts, gold in nli])
    assert round(shares.mean(), 3) == 0.754


def test_twenty_people_are_as_far_off_as_expected(pairs):
    tables = [divergence_by_number(codes, 3, [20], runs=20) for codes, _ in pairs]
    means = pd.concat(tables).mean()
    for name, expected, off in (
        ("floor 1e-10", 0.39, 0.03),
        ("floor 1e-3", 0.069, 0.006),
        ("add ½", 0.037, 0.002),
        ("reverse", 0.049, 0.002),
    ):
        assert means[name] == pytest.approx(expected, abs=off)


def test_divergences_by_definition():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (30, 4))
    codes[rng.random(codes.shape) < 0.2] = -1
    table = divergence_by_number(codes, 3, [5, 30], runs=3, seed=1)
    assert table.people.tolist() == [5, 30] * 3
    everyone = soft_labels(counts_of(codes, 3))
    for run, row in table[table.people == 5].groupby("run"):
        drawn = codes[np.random.default_rng((1, run)).permutation(30)[:5]]
        counts = counts_of(drawn, 3)
        expected = np.mean([entropy(p, (n + 0.5) / (n.sum() + 1.5)) for p, n in zip(everyone, counts, strict=True)])
        assert row["add ½"].item() == pytest.approx(expected)
        reverse = np.mean([entropy(n / n.sum(), p) for p, n in zip(everyone, counts, strict=True)])
        assert row["reverse"].item() == pytest.approx(reverse)
        assert row["unseen"].item() == pytest.approx((counts == 0).mean())
    # all people together have nothing left to tell
    everybody = table[table.people == 30]
    assert (everybody[["floor 1e-3", "floor 1e-10", "reverse", "unseen"]] == 0).all(axis=None)
    assert len(everybody["add ½"].unique()) == 1


def test_kl_is_infinite_where_a_class_is_ruled_out():
    p = np.array([[0.5, 0.5, 0], [1, 0, 0]])
    q = np.array([[1, 0, 0], [0.5, 0.5, 0]])
    np.testing.assert_allclose(kl(p, q), [np.inf, np.log(2)])


def test_exact_shares_fall_into_the_bin_that_they_begin():
    counts = np.array([[3, 7], [10, 0], [0, 10], [29, 71]])
    assert gold_histogram(soft_labels(counts), np.zeros(4, int)).tolist() == [1, 0, 1, 1, 0, 0, 0, 0, 0, 1]


def test_bad_labels_are_refused():
    check_soft_labels(np.array([[0.2, 0.8], [1, 0]]), np.array(["a", "b"]))
    for shares, message in (
        ([[0.2, 0.8], [0.5, 0.6]], "item b: its soft labels sum to 1.1, expected 1"),
        ([[-0.2, 1.2], [1, 0]], "item a: a soft label that is negative"),
        ([[1, 0], [np.nan, 1]], "item b: a soft label that is negative or no number"),
    ):
        with pytest.raises(InputError, match=message):
            check_soft_labels(np.array(shares), np.array(["a", "b"]))
    with pytest.raises(InputError, match="item number 2 has no answers"):
        soft_labels(np.array([[1, 0], [0, 0]]))
    with pytest.raises(InputError, match="0 to 2 people, expected 1 to 3"):
        divergence_by_number(np.zeros((3, 1), int), 2, [0, 2])
