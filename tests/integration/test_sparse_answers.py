"""The maps of the E-step over single answers, against those over a matrix."""

import jax
import numpy as np
import pytest
from conftest import matrix
from simulation import draw

from irtjax.integration import sparse_e_step
from irtjax.integration.e_step import e_step
from irtjax.integration.encode import to_answers
from irtjax.integration.nodes import Answers
from irtjax.integration.sparse_answers import SparseAnswers
from irtjax.integration.sparse_grid import active_tiles, everywhere, levels
from irtjax.item_models.listing import model_of
from irtjax.item_models.protocol import PredictorParameters
from irtjax.kernels.models import ItemParameters
from irtjax.kernels.quadrature import rectangular
from irtjax.populations.groups import Groups
from irtjax.populations.normal import Population
from irtjax.responses.from_arrays import of_counts, of_grades, of_shares
from irtjax.responses.scaled import ScaledResponses
from irtjax.responses.sparse import of_matrix

J, NUM_ITEMS = 60, 12
IDS = [f"s{j}" for j in range(J)], [f"i{i}" for i in range(NUM_ITEMS)]


def both(responses, model, member=None) -> tuple[Answers, SparseAnswers]:
    sparse = of_matrix(responses)
    of_groups = None if member is None else member.astype(np.int32)
    with jax.enable_x64(True):
        dense = to_answers(np.asarray(responses.values), model, responses.trials, of_groups)
        found = to_answers(sparse.values, model, sparse.trials, of_groups)
    assert isinstance(found, SparseAnswers)
    return dense, found


def scaled(kind: str, rng: np.random.Generator) -> tuple[ScaledResponses, str]:
    gone = rng.random((J, NUM_ITEMS)) < 0.5
    gone[:, 0] = False
    if kind == "graded":
        return of_grades(
            np.where(gone, np.nan, rng.integers(0, 4, (J, NUM_ITEMS))), *IDS, labels=[0, 1, 2, 3]
        ), "graded"
    if kind == "binomial":
        trials = rng.integers(1, 6, (J, NUM_ITEMS))
        return of_counts(np.where(gone, np.nan, rng.integers(0, trials + 1)), trials, *IDS), "binomial"
    shares = rng.choice([0.0, 1.0, 0.25, 0.5], (J, NUM_ITEMS)) if kind == "few shares" else rng.random((J, NUM_ITEMS))
    return of_shares(np.where(gone, np.nan, shares), *IDS), "ordered_beta"


def same(one, other, atol=1e-10):
    for name in ("statistics", "observed", "log_likelihoods", "moments"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-11, atol=atol, err_msg=name)


@pytest.mark.parametrize("kind", ["graded", "binomial", "few shares", "shares"])
def test_statistics_and_likelihoods_of_every_kind(kind):
    rng = np.random.default_rng(1)
    responses, name = scaled(kind, rng)
    top = np.array([scale.top for scale in responses.scales])
    model = model_of((name,) * NUM_ITEMS, top)
    number = max(family.num_others(int(top.max())) for family in model.families)
    others = np.sort(rng.normal(size=(NUM_ITEMS, number)), axis=1)
    items = PredictorParameters(rng.normal(1, 0.3, (NUM_ITEMS, 1)), rng.normal(size=NUM_ITEMS), others, top)
    dense, sparse = both(responses, model)
    assert (sparse.cells.adds is None) == (kind == "shares")  # which hardly ever agree
    grid = everywhere(rectangular(61))
    with jax.enable_x64(True):
        population = Population(np.zeros(1), np.ones(1))
        same(*(e_step(items, population, answers, grid) for answers in (dense, sparse)))
    np.testing.assert_allclose(sparse.log_base(), dense.log_base(), atol=1e-10)
    one_each = sparse.with_cells()
    adds = sparse.matrix() if sparse.cells.adds is None else sparse.matrix() @ sparse.cells.adds
    np.testing.assert_allclose((one_each.matrix() @ one_each.cells.adds).toarray(), adds.toarray(), atol=1e-12)


def binary(dims: int = 1):
    rng = np.random.default_rng(dims)
    none = np.full(NUM_ITEMS, np.inf)
    slope = rng.normal(1, 0.5, (NUM_ITEMS, dims))
    items = ItemParameters(slope, rng.normal(size=NUM_ITEMS), -none, none)
    theta = rng.normal(size=(J, dims))
    values = draw(rng, 1 / (1 + np.exp(-(theta @ slope.T + items.intercept))), 0.4)
    values[:, 0] = 1
    return items, values


def test_groups_and_kept_posteriors():
    items, values = binary()
    member = np.arange(J, dtype=np.int32) % 2
    dense, sparse = to_answers(values, member=member), to_answers(of_matrix(matrix(values)).values, member=member)
    population, grid = Groups(np.array([[0.0], [0.7]]), np.array([[1.0], [1.3]])), everywhere(rectangular(61))
    with jax.enable_x64(True):
        one, other = (e_step(items, population, answers, grid, weights=True) for answers in (dense, sparse))
        chosen = np.array([5, 3, 40])
        same(*(e_step(items, population, answers.on_host().rows(chosen), grid) for answers in (dense, sparse)))
    same(one, other)
    np.testing.assert_allclose(np.asarray(one.weights)[0], other.weights[0], atol=1e-12)


def test_tiles_of_two_dimensions():
    items, values = binary(2)
    dense, sparse = to_answers(values), to_answers(of_matrix(matrix(values)).values)
    population = Population(np.zeros(2), np.ones(2))
    with jax.enable_x64(True):
        found = []
        for answers in (dense, sparse):
            *_, level = levels(items, population, answers, 61)
            found.append(e_step(items, population, answers, active_tiles(level, 16)))
        whole = e_step(items, population, sparse, everywhere(rectangular(61, dims=2)))
    same(*found)
    np.testing.assert_allclose(found[1].log_likelihoods, whole.log_likelihoods, atol=1e-9)


def test_accelerators_add_up_the_same():
    _, values = binary()
    answers = to_answers(of_matrix(matrix(values)).values)
    assert isinstance(answers, SparseAnswers)
    table = np.random.default_rng(0).normal(size=(len(answers.cells.item), 61))
    weighed = rectangular(61).log_weights[None]
    with jax.enable_x64(True):
        for one, other in zip(
            sparse_e_step._of_block(table, answers, weighed),
            sparse_e_step._of_block_on_device(table, answers, weighed),
            strict=True,
        ):
            np.testing.assert_allclose(one, other, atol=1e-12)


def test_threads_share_blocks_in_a_fixed_order(monkeypatch):
    items, values = binary()
    answers, grid = to_answers(of_matrix(matrix(values)).values), everywhere(rectangular(61))
    population = Population(np.zeros(1), np.ones(1))
    with jax.enable_x64(True):
        whole = e_step(items, population, answers, grid)
        monkeypatch.setattr(sparse_e_step, "WEIGHTS", 64 * 61 // 64)
        monkeypatch.setattr(sparse_e_step, "threads", lambda work: 3)
        parts = [e_step(items, population, answers, grid) for _ in range(2)]
    same(whole, parts[0])
    np.testing.assert_array_equal(parts[0].statistics, parts[1].statistics)
