"""Likelihoods with all their gradients."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.programs import Program, array
from irtjax.kernels import likelihood, one_pass, one_pass_answers
from irtjax.kernels.answers import Answers, Rows, log_likelihood_1pl, log_likelihood_2pl
from irtjax.kernels.one_pass_answers import ScaledAnswers, ScaledRows
from irtjax.kernels.one_pass_counts import trials
from irtjax.kernels.one_pass_grades import graded, partial_credit
from irtjax.kernels.one_pass_shares import shares
from irtjax.kernels.sharding import BY_ITEM, BY_RESPONSE, BY_SUBJECT, EVERYWHERE

Sides = tuple[tuple[int, int, int], tuple[int, int, int]]  # (T, R, W) of rows by subject and by item


def of_matrices(subjects: int, items: int, mesh: jax.sharding.Mesh | None = None) -> list[Program]:
    """Of a response matrix in the 1PL and the 2PL."""
    one, two = likelihood.log_likelihood_1pl, likelihood.log_likelihood_2pl
    theta, of_items, responses = array(subjects), array(items), array(subjects, items, dtype=jnp.int8)
    specs = BY_SUBJECT, BY_ITEM, BY_RESPONSE
    return [
        Program("1PL", _gradient_of(one, 2, mesh), (theta, of_items, responses), mesh=mesh, spread=specs),
        Program(
            "2PL",
            _gradient_of(two, 3, mesh),
            (theta, of_items, of_items, responses),
            mesh=mesh,
            spread=(BY_SUBJECT, BY_ITEM, BY_ITEM, BY_RESPONSE),
        ),
    ]


def of_single_answers(
    subjects: int, items: int, sides: Sides, mesh: jax.sharding.Mesh | None = None, grades: int = 3
) -> list[Program]:
    """Of right and wrong answers one by one, and of grades; rows of all devices, one after the other along T."""
    whole, theta, of_items = functools.partial(array, dtype=jnp.int32), array(subjects), array(items)
    rows = [(whole(*shape), whole(*shape[:2])) for shape in sides]
    answers = Answers(*(Rows(*side) for side in rows))
    cells = [(array(*places.shape, dtype=jnp.int8),) for places, _ in rows]
    scaled = ScaledAnswers(*(ScaledRows(*side, values) for side, values in zip(rows, cells, strict=True)))
    of_grades = functools.partial(one_pass_answers.log_likelihood, graded)
    cases: tuple[tuple[str, Callable, tuple[Any, ...], Any], ...] = (
        ("1PL", log_likelihood_1pl, (of_items,), answers),
        ("2PL", log_likelihood_2pl, (of_items, of_items), answers),
        ("graded", of_grades, ((of_items, array(grades, items)),), scaled),
    )
    return [
        Program(
            name,
            _gradient_of(function, 1 + len(arguments), mesh),
            (theta, *arguments, given),
            mesh=mesh,
            spread=(BY_SUBJECT, *(EVERYWHERE for _ in arguments), BY_SUBJECT),
        )
        for name, function, arguments, given in cases
    ]


def of_families(subjects: int, items: int, grades: int) -> list[Program]:
    """Of matrices of grades from 0 on, of counts and of shares."""
    theta, one, places = array(subjects), array(items), array(grades, items)
    values = array(subjects, items, dtype=jnp.int8)
    cases: dict[str, tuple[Callable, tuple[Any, ...], tuple[Any, ...]]] = {
        "graded": (graded, (one, places), (values,)),
        "partial credit": (partial_credit, (one, one, array(grades - 1, items), one), (values,)),
        "counts": (trials, (one, one), (values, values)),
        "shares": (shares, (one,) * 5, (array(subjects, items),)),
    }
    return [
        Program(name, _gradient_of(functools.partial(one_pass.log_likelihood, block), 2), (theta, of_items, responses))
        for name, (block, of_items, responses) in cases.items()
    ]


def _gradient_of(function: Callable, number: int, *mesh: jax.sharding.Mesh | None) -> Any:
    return jax.jit(jax.value_and_grad(functools.partial(_call, function, mesh), tuple(range(number))))


def _call(function: Callable, mesh: tuple[Any, ...], *arguments: Any) -> Any:
    return function(*arguments, *mesh)
