"""What engines for short tests ask of the responses, on nodes and in float64; and scores."""

import functools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.programs import Program, array
from irtjax.estimation.quadrature import score_moments
from irtjax.integration import e_step, importance_nodes, posteriors, sparse_e_step
from irtjax.integration.nodes import Answers
from irtjax.item_models.binary import BINARY
from irtjax.kernels.ability_means import ability_eap
from irtjax.kernels.ability_modes import ability_1pl, ability_mode
from irtjax.kernels.ability_weighted import ability_wle
from irtjax.kernels.models import ItemParameters
from irtjax.populations.normal import Population
from irtjax.scoring import abilities as scoring

double = functools.partial(array, dtype=jnp.float64)
whole = functools.partial(array, dtype=jnp.int64)


def item_parameters(dims: int, dtype: Any = jnp.float32, num_items: int = 5) -> ItemParameters:
    """Of right/wrong items."""
    one = array(num_items, dtype=dtype)
    return ItemParameters(array(num_items, dims, dtype=dtype), one, one, one)


def on_nodes(
    subjects: int,
    items: int,
    nodes: int,
    tiles: tuple[int, int, int, int],
    *,
    complete: bool,
    own_dims: int = 4,
    taken: int = 4,
) -> list[Program]:
    """Posteriors on nodes that all subjects share, in tiles of nodes, and on nodes of their own; moments of scores.

    Args:
        subjects: J.
        items: I.
        nodes: that all subjects share.
        tiles: how many, places in each, blocks of subjects, and subjects in each.
        complete: whether all responses were observed.
        own_dims: dimensions of the nodes of each subject's own.
        taken: subjects at once on shared nodes.
    """
    number, size, blocks, block = tiles
    at_nodes, weights = double(number, size, items), double(blocks, block, size)
    answers = Answers(array(subjects, items, dtype=jnp.int8), BINARY, complete)
    where = whole(blocks, block), whole(blocks)
    scores = score_moments.Scores(
        at_nodes, double(number, size, 2 * items, 1), whole(2 * items, 1), double(number, size, items, 2)
    )
    of_blocks = score_moments.Blocks(weights, *where)
    shared = e_step.Curves(double(nodes, items), double(nodes, items), double(nodes), double(nodes, 2))
    sums = [double(nodes, items), double(nodes, 1 if complete else items)]
    in_tiles = e_step.Curves(at_nodes, at_nodes, double(number, size), double(number, size, 2))
    rim = array(blocks, block, dtype=bool)
    cases: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "posteriors on all nodes": (e_step._add_block, (sums, shared, answers, whole(), taken, False)),
        "posteriors in tiles": (e_step._in_tiles, (in_tiles, answers, *where, rim)),
        "nodes of each subject's own": (
            importance_nodes._normal_approximations,
            (item_parameters(own_dims, jnp.float64, items), answers),
        ),
        "means of scores": (score_moments._means, (of_blocks, answers, scores)),
        "squares of scores": (score_moments._squares_of_scores, (of_blocks, answers, scores)),
    }
    missing = "" if complete else ", missing"
    turns = {"nodes of each subject's own": "a step of each search"}
    return [
        Program(name + missing, program, arguments, products="float64", turn=turns.get(name, ""))
        for name, (program, arguments) in cases.items()
    ]


def by_the_answer(subjects: int, cells: int, nodes: int, answers: int) -> Program:
    """Posteriors of subjects with few answers each."""
    at = array(answers, dtype=jnp.int32)
    arguments = double(cells, nodes), at, at, double(answers), double(1, nodes), subjects
    return Program("posteriors by the answer", sparse_e_step.gathered, arguments, products="float64")


def kernels_of_abilities(subjects: int, items: int) -> Iterator[Program]:
    """Abilities of subjects in float32, as other programs take them."""
    rows, population = array(subjects, items, dtype=jnp.int8), Population(array(), array())
    of_items = array(items)
    yield Program("1PL, ML", jax.jit(jax.vmap(ability_1pl, (0, None))), (rows, of_items))
    yield Program("1PL, MAP", jax.jit(jax.vmap(ability_1pl, (0, None, None))), (rows, of_items, population))
    yield Program(
        "1PL, of a sample",
        jax.jit(jax.vmap(ability_1pl, (0, None, None, None, 0))),
        (rows, of_items, None, array(), array(subjects, items)),
    )
    for dims in (1, 2):
        of_items = item_parameters(dims, num_items=items)
        yield Program(f"ML, D={dims}", jax.jit(jax.vmap(ability_mode, (0, None))), (rows, of_items))
        for name, program in (("MAP", ability_mode), ("EAP", ability_eap)):
            jitted = jax.jit(jax.vmap(program, (0, None, None)))
            yield Program(f"{name}, D={dims}", jitted, (rows, of_items, population))
    of_items = item_parameters(1, num_items=items)
    yield Program("WLE", jax.jit(jax.vmap(ability_wle, (0, None))), (rows, of_items))


def scores(
    subjects: int, items: int, nodes: int = 61, methods: tuple[str, ...] = ("ml", "map", "eap")
) -> Iterator[Program]:
    """Abilities of a table of subjects, in float64."""
    rows, population = array(subjects, items, dtype=jnp.int8), Population(double(), double())
    of_items = item_parameters(1, jnp.float64, items)
    for method in methods:
        yield Program(
            f"scores, {method}",
            scoring._all_rows,
            (method, nodes, None, rows, of_items, population, None),
            products="float64",
            turn="" if method == "eap" else "a step of each search",
        )
    arguments = "eap", nodes, None, rows, of_items, population, (double(nodes), double(nodes))
    yield Program("scores, shared nodes", scoring._all_rows, arguments, products="float64")


def likelihoods_of_a_fit(subjects: int, items: int, nodes: int) -> Program:
    """Log-likelihoods at nodes, of two blocks of items."""
    blocks = jax.tree.map(lambda leaf: double(2, *leaf.shape), item_parameters(1, num_items=items))
    responses = array(subjects, 2, items, dtype=jnp.int8)
    arguments = responses, blocks, double(nodes, 1)
    return Program("fit", posteriors._log_likelihoods, arguments, products="float64")
