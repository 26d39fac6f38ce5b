"""Fits of published responses: people (Lalor, Wu and Yu 2016) and Transformers (Vania et al. 2021)."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

import irtjax
from irtjax import ResponseMatrix


def rows_of(responses, rows):
    return ResponseMatrix(responses.values[rows], responses.subject_ids[rows], responses.item_ids)


def test_split_half_reliability_equals_mirt(shared):
    """Published 0.992; on the same halves as mirt the difficulties of each are those of mirt."""
    ours, theirs = [], []
    summary = pd.read_csv(shared / "oracle" / "splithalf_summary.csv").set_index(["group", "seed"])
    for group in (4, 5):
        responses = irtjax.read_responses(shared / "human_responses" / "snli_emnlp2016" / f"irt_file_{group}_coded.csv")
        halves = pd.read_csv(shared / "oracle" / f"splithalf_assign_{group}_seed1.csv").sort_values("row")["half"]
        mirt = pd.read_csv(shared / "oracle" / f"splithalf_b_{group}_seed1.csv").set_index("item")
        by_half = [irtjax.fit(rows_of(responses, (halves == half).to_numpy()), "rasch").difficulty for half in (1, 2)]
        mirt = mirt.loc[responses.item_ids]
        for half in (1, 2):
            np.testing.assert_allclose(by_half[half - 1], mirt[f"b_half{half}"], atol=0.005)
        assert spearmanr(*by_half).statistic == pytest.approx(summary.loc[(group, 1)].spearman, abs=0.002)
        ours.append(np.array(by_half))
        theirs.append(mirt[["b_half1", "b_half2"]].to_numpy().T)
    pooled = spearmanr(*np.concatenate(ours, axis=1)).statistic
    assert pooled == pytest.approx(spearmanr(*np.concatenate(theirs, axis=1)).statistic, abs=0.002)
    assert pooled == pytest.approx(0.991, abs=0.002)


@pytest.fixture(scope="module")
def transformers(shared):
    return irtjax.read_responses(shared / "model_responses" / "snli.csv")


@pytest.mark.slow
def test_transformers_become_abler_with_pretraining(transformers):
    fit = irtjax.fit(transformers, "1pl", extremes="keep")
    assert fit.converged
    assert fit.details["posteriors"] == "normal"
    size = {"1M": 0, "10M": 1, "100M": 2, "1B": 3}
    level = [
        size[found[1]] if (found := re.search(r"-(1M|10M|100M|1B)-", name)) else 4 if name.startswith("roberta") else -1
        for name in transformers.subject_ids
    ]
    ability = pd.Series(fit.ability).groupby(level).mean()
    assert (np.diff(ability.loc[0:4]) > 0).all()


@pytest.mark.slow
def test_two_halves_of_the_transformers_agree_on_difficulty(transformers):
    correlations = []
    for seed in range(5):  # from 0.88 to 0.93 over 20 halvings: one alone says little
        order = np.random.default_rng(seed).permutation(transformers.num_subjects)
        halves = [irtjax.fit(rows_of(transformers, order[at::2]), "1pl", extremes="keep").difficulty for at in (0, 1)]
        correlations.append(spearmanr(*halves).statistic)
    assert np.mean(correlations) >= 0.9
