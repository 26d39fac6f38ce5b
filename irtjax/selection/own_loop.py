"""For a training loop of one's own: the ability that answers give, and the examples that suit it.

Pure functions over arrays of NumPy or JAX, which `jax.jit` and `jax.vmap` take. `Curriculum` (curriculum.py) calls them
for a loop that would rather hand over answers and get examples.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.kernels.ability import Ability
from irtjax.kernels.ability_modes import ability_1pl
from irtjax.populations.normal import Population
from irtjax.responses.masks import unmasked
from irtjax.selection.choices import CurriculumOptions
from irtjax.selection.probe import rank_items
from irtjax.selection.rules import Rule
from irtjax.selection.strategies import STRATEGIES
from irtjax.types import AnyArray, Bool, Float, Int, Shaped

BY_ABILITY = tuple(
    name for name, strategy in STRATEGIES.items() if callable(strategy.selection(1, CurriculumOptions()))
)
_OPTIONS = CurriculumOptions()


def scored(answers: Any, labels: Any = None) -> Int[AnyArray, " N"]:
    """Answers to N examples as 1 right, 0 wrong, -1 not asked; int8.

    Args:
        answers: without labels (N,), 1 or True right, 0 or False wrong, -1 (any negative number) or NaN not asked. With
            labels the predicted classes (N,), negative or NaN where not asked; or logits or probabilities (N, C), of
            which the largest counts, NaN where not asked.
        labels: (N,) true classes, from 0; None where the answers are scored already.

    Raises:
        InputError: shapes that do not go together, scored answers that are something else, classes that are not
            integers, labels outside the classes. Values are checked where they are known: not while JAX traces.
    """
    answers, traced = _array(answers), _traced(answers, labels)
    if labels is None:
        if answers.ndim != 1:
            raise InputError(f"`answers` of the shape {answers.shape}: expected (N,) right or wrong, or give `labels`")
        numbers = answers.astype(np.int8) if answers.dtype == bool else answers
        right, wrong = numbers == 1, numbers == 0
        if not traced:
            _refuse(
                "answers", numbers, ~(right | wrong | (numbers < 0) | _nan(numbers)), "1 right, 0 wrong, -1 not asked"
            )
        return _where(right, 1, _where(wrong, 0, -1)).astype(np.int8)
    labels = _array(labels)
    if labels.ndim != 1 or answers.ndim not in (1, 2) or answers.shape[0] != labels.shape[0]:
        raise InputError(
            f"`answers` of the shape {answers.shape} and `labels` {labels.shape}, expected (N,) or (N, C), and (N,)"
        )
    if answers.ndim == 2:
        asked, classes = ~_nan(answers).any(axis=1), answers.argmax(axis=1)
    else:
        asked, classes = ~((answers < 0) | _nan(answers)), answers
    if not traced:
        number = answers.shape[1] if answers.ndim == 2 else np.inf
        expected = f"a class from 0 to {number - 1}" if answers.ndim == 2 else "a class, an integer from 0"
        _refuse("labels", labels, ~((labels >= 0) & (labels < number) & (labels == np.floor(labels))), expected)
        _refuse("answers", classes, asked & (classes != np.floor(classes)), "a class, an integer")
    return _where(asked, (classes == labels).astype(np.int8), -1).astype(np.int8)


@checks_types
def ability(
    answers: Shaped[AnyArray, "..."],
    difficulty: Shaped[AnyArray, "..."],
    labels: Shaped[AnyArray, "..."] | None = None,
    *,
    population: Population | None = None,
) -> Ability:
    """The ability of a network from its answers to examples of known difficulty, by the 1PL model.

    P(right) = σ(θ - b). Maximum likelihood solves Σ (y_i - σ(θ - b_i)) = 0 over the examples that were asked (Lord
    1980, eq. 4-20), MAP adds the prior (`irtjax.kernels.ability_modes.ability_1pl`). `jax.vmap` it over many networks.

    **Examples that were not asked do not count**, as if there were none of them. The estimate is that of all examples
    but for chance, as long as which are asked is not decided by what the network answers: drawn at random, say, or
    near the ability of the epoch before.

    Args:
        answers: (N,) right or wrong, or with `labels` classes (N,) or logits (N, C); see `scored`.
        difficulty: (N,) b, logits.
        labels: (N,) true classes, where the answers are classes or logits.
        population: None for maximum likelihood, else the prior of a MAP estimate.

    Returns:
        Ability and standard error, scalars in logits. By maximum likelihood the ability is inf where all answers are
        right, -inf where all are wrong, with a standard error of inf; and NaN where nothing was asked.

    Raises:
        InputError: as `scored`; not one finite difficulty for each answer.
    """
    right, difficulty = scored(answers, labels), as_difficulty(difficulty)
    if right.shape != difficulty.shape:
        raise InputError(f"{right.size:,} answers and {difficulty.size:,} difficulties, expected one for each example")
    return _ability(right, difficulty, population)


@checks_types
def select(
    difficulty: Shaped[AnyArray, "..."],
    ability: Float[AnyArray, ""] | float,
    rule: str | Rule = "DDaCLAE",
    *,
    options: CurriculumOptions = _OPTIONS,
) -> Bool[jax.Array, " N"]:
    """Which of N examples a rule selects at an ability.

    This is the rule alone: it may select none. `Curriculum` has the floor of one minibatch.

    Args:
        difficulty: (N,) b, logits.
        ability: θ, logits; inf and -inf are allowed.
        rule: "DDaCLAE", b ≤ θ; "DDaCLAE-hard", b ≥ θ; "window", |b - θ| ≤ `options.half_width`; or a rule of
            `irtjax.selection.rules`.
        options: for the window.

    Returns:
        (N,) true for those that are selected: a mask, which has the same shape at every ability.

    Raises:
        InputError: an unknown rule, one that does not go by ability, a difficulty that is not finite, or an ability
            that is NaN.
    """
    difficulty = as_difficulty(difficulty)
    if not _traced(ability) and np.isnan(ability):
        raise InputError("`ability` is NaN: has the network been asked anything?")
    items = rank_items(difficulty)
    found = rule_of(rule, options)(items.ascending, jnp.asarray(ability))
    places = jnp.arange(difficulty.size)
    inside = (places >= found.first) & (places < found.first + found.num_examples)
    return jnp.zeros(difficulty.size, bool).at[items.order].set(inside)


def rule_of(rule: str | Rule, options: CurriculumOptions = _OPTIONS) -> Rule:
    """The rule of a name.

    Raises:
        InputError: unknown, or not by ability.
    """
    if not isinstance(rule, str):
        return rule
    if rule not in BY_ABILITY:
        known = rule in STRATEGIES
        what = f"`rule` {rule!r} goes by the epoch, not by ability" if known else f"unknown `rule` {rule!r}"
        raise InputError(f"{what}: expected one of {', '.join(BY_ABILITY)}")
    found = STRATEGIES[rule].selection(1, options)
    assert callable(found)
    return found


def as_difficulty(difficulty: Any) -> Float[jax.Array, " N"]:
    """Difficulties on the device, in floating point.

    Raises:
        InputError: they are not (N,), none, or not finite numbers.
    """
    given = _array(difficulty)
    if given.ndim != 1 or not given.size:
        raise InputError(f"`difficulty` of the shape {given.shape}, expected (N,): one for each example")
    if not _traced(given):
        try:
            finite = np.isfinite(np.asarray(given, float))
        except (TypeError, ValueError):
            raise InputError("`difficulty` holds values that are not numbers") from None
        _refuse("difficulty", given, ~finite, "a finite number")
    return jnp.asarray(given, None if jnp.issubdtype(given.dtype, jnp.floating) else jnp.float32)


_ability = jax.jit(ability_1pl)


def _array(values: Any) -> Any:
    """An array of JAX as it is, all else as one of NumPy, without what JAX does not know."""
    return values if isinstance(values, jax.Array) else np.asarray(unmasked(values))


def _traced(*values: Any) -> bool:
    return any(isinstance(value, jax.core.Tracer) for value in values)


def _nan(values: Any) -> Any:
    return jnp.isnan(values) if isinstance(values, jax.Array) else np.isnan(values)


def _where(condition: Any, yes: Any, no: Any) -> Any:
    return jnp.where(condition, yes, no) if isinstance(condition, jax.Array) else np.where(condition, yes, no)


def _refuse(name: str, values: Any, wrong: Any, expected: str) -> None:
    """Values are as expected.

    Raises:
        InputError: names the first that is wrong.
    """
    found = np.flatnonzero(np.asarray(wrong))
    if found.size:
        raise InputError(f"`{name}`: example {found[0]} has {np.asarray(values)[found[0]]}, expected {expected}")
