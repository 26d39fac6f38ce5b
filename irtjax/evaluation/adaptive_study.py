"""What an adaptive test gains: beside random items and a fixed form, on the same recorded answers, in one dimension."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.evaluation.adaptive import adaptive_test
from irtjax.evaluation.adaptive_options import Band, Progressive, Randomesque, Stop, grouped
from irtjax.evaluation.bank_tables import curves_of, fisher_information
from irtjax.evaluation.binary_adaptive import AdaptiveTest
from irtjax.evaluation.replay import Replayed, replay
from irtjax.evaluation.replay_tables import before, trace
from irtjax.evaluation.scaled_adaptive import ScaledAdaptiveTest
from irtjax.kernels.ability_nodes import even_nodes, line_nodes
from irtjax.kernels.models import ItemParameters
from irtjax.kernels.quadrature import spacing
from irtjax.populations.normal import STANDARD, Population
from irtjax.responses.matrix import MISSING, counts, share_right
from irtjax.scoring.abilities import abilities
from irtjax.types import AnyArray, Float, Int, Shaped

METHODS = ("adaptive", "random", "form")
TARGETS = (0.3, 0.2, 0.1)  # standard errors of the ability, in logits
NODES = 61  # of the population that a form is chosen for
WIDEST = 8.0  # logits between two of them: beyond, an item may be informative between nodes alone


class Study(NamedTuple):
    """An adaptive test beside others.

    Attributes:
        errors: one row per `method` and `num_items` from 1: mean absolute errors `ability_mae` (logits), against the
            EAP of all recorded answers, and `score_mae`, against the share right of these; `ability_se`, the mean
            standard error that was claimed.
        needed: one row per `method` and `target` standard error: the `median` number of items until it was reached,
            infinite where half of the subjects never did, and the share `reached` of those who did.
    """

    errors: pd.DataFrame
    needed: pd.DataFrame


def fixed_form(
    bank: ItemParameters,
    number: int,
    population: Population = STANDARD,
    groups: Sequence[Any] | Shaped[np.ndarray, " I"] | None = None,
    quotas: Mapping[Any, float] | None = None,
) -> Int[np.ndarray, " K"]:
    """Positions of the K items of the most Fisher information, averaged over the population, best first; D = 1.

        Ī_i = ∫ I_i(θ) φ((θ - μ)/σ) dθ / σ

    Args:
        bank: parameters of I items, NumPy arrays.
        number: K.
        population: that the information is averaged over.
        groups: (I,) of each item; the group that is most behind its quota has the next item.
        quotas: share of each group, by default of the bank.

    Raises:
        InputError: as `irtjax.evaluation.adaptive.adaptive_test`.
    """
    which, shares = grouped(len(bank.intercept), groups, quotas, number)
    mean, sd = float(population.mean), float(population.sd)
    steep = sd * np.abs(np.asarray(bank.slope)[:, 0]).max(initial=0) * spacing(NODES) > WIDEST
    line = line_nodes(bank, 1, mean, sd) if steep else even_nodes(NODES, mean, sd)
    places, weights = line.nodes, np.exp(line.log_weights)
    curves = curves_of(bank)
    with jax.enable_x64(True):
        at_nodes = np.asarray(jax.vmap(fisher_information, (None, 0))(curves, places))
    best = np.argsort(-(weights @ at_nodes), kind="stable")
    queues = [list(best[which[best] == group]) for group in range(len(shares))]
    asked, form = np.zeros(len(shares)), []
    for place in range(number):
        behind = np.where([bool(queue) for queue in queues], shares - asked / max(place, 1), -np.inf)
        group = int(behind.argmax())
        asked[group] += 1
        form.append(queues[group].pop(0))
    return np.array(form, int)


@checks_types
def compare_tests(
    bank: ItemParameters,
    values: Int[AnyArray, "J I"],
    key: jax.Array,
    *,
    max_items: int,
    rule: str = "variance",
    ability: str = "eap",
    population: Population = STANDARD,
    exposure: Randomesque | Progressive | None = None,
    groups: Sequence[Any] | Shaped[np.ndarray, " I"] | None = None,
    quotas: Mapping[Any, float] | None = None,
    start: Band | None = None,
    at_a_time: int = 1,
    on_method: Callable[[str], None] = lambda _: None,
) -> Study:
    """Tests of `max_items`, by a rule, of random items, and by the form of the most information on average.

    All three are scored alike, and none is asked an item without a recorded answer. Who has no item left keeps the last
    estimate. Of items that were asked together nothing is known before the last of them is answered.

    Args:
        bank: parameters of I items, NumPy arrays, D = 1.
        values: (J, I) 1 right, 0 wrong, negative missing; subjects without an answer do not count.
        key: of the random draws.
        max_items: of each test.
        rule: as all that follow, of the adaptive test (`irtjax.evaluation.adaptive.adaptive_test`). Groups and quotas
            hold for all three.
        ability: "eap", "map" or "ml".
        population: normal distribution of ability.
        exposure: how far the adaptive test strays from the best item.
        groups: (I,) of each item.
        quotas: share of each group in a test.
        start: of the adaptive test.
        at_a_time: items that are asked together.
        on_method: called with the name of each test before it begins.

    Raises:
        InputError: there is no answer; or as `adaptive_test` and `replay`.
    """
    answers: np.ndarray = np.clip(np.asarray(values), MISSING, 1).astype(np.int8)
    answers = answers[(answers != MISSING).any(axis=1)]
    if not len(answers):
        raise InputError("`values` has no recorded answer: there is nothing to compare")
    stop = Stop(max_items)
    shared: dict[str, Any] = {"ability": ability, "population": population, "stop": stop}
    in_groups: dict[str, Any] = {"groups": groups, "quotas": quotas}
    form = fixed_form(bank, max_items, population, groups, quotas)
    of_form = np.full_like(answers, MISSING)
    of_form[:, form] = answers[:, form]
    tests = {
        "adaptive": adaptive_test(bank, rule=rule, exposure=exposure, start=start, **in_groups, **shared),
        "random": adaptive_test(bank, rule="random", **in_groups, **shared),
        "form": adaptive_test(bank, rule="random", start=form, **shared),
    }
    true_ability = np.asarray(abilities(answers, bank, "eap", population).ability)
    true_score = share_right(*counts(answers, axis=1))
    errors: list[pd.DataFrame] = []
    needed: list[dict[str, Any]] = []
    for name, test in tests.items():
        on_method(name)
        found = replay(test, of_form if name == "form" else answers, key, at_a_time=at_a_time)
        of_errors, of_needed = summed_up(name, course(test, found, at_a_time), true_ability, true_score)
        errors.append(of_errors)
        needed += of_needed
    return Study(pd.concat(errors, ignore_index=True), pd.DataFrame(needed))


def summed_up(
    method: str,
    known: Mapping[str, Float[np.ndarray, "J _"]],
    true_ability: Float[np.ndarray, " J"],
    true_score: Float[np.ndarray, " J"],
) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """The rows of one test in the tables of a `Study`.

    Args:
        method: its name.
        known: from `course`.
        true_ability: (J,) that estimates are compared with.
        true_score: (J,) likewise.
    """
    most = known["ability"].shape[1] - 1
    errors = pd.DataFrame(
        {
            "method": method,
            "num_items": np.arange(1, most + 1),
            "ability_mae": _mae(known["ability"], true_ability),
            "score_mae": _mae(known["score"], true_score),
            "ability_se": known["ability_se"][:, 1:].mean(axis=0),
        }
    )
    needed: list[dict[str, Any]] = []
    for target in TARGETS:
        first = until(known["ability_se"], target)
        row = {"target": target, "median": np.median(first), "reached": np.isfinite(first).mean()}
        needed.append({"method": method} | row)
    return errors, needed


def course(
    test: AdaptiveTest | ScaledAdaptiveTest, tests: Replayed, at_a_time: int = 1
) -> dict[str, Float[np.ndarray, "J _"]]:
    """What was known after 0, 1, … K items, (J, K + 1), by the names of columns; the last value goes on after the end.

    Within a batch of items that are asked together, this is what was known before it.
    """
    size = tests.items.shape[1]
    places = np.minimum(np.arange(size + 1)[None, :], np.asarray(tests.number)[:, None])
    ended = places == np.asarray(tests.number)[:, None]
    places = np.where(ended, places, places // at_a_time * at_a_time)
    start = before(test)
    return {
        name: np.take_along_axis(np.concatenate([np.full((len(values), 1), start[name]), values], axis=1), places, 1)
        for name, values in trace(tests).items()
    }


def until(standard_error: Float[np.ndarray, "J _"], target: float) -> Float[np.ndarray, " J"]:
    """After how many items a standard error is at most a target for the first time; infinite for never.

    Args:
        standard_error: (J, K + 1) after 0, 1, … K items.
        target: of it, in logits.
    """
    met = standard_error <= target
    return np.where(met.any(axis=1), met.argmax(axis=1), np.inf)


def _mae(found: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """After 1, … K items."""
    return np.abs(found[:, 1:] - truth[:, None]).mean(axis=0)
