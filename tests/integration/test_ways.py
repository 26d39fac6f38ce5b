"""Which way abilities are integrated out, by size of the test and by request; and that the ways agree."""

import numpy as np
import pytest
from simulation import simulate_model

import irtjax
from irtjax.errors import InputError
from irtjax.integration.importance_nodes import ImportanceNodes
from irtjax.integration.rules import SharedNodes, Totals, choose_rule


def totals(num_subjects, num_items):
    return Totals(np.full(num_items, num_subjects // 2), np.full(num_items, num_subjects), num_subjects)


def test_posteriors_decide_unless_asked():
    short, medium, long = totals(500, 30), totals(500, 200), totals(500, 3000)
    assert short.expected_width(1) == pytest.approx((1 + 30 / 4) ** -0.5)
    assert choose_rule("auto", None, short, 1) == SharedNodes(61, 1)
    assert choose_rule("auto", None, medium, 1) == SharedNodes(121, 1)  # narrower than the distance of 61 nodes
    assert choose_rule("auto", None, long, 1) is None
    assert choose_rule("auto", None, totals(100, 20), 4) == ImportanceNodes(256)
    assert choose_rule("auto", None, totals(10**6, 60), 4) is None  # too many for nodes of each subject's own
    assert choose_rule("auto", 41, long, 1) == choose_rule("nodes", 41, long, 1) == SharedNodes(41, 1)
    assert choose_rule("nodes", None, long, 1) == SharedNodes(121, 1)
    assert choose_rule("normal", None, short, 1) is None
    assert choose_rule("around", None, short, 2) == ImportanceNodes(256)


@pytest.mark.parametrize(
    ("way", "num_nodes", "size", "message"),
    [
        ("grid", None, (500, 30), "unknown `integration` 'grid', expected one of auto, nodes, around, normal"),
        ("normal", 61, (500, 30), "`num_nodes` 61 with `integration` 'normal': expected 'nodes'"),
        ("nodes", 2, (500, 30), "`num_nodes` 2, expected 3 to 1,000,000 with `dims` 1"),
        ("around", None, (10**6, 60), r"too many responses \(1,000,000 subjects × 60 items\)"),
    ],
)
def test_what_cannot_be_had_is_refused(way, num_nodes, size, message):
    with pytest.raises(InputError, match=message):
        choose_rule(way, num_nodes, totals(*size), 1)


@pytest.mark.parametrize(
    ("way", "posteriors", "in_errors"),
    [("normal", "normal", 0.2), pytest.param("around", "own nodes", 0.1, marks=pytest.mark.slow)],
)
def test_ways_agree_with_nodes_that_subjects_share(way, posteriors, in_errors):
    responses, _, _ = simulate_model("2pl", 300, 60, seed=4)
    nodes, fit = (irtjax.fit(responses, "2pl", priors=None, integration=way) for way in ("nodes", way))
    assert (nodes.details["posteriors"], fit.details["posteriors"]) == ("fixed nodes", posteriors)
    assert (nodes.integration, fit.integration) == ("nodes", way)
    for name in ("difficulty", "discrimination"):
        distance = fit.item_columns[name] - nodes.item_columns[name]
        assert np.abs(distance / nodes.item_columns[f"{name}_se"]).max() < in_errors, name
