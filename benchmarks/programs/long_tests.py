"""Iterations of the engines for long tests, with a normal posterior for each subject."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.programs import Program, array
from irtjax.estimation.driver import Problem
from irtjax.estimation.normal import at_maximum
from irtjax.estimation.normal.engine import NormalPosteriors, State
from irtjax.estimation.normal.family_passes import NUMBER, TOGETHER
from irtjax.estimation.normal.iteration import iterate
from irtjax.estimation.normal.passes import ScoredPasses
from irtjax.estimation.priors import NormalPrior, Priors
from irtjax.estimation.specify import specify, start_items
from irtjax.integration import family_expectations
from irtjax.integration.family_expectations import Cells
from irtjax.item_models.listing import MODELS, model_of, num_others
from irtjax.item_models.protocol import PredictorParameters
from irtjax.kernels.loops import at_once, items_per_block
from irtjax.kernels.sharding import BY_ITEM, BY_SUBJECT, EVERYWHERE, ITEMS, SUBJECTS
from irtjax.responses.blocks import BLOCK_RESPONSES, BY_BLOCK, Chunks
from irtjax.responses.matrix import counts

VALUES = np.random.default_rng(0).integers(-1, 2, (12, 60)).astype(np.int8)  # what a state is made of, to be enlarged
MODELS_OF_ITEMS = {  # model, dimensions, how many of the items are anchors
    "1PL": ("1pl", 1, 0),
    "2PL": ("2pl", 1, 0),
    "2PL with anchors": ("2pl", 1, 5),
    "2PL, D=2": ("2pl", 2, 0),
    "4PL": ("4pl", 1, 0),
}


def of_right_wrong(
    name: str,
    subjects: int,
    items: int,
    mesh: jax.sharding.Mesh | None = None,
    block: int | None = None,
    at_the_end: bool = True,
) -> list[Program]:
    """An iteration with right/wrong items, and what is computed once it has converged.

    Args:
        name: one of `MODELS_OF_ITEMS`.
        subjects: J, which the mesh divides.
        items: I, which are filled up to whole blocks.
        mesh: of devices.
        block: items in a block; as `Chunks` has them where it is None.
        at_the_end: whether that is among the programs.
    """
    state = _last_stage(*MODELS_OF_ITEMS[name])
    rows, columns = (1, 1) if mesh is None else (mesh.shape[SUBJECTS], mesh.shape[ITEMS])
    size = block or items_per_block(-(-subjects // rows), -(-items // columns), BLOCK_RESPONSES)
    number = columns * -(-items // (size * columns))
    sizes = {VALUES.shape[0]: subjects, VALUES.shape[1]: number * size}

    def enlarged(leaf: Any) -> jax.ShapeDtypeStruct:
        return array(*(sizes.get(length, length) for length in leaf.shape), dtype=leaf.dtype)

    def spec(leaf: Any) -> Any:
        return {subjects: BY_SUBJECT, number * size: BY_ITEM}.get(leaf.shape[0] if leaf.shape else 0, EVERYWHERE)

    blocks = array(number, subjects, size, dtype=jnp.int8)
    leaves, structure = jax.tree.flatten(state.specification)

    def one(scaled: Any, damping: Any, weight: Any, leaves: Any, blocks: Any) -> Any:
        specification = jax.tree.unflatten(structure, leaves)
        passes = ScoredPasses(_Resident(blocks), state.asymptotes, mesh)
        return iterate(scaled, damping, passes, weight, specification, True, held=False)

    large = jax.tree.map(enlarged, (state.scaled, state.damping, state.weight, leaves))
    of_all = large[0].items, large[0].posterior, blocks
    options = {"asymptotes": state.asymptotes, "mesh": mesh}
    programs = [Program(f"an iteration, {name}", jax.jit(one), (*large, blocks))]
    if at_the_end:
        programs += [
            Program(f"log-likelihood at the end, {name}", at_maximum._expansion, of_all, options),
            Program(f"standard errors, {name}", at_maximum._observed_information, of_all, options),
        ]
    return [
        dataclasses.replace(
            program, mesh=mesh, spread=(*jax.tree.map(spec, program.arguments[:-1], is_leaf=_is_shape), BY_BLOCK)
        )
        for program in programs
    ]


def _is_shape(leaf: Any) -> bool:
    return isinstance(leaf, jax.ShapeDtypeStruct)


class _Resident(Chunks):
    """A single chunk, as it is on an accelerator: an argument of the program."""

    def __init__(self, blocks: Any) -> None:
        self._resident = blocks


def _last_stage(model: str, dims: int, num_anchors: int) -> State:
    """Where the engine ends: all items, with asymptotes if there are any, priors estimated."""
    right, observed = counts(VALUES, axis=0)
    num_items = VALUES.shape[1]
    specification = specify(
        [model] * num_items,
        dims=dims,
        anchored=np.arange(num_items) < num_anchors,
        priors=Priors(slope=NormalPrior(0.0, 1.0)),
        estimate=("slope", "guessing", "upper"),
    )
    engine = NormalPosteriors()
    state = engine.init(Problem(VALUES, start_items(specification, right, observed), specification))
    while len(state.phases) > 1:
        revised = engine.revise(state)
        assert revised is not None
        state = revised
    assert state.asymptotes == (model == "4pl")
    return state


def of_families(subjects: int, items: int, top: int) -> Iterator[Program]:
    """Both passes of an iteration with items of each kind: over items, and over subjects.

    Args:
        subjects: J.
        items: I, which are filled up to whole blocks.
        top: the highest category of each item.
    """
    for name in ("graded", "gpcm", "nominal", "binomial", "ordered_beta"):
        counted, shares = name == "binomial", name == "ordered_beta"
        best = 1 if counted or shares else top
        model = model_of((name,), np.array([best]))
        family = MODELS[name].family
        size = family.num_others(best) if not (counted or shares) else num_others(model)
        each = subjects * NUMBER * model.per_item * (size + 2)
        block = int(np.clip(at_once(TOGETHER // each, each), 1, items))
        number = -(-items // block)
        all_items = number * block
        top_of_each = array(all_items, dtype=jnp.int32)
        parameters = PredictorParameters(array(all_items, 1), array(all_items), array(all_items, size), top_of_each)
        kind = jnp.float32 if shares else jnp.int8
        trials = array(number, subjects, block, dtype=jnp.int32) if counted else None
        cells = Cells(array(number, subjects, block, dtype=kind), trials)
        theta, weights = array(NUMBER, subjects, 1), array(NUMBER)
        arguments = model, parameters, cells, theta
        yield Program(f"pass over items, {name}", family_expectations.item_sums, (*arguments, weights))
        yield Program(f"pass over subjects, {name}", family_expectations.slopes_of_subjects, arguments)
