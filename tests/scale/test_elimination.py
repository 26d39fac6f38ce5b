"""The elimination loop: planted faults, published retention, what is logged."""

import numpy as np
import pytest
from references import KEPT, matrix, simulated
from scipy.stats import norm

from irtjax import InputError, ResponseMatrix
from irtjax.scale.elimination import Rules, TooFewItems, eliminate

SLOPE, INTERCEPT = np.linspace(1.0, 2.0, 12), np.linspace(-1.5, 1.5, 12)


def jaccard(one, other):
    return len(one & other) / len(one | other)


def test_a_clean_test_is_left_alone():
    scale = eliminate(matrix(simulated(3, SLOPE, INTERCEPT)))
    assert scale.removals.empty
    assert scale.fit.responses.num_items == 12
    assert (scale.item_fit["p_holm"] >= 0.05).all()
    assert (scale.dependence["p_holm"] >= 0.05).all()
    assert len(scale.triplets) == 12 * 11 * 10 / 6


def test_planted_faults_are_found_and_logged():
    theta = np.random.default_rng(0).normal(size=1500)
    slope, intercept = np.tile(SLOPE, 2), np.tile(INTERCEPT, 2)
    slope[2] = 0.1
    values = simulated(1, slope, intercept, theta=theta)
    rng = np.random.default_rng(1)
    hump = 0.2 + 0.7 * np.exp(-((theta - 0.3) ** 2) / 0.8)
    values[:, 5] = rng.random(1500) < hump
    copied = rng.random(1500) < 0.5
    values[copied, 8] = values[copied, 7]
    values[:, 11] = 1
    scale = eliminate(matrix(values), expert=["i000"])
    removals = scale.removals.set_index("item_id")
    assert removals.loc["i000", ["reason", "round"]].tolist() == ["by reading", 0]
    assert removals.loc["i011", "reason"] == "answered alike by all"
    assert removals.loc["i002", ["reason", "round"]].tolist() == ["flat", 1]
    assert removals.loc["i005", "reason"] in ("flat", "misfit")
    (dependent,) = removals.index[removals["reason"] == "dependent"]
    assert {dependent, removals.loc[dependent, "partner"]} == {"i007", "i008"}
    assert removals.loc[dependent, "statistic"] > 0
    assert removals.loc[dependent, "p_value"] < 0.05
    assert len(removals) == 5


def test_duplicates_and_reversed_items_are_called_so():
    values = simulated(5, SLOPE, INTERCEPT)
    values[:, 3] = values[:, 2]
    differs = np.random.default_rng(0).random(1000) < 0.02
    values[:, 9] = np.where(differs, values[:, 9], 1 - values[:, 8])  # the same twice, the key of one turned round
    values[:, 7] = 1 - values[:, 7]
    removals = eliminate(matrix(values)).removals.set_index("item_id")
    assert removals["reason"].to_dict() == {"i003": "duplicate", "i009": "duplicate", "i007": "reversed"}
    assert removals.loc["i003", ["partner", "statistic", "round"]].tolist() == ["i002", pytest.approx(1), 0]
    assert removals.loc["i009", "statistic"] < -0.9


@pytest.fixture(scope="module")
def with_flat_items():
    """Responses to twelve items, three of which are flat, and the scale made of them."""
    slope = SLOPE.copy()
    slope[[1, 4, 9]] = 0.2
    responses = matrix(simulated(2, slope, INTERCEPT))
    return responses, eliminate(responses)


def test_all_flat_items_go_at_once(with_flat_items):
    removals = with_flat_items[1].removals
    assert set(removals["item_id"][removals["round"] == 1]) == {"i001", "i004", "i009"}
    assert (removals["statistic"] < 0.15).all()


def test_rules_can_be_loosened():
    slope = SLOPE.copy()
    slope[1] = 0.45
    responses = matrix(simulated(2, slope, INTERCEPT))
    assert "i001" in set(eliminate(responses).removals["item_id"])
    assert eliminate(responses, rules=Rules(level=0.001, communality=0.02)).removals.empty


def test_items_that_are_guessed_keep_a_lower_asymptote():
    values = simulated(4, np.full(10, 1.8), np.linspace(-1, 1, 10), 4000)
    values[:, 0] = np.maximum(values[:, 0], np.random.default_rng(0).random(4000) < 0.3)
    scale = eliminate(matrix(values), guessed=["i000"])
    assert scale.types == ("3pl", *["2pl"] * 9)
    items = scale.fit.items().set_index("item_id")
    assert items.loc["i000", "guessing"] == pytest.approx(0.3, abs=0.1)  # under a prior around 0.2
    assert (items["guessing"][1:] == 0).all()


def test_the_order_of_items_does_not_matter(with_flat_items):
    responses, scale = with_flat_items
    turned = ResponseMatrix(responses.values[:, ::-1], responses.subject_ids, responses.item_ids[::-1])
    assert set(eliminate(turned).removals["item_id"]) == set(scale.removals["item_id"])


def test_what_cannot_be_done():
    responses = matrix(simulated(0, np.full(6, 0.1), np.zeros(6)))
    with pytest.raises(InputError, match="item 'no' is to be removed but not among the responses"):
        eliminate(responses, expert=["no"])
    with pytest.raises(TooFewItems, match="items are left after round 1, a scale needs 4") as raised:
        eliminate(responses)
    assert len(raised.value.removals) > 2


@pytest.mark.parametrize(
    ("label", "by_reading", "least"),
    [pytest.param("contradiction", (22, 26), 0.82, marks=pytest.mark.slow), ("entailment", (), 1), ("neutral", (), 1)],
)
def test_what_is_retained_is_what_the_study_retained(oracle, label, by_reading, least):
    responses = oracle.responses(f"5_{label}")
    scale = eliminate(responses, expert=[responses.item_ids[at - 1] for at in by_reading])
    study = set(responses.item_ids[np.array(KEPT[label]) - 1].tolist())
    assert jaccard(set(scale.fit.responses.item_ids.tolist()), study) >= least


def test_a_steep_item_stays_whose_slope_has_a_large_error():
    slope = np.array([6, *[1.5] * 7])
    values = simulated(1, slope, np.linspace(-1, 1, 8), 300)
    values[:, 0] = np.maximum(values[:, 0], np.random.default_rng(1).random(300) < 0.3)
    scale = eliminate(matrix(values), guessed=["i000"])
    columns = scale.fit.item_columns
    assert norm.sf(columns["discrimination"][0] / columns["discrimination_se"][0]) > 0.05  # beside the asymptote
    assert scale.removals.empty
