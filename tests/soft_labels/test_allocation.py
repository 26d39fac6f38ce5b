"""Where the next label goes: what it is expected to bring, against draws, and ways to choose against each other."""

import numpy as np
import pytest

from irtjax import InputError
from irtjax.soft_labels import allocation
from irtjax.soft_labels.allocation import (
    ADDED,
    CHOICES,
    divergence_by_budget,
    entropy_so_far,
    expected_divergence,
    expected_gain,
)
from irtjax.soft_labels.labels import kl


@pytest.mark.parametrize("counts", [[1, 0], [3, 2, 0], [20, 5, 1, 0]])
def test_expectations_are_those_of_draws(counts):
    rng, counts = np.random.default_rng(0), np.array(counts)
    p = rng.dirichlet(counts + ADDED, 400_000)
    share = (counts + ADDED) / (counts + ADDED).sum()
    divergence = kl(p, np.broadcast_to(share, p.shape))
    assert expected_divergence(counts) == pytest.approx(divergence.mean(), abs=5 * divergence.std() / 400_000**0.5)
    after = np.zeros(len(p))
    for label in range(counts.size):
        more = counts + np.eye(counts.size)[label]
        after += p[:, label] * kl(p, np.broadcast_to((more + ADDED) / (more + ADDED).sum(), p.shape))
    fall = divergence - after
    assert expected_gain(counts) == pytest.approx(fall.mean(), abs=5 * fall.std() / 400_000**0.5)


def test_many_labels_leave_what_theory_says():
    """(C - 1) / 2n, whatever the shares."""
    for counts in ([5000, 5000], [9000, 1000], [4000, 3000, 3000]):
        assert expected_divergence(counts) == pytest.approx((len(counts) - 1) / 2e4, rel=2e-3)


@pytest.mark.parametrize("value", [expected_divergence, expected_gain, entropy_so_far])
def test_the_order_of_classes_does_not_matter(value):
    counts = np.array([[5, 1, 0], [0, 1, 5], [2, 2, 2]])
    np.testing.assert_allclose(value(counts)[0], value(counts)[1])
    np.testing.assert_allclose(value(counts), [value(row) for row in counts])
    assert (value(counts) > 0).all()


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    people = np.stack([rng.multinomial(40, p) for p in rng.dirichlet([0.5, 0.5, 0.5], 60)])
    return divergence_by_budget(people, [1, 5, 10, 40], runs=4, seed=3)


def test_more_labels_are_nearer(table):
    mean = table.groupby(["choice", "labels"]).kl.mean().unstack()
    assert mean.index.tolist() == sorted(CHOICES)
    assert (np.diff(mean.to_numpy(), axis=1) < 0).all()
    for labels in (1, 40):  # the first labels are the same, and so are all
        assert np.ptp(mean[labels]) < 1e-12


def test_entropy_wastes_labels(table):
    """It goes on asking about items that divide people, however well that is known."""
    mean = table.groupby(["choice", "labels"]).kl.mean().unstack()[10]
    assert mean["entropy"] > 1.3 * mean["even"]
    assert mean["expected gain"] == pytest.approx(mean["even"], rel=0.1)


def test_even_is_even():
    alike = np.array([[8, 0], [0, 8], [4, 4]])
    found = divergence_by_budget(alike, [3], runs=1).set_index("choice").kl
    certain = kl(np.array([1.0, 0.0]), np.array([3.5, 0.5]) / 4)
    rest = [kl(np.array([0.5, 0.5]), (np.array([n, 3 - n]) + ADDED) / 4) for n in range(4)]
    assert any(found["even"] == pytest.approx((2 * certain + one) / 3) for one in rest)


def test_balanced_classes_get_equally_many_labels():
    """One item of a class has as many labels as two of another together."""
    alike = np.array([[12, 0], [0, 12], [0, 12]])
    found = divergence_by_budget(alike, [4], runs=1).set_index("choice").kl
    of = [kl(np.array([1.0, 0.0]), np.array([n + ADDED, ADDED]) / (n + 1)) for n in (6, 3, 3)]
    assert found["balanced classes"] == pytest.approx(np.mean(of))


@pytest.mark.parametrize("seed", range(3))
def test_classes_are_balanced_as_items_change_theirs(seed):
    """First labels are often not those of the class; none is of the last class, which two people in a hundred chose."""
    rng = np.random.default_rng(seed)
    others = [*[0] * 30, *[1] * 15, *[2] * 5]
    drawn = [[rng.integers(3), *rng.choice([label, 2, 3], 200, p=(0.8, 0.18, 0.02))] for label in others]
    (_, counts), (_, later) = allocation._spent_by_class(drawn, 4, [10, 20], rng.random(50).tolist())
    assert (later >= counts).all()
    assert (counts.sum(), later.sum()) == (500, 1000)
    labels = np.bincount(later.argmax(1), later.sum(1), minlength=4)
    assert labels[3] == 0
    assert np.ptp(labels[:3]) < 0.1 * labels[:3].mean()
    # labels evenly over items would be 600, 300 and 100
    assert np.ptp(np.bincount(others, later.sum(1))) < 0.4 * labels[:3].mean()


@pytest.mark.parametrize(("budgets", "runs"), [([], 1), ([0], 1), ([9], 1), ([2], 0)])
def test_what_cannot_be_spent_is_refused(budgets, runs):
    with pytest.raises(InputError):
        divergence_by_budget(np.array([[4, 4], [6, 3]]), budgets, runs=runs)
