"""Steps of variational inference."""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.programs import Program, array
from irtjax.kernels.answers import Answers, Rows
from irtjax.kernels.sharding import BY_ITEM, BY_RESPONSE, BY_SUBJECT, EVERYWHERE
from irtjax.svi.answers import Dealt
from irtjax.svi.guide import Normal, Start
from irtjax.svi.model import PRIORS, Size, hyperparameters
from irtjax.svi.programs import Settings, programs

STEP = "a step"


def of_a_matrix(
    model: str,
    priors: str,
    subjects: int,
    items: int,
    batch: int | None,
    *,
    start: bool = False,
    mesh: jax.sharding.Mesh | None = None,
) -> list[Program]:
    """A chunk of steps, with so many of the subjects and items at a time; and with `start` the first state."""
    sizes = Size(subjects, batch, subjects), Size(items, batch, items)
    init, advance = programs(Settings(model, PRIORS[priors], *sizes, mesh))
    begun, sites = _start(model, priors, subjects, items)
    responses = array(subjects, items, dtype=jnp.int8)
    state = jax.eval_shape(init, jax.random.key(0), begun, responses)
    name = f"{model}, priors {priors}, {subjects} × {items}"

    def spec(leaf: Any) -> Any:
        return {subjects: BY_SUBJECT, items: BY_ITEM}.get(leaf.shape[0] if leaf.shape else 0, EVERYWHERE)

    spread = (*(jax.tree.map(spec, tree) for tree in (state, array(), begun)), BY_RESPONSE)
    spread = *spread, *(jax.tree.map(spec, tree) for tree in (sites, sites))
    arguments = state, 0.1, begun, responses, sites, sites
    found = [Program(f"chunk of steps, {name}", advance, arguments, mesh=mesh, spread=spread, turn=STEP)]
    if start:
        found.append(Program(f"start, {name}", init, (jax.random.key(0), begun, responses)))
    return found


def of_single_answers(
    model: str, priors: str, subjects: int, items: int, blocks: int, sides: Any, answers: int, own: int
) -> Program:
    """A chunk of steps over answers one by one.

    Args:
        model: 1pl or 2pl.
        priors: of the model.
        subjects: J.
        items: I.
        blocks: of subjects, of which a step takes one.
        sides: (T, R, W) of the rows of a block, by subject and by item.
        answers: of all subjects.
        own: subjects in a block.
    """
    whole = functools.partial(array, dtype=jnp.int32)
    rows = [Rows(whole(blocks, *shape), whole(blocks, *shape[:2])) for shape in sides]
    responses = Dealt(Answers(*rows), whole(blocks, own) if blocks > 1 else None)
    sizes = Size(subjects, None, subjects), Size(items, None, items)
    init, advance = programs(Settings(model, PRIORS[priors], *sizes, None, answers))
    begun, sites = _start(model, priors, subjects, items)
    state = jax.eval_shape(init, jax.random.key(0), begun, responses)
    return Program(f"chunk of steps, {model}", advance, (state, 0.1, begun, responses, sites, sites), turn=STEP)


def _start(model: str, priors: str, subjects: int, items: int) -> tuple[Start, dict[str, Normal]]:
    by_item = ("difficulty",) if model == "1pl" else ("intercept", "discrimination")
    shapes: dict[str, tuple[int, ...]] = {"ability": (subjects,), **dict.fromkeys(by_item, (items,))}
    shapes |= dict.fromkeys(hyperparameters(PRIORS[priors], model), ())
    sites = {site: Normal(array(*shape), array(*shape)) for site, shape in shapes.items()}
    return Start(sites, array(items) if model == "2pl" else None), sites
