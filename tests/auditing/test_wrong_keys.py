"""Wrong keys: probabilities that hold on simulated choices, and none where no key is wrong; what is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import irtjax
from irtjax import InputError, ResponseMatrix
from irtjax.auditing.wrong_keys import wrong_keys

J, NUM_ITEMS, K = 28, 600, 5


def simulated(seed, wrong):
    """Letters of subjects, the key that is given, and which keys are wrong."""
    rng = np.random.default_rng(seed)
    theta, truth = rng.normal(size=J), rng.integers(0, K, NUM_ITEMS)
    able = rng.random((J, NUM_ITEMS)) < expit(
        rng.lognormal(0, 0.3, NUM_ITEMS) * theta[:, None] + 1.5 * rng.normal(size=NUM_ITEMS)
    )
    popular = np.stack([rng.dirichlet(np.full(K - 1, 0.7)) for _ in range(NUM_ITEMS)])
    astray = (truth + 1 + np.array([rng.choice(K - 1, J, p=p) for p in popular]).T) % K
    bad = rng.random(NUM_ITEMS) < wrong
    key = np.where(bad, (truth + rng.integers(1, K, NUM_ITEMS)) % K, truth)
    return np.array(list("ABCDE"))[np.where(able, truth, astray)], np.array(list("ABCDE"))[key], bad, truth


def fitted(letters, key):
    ids = np.array([f"s{j}" for j in range(J)]), np.array([f"i{i}" for i in range(NUM_ITEMS)])
    return irtjax.fit(ResponseMatrix((letters == key).astype(np.int8), *ids), "2pl", integration="nodes")


@pytest.fixture(scope="module")
def planted():
    letters, key, bad, truth = simulated(0, 0.1)
    return fitted(letters, key), letters, key, bad, truth


def test_probabilities_are_shares(planted):
    fit, letters, key, bad, truth = planted
    table = wrong_keys(fit, letters, key)
    p = table["p_wrong_key"].to_numpy()
    for low, high in ((0.0, 0.5), (0.5, 1.0)):
        those = (p >= low) & (p <= high)
        assert abs(bad[those].mean() - p[those].mean()) < 3 * np.sqrt((p * (1 - p))[those].sum()) / those.sum() + 0.02
    top = np.argsort(-table["evidence"].to_numpy())[: bad.sum() // 2]
    assert bad[top].mean() > 0.9
    assert (table["instead"].to_numpy()[top] == np.array(list("ABCDE"))[truth[top]])[bad[top]].mean() > 0.9
    assert abs(table.attrs["share"] - bad.mean()) < 0.03


def test_no_wrong_keys_where_there_are_none():
    letters, key, _, _ = simulated(1, 0.0)
    table = wrong_keys(fitted(letters, key), letters, key)
    assert table.attrs["share"] < 0.01
    assert (table["p_wrong_key"] > 0.5).sum() <= 1


def test_scores_alone_tell_less_and_do_not_accuse_what_one_subject_misses(planted):
    fit, _, _, bad, _ = planted
    table = wrong_keys(fit)
    by = table["evidence"].to_numpy()
    right = fit.responses.values.mean(axis=0)
    missed_by_one = np.isclose(right, 1 - 1 / J)
    assert missed_by_one.any()
    assert by[missed_by_one].max() < 0  # whoever that one is
    assert bad[np.argsort(-by)[:30]].mean() > 3 * bad.mean()


def test_tables_are_put_in_order_and_empty_choices_say_nothing(planted):
    fit, letters, key, _, _ = planted
    letters = letters.copy()
    letters[3, ::7] = ""
    straight = wrong_keys(fit, letters, key)
    ids = fit.responses.subject_ids, fit.responses.item_ids
    table = pd.DataFrame(letters, *ids).replace("", None).iloc[::-1, ::-1]
    shuffled = wrong_keys(fit, table, pd.Series(key, ids[1]).iloc[::-1])
    pd.testing.assert_frame_equal(straight, shuffled)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"key": None}, "`choices` need a `key`"),
        ({"choices": None}, "a `key` needs the `choices`"),
        ({"key": {"i0": "A"}}, "`key`: item 'i1' has none"),
        ({"choices": np.full((J, 2), "A")}, r"`choices` \(28, 2\) and `key` \(600,\): expected \(28, 600\)"),
        ({"choices": pd.DataFrame({"i0": ["A"]}, ["s0"])}, "`choices`: no subject 's1'"),
        ({"choices": np.arange(J * NUM_ITEMS).reshape(J, NUM_ITEMS)}, "options, expected at most 50"),
    ],
)
def test_what_is_refused(planted, change, message):
    fit, letters, key, _, _ = planted
    with pytest.raises(InputError, match=message):
        wrong_keys(fit, **({"choices": letters, "key": key} | change))
