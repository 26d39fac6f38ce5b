"""S-X2, Chen-Thissen X2 and residuals of triplets, against mirt and enumeration."""

import itertools

import numpy as np
import pytest
from references import matrix, simulated
from scipy.stats import kstest

import irtjax
from irtjax.kernels.models import probabilities
from irtjax.kernels.quadrature import rectangular
from irtjax.scale.collapsing import collapse
from irtjax.scale.dependence import pair_dependence, triplet_dependence
from irtjax.scale.item_fit import item_fit
from irtjax.scale.sum_scores import of_right, rest_distributions, sum_distribution

SETS = [f"{final}5_{label}" for final in ("", "final_") for label in ("contradiction", "entailment", "neutral")]
NODES = rectangular()


def test_scores_by_enumeration():
    p = np.random.default_rng(0).random((3, 5))
    expected = np.zeros((6, 3))
    for pattern in itertools.product((0, 1), repeat=5):
        expected[sum(pattern)] += np.prod(np.where(np.array(pattern) == 1, p, 1 - p), axis=1)
    top = np.ones(5, int)
    np.testing.assert_allclose(sum_distribution(of_right(p), top), expected, rtol=1e-12)
    items = rest_distributions(of_right(p), top)
    for item, (number, rest) in enumerate(items):
        assert number == item
        others = sum_distribution(of_right(np.delete(p, item, axis=1)), top[1:])
        np.testing.assert_allclose(rest, others, rtol=1e-12)


@pytest.mark.parametrize("name", [*SETS, "lsat7"])
def test_s_x2_is_that_of_mirt(oracle, name):
    responses, expected = oracle.responses(name), oracle.table(f"itemfit_{name}_2PL")
    free = np.full(responses.num_items, 2)
    found = item_fit(responses.values, oracle.fit(name).parameters, NODES, free)
    np.testing.assert_array_equal(found["degrees_of_freedom"], expected["df"])
    np.testing.assert_allclose(found["s_x2"], expected["S_X2"], rtol=1e-4)
    np.testing.assert_allclose(found["p_value"], expected["p"], rtol=1e-3)


@pytest.mark.parametrize("name", [*SETS, "lsat7"])
def test_dependence_is_that_of_mirt(oracle, name):
    found = pair_dependence(oracle.responses(name).values, oracle.fit(name).parameters, NODES)
    expected = oracle.table(f"ld_{name}_2PL")
    np.testing.assert_allclose(found["ld_x2"].abs(), expected["LD_X2"], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(
        found["residual_correlation"].abs(), expected["std_resid_corr"].abs(), rtol=1e-3, atol=1e-4
    )
    # mirt rounds the correlations whose difference it takes the sign of, so that the sign of small ones differs
    clear = expected["LD_X2"] > 4
    np.testing.assert_array_equal(np.sign(found["ld_x2"])[clear], np.sign(expected["std_resid_corr"])[clear])


def joined(table):
    """Rows of subjects, observed right and expected right, as `collapse` joins them."""
    wrong_right = np.stack([table[:, :1] - table[:, 1:], table[:, 1:]], axis=1)
    found = collapse(wrong_right[:, :, 0], wrong_right[:, :, 1])
    return np.concatenate([found[:, :, 0].sum(axis=1, keepdims=True), found[:, 1]], axis=1)


def test_rows_are_joined_by_the_rule():
    single = np.array([[1, 1, 0.5], [10, 4, 4.0], [1, 0, 0.5]])
    np.testing.assert_allclose(joined(single), [[12, 5, 5.0]])
    sparse = np.array([[9, 1, 0.5], [4, 2, 2.0], [8, 4, 4.0], [6, 6, 5.5]])
    # the lowest joins its only neighbour; the highest, too, of whose six half a subject is expected to be wrong
    np.testing.assert_allclose(joined(sparse), [[13, 3, 2.5], [14, 10, 9.5]])
    middle = np.array([[9, 4, 4.0], [5, 1, 0.5], [8, 4, 4.0]])
    np.testing.assert_allclose(joined(middle), [[9, 4, 4.0], [13, 5, 4.5]])  # with fewer subjects


def test_p_values_of_a_true_model_are_uniform():
    slope, intercept = np.full(15, 1.3), np.linspace(-1, 1, 15)
    of_items, of_pairs, of_triplets = [], [], []
    for seed in range(12):
        responses = matrix(simulated(seed, slope, intercept))
        items = irtjax.fit(responses, "2pl", standard_errors=False).parameters
        of_items.append(item_fit(responses.values, items, NODES, np.full(15, 2))["p_value"])
        of_pairs.append(pair_dependence(responses.values, items, NODES)["p_value"])
        of_triplets.append(triplet_dependence(responses.values, items, NODES)["p_value"])
    assert kstest(np.concatenate(of_items), "uniform").statistic < 0.12
    # the parameters were fitted to the same responses: pairs and triplets reject too seldom, never too often
    assert np.mean(np.concatenate(of_pairs) < 0.05) < 0.06
    assert np.mean(np.concatenate(of_triplets) < 0.05) < 0.06


def test_triplets_by_hand(oracle):
    responses, items = oracle.responses("lsat7"), oracle.fit("lsat7").parameters
    p, _ = probabilities(items, NODES.nodes)
    share = np.exp(NODES.log_weights) @ (p[:, 0] * p[:, 2] * p[:, 4])
    seen = responses.values[:, [0, 2, 4]].all(1).sum()
    table = triplet_dependence(responses.values, items, NODES)
    assert len(table) == 10
    row = table[(table["first"] == 0) & (table["second"] == 2) & (table["third"] == 4)].iloc[0]
    assert row["residual"] == pytest.approx((seen - 1000 * share) / np.sqrt(1000 * share * (1 - share)), rel=1e-5)


def test_missing_answers_are_left_out_pair_by_pair():
    values = simulated(0, np.ones(6), np.zeros(6), 400)
    items = irtjax.fit(matrix(values), "2pl", standard_errors=False).parameters
    missing = values.copy()
    missing[:100, 0] = -1
    pairs = pair_dependence(missing, items, NODES)
    dropped = pair_dependence(values[100:], items, NODES)
    first = pairs["first"] == 0
    np.testing.assert_allclose(pairs["ld_x2"][first], dropped["ld_x2"][first])


def test_s_x2_is_summed_over_the_forms_of_a_design():
    values = simulated(0, np.ones(6), np.zeros(6), 400)
    items = irtjax.fit(matrix(values), "2pl", standard_errors=False).parameters
    missing = values.copy()
    missing[:100, 0] = -1
    missing[399, 1:3] = -1  # one subject is no form
    free = np.zeros(6, int)
    found = item_fit(missing, items, NODES, free)
    whole = item_fit(values[100:399], items, NODES, free)
    short = item_fit(values[:100, 1:], items.take(slice(1, None)), NODES, free[1:])
    for column in ("s_x2", "degrees_of_freedom"):
        assert found[column][0] == pytest.approx(whole[column][0])
        np.testing.assert_allclose(found[column][1:], whole[column][1:].to_numpy() + short[column].to_numpy())
