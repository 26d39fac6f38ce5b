"""Computerised adaptive tests: one entry for right and wrong answers, and for grades, counts and shares."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.evaluation.adaptive_options import Band, Progressive, Randomesque, Stop, checked, first_items, grouped
from irtjax.evaluation.bank_tables import tables_of
from irtjax.evaluation.binary_adaptive import AdaptiveTest
from irtjax.evaluation.choice import Design
from irtjax.evaluation.item_bank import graded_bank, item_bank
from irtjax.evaluation.rules import READ_RIGHT
from irtjax.evaluation.scaled_adaptive import scaled_adaptive_test
from irtjax.kernels.ability_nodes import LineNodes, even_nodes, line_nodes
from irtjax.populations.normal import Population


@checks_types
def adaptive_test(
    bank: Any,
    *,
    rule: str = "information",
    ability: str = "eap",
    population: Population | None = None,
    stop: Stop,
    exposure: Randomesque | Progressive | None = None,
    groups: Sequence[Any] | np.ndarray | None = None,
    quotas: Mapping[Any, float] | None = None,
    start: Band | Sequence[int] | np.ndarray | None = None,
    num_nodes: int | None = None,
    trials: Any = None,
) -> Any:
    """A computerised adaptive test.

    Items with grades, counts or shares are those of `irtjax.evaluation.scaled_adaptive`: by the rules "information" and
    "random", scored by the posterior mean, without exposure control, groups and starts.

    Args:
        bank: parameters of I items, 1PL to 4PL, or in D > 1 dimensions. Their dtype is that of the test; float32 does.
            Or what `irtjax.score` takes: a `Fit`, the folder of a saved one, a table like `items.csv`, or the path of
            one, in whose order the positions of items are.
        rule: how the next item is chosen (`irtjax.evaluation.rules`): "information", the largest Fisher information at
            the ability; "variance", the smallest expected posterior variance of the ability; "score", that of the
            predicted score, the mean probability of a right answer over the bank; "kl" and "kl_posterior",
            Kullback-Leibler information in an interval around the ability, or weighted by the posterior; "determinant",
            D-optimality, the rule for D > 1; or "random".
        ability: "eap", the posterior mean; "map", its mode; or "ml", maximum likelihood. This is replaced by the
            posterior mean as long as there is no maximum within 6 standard deviations of the population, as while all
            answers are alike; with D > 1, by the posterior mode as long as it is not finite.
        population: normal distribution of ability, the same for each dimension; by default that of a fit, else the
            standard normal.
        stop: when a test ends.
        exposure: None, the best item; or `Randomesque`, `Progressive`.
        groups: (I,) of each item, such as its content; None for one group.
        quotas: share of each group in a test; a group without one is not asked. By default their shares of the bank.
            The group that is most behind its quota is asked next (Kingsbury and Zara 1989).
        start: None, the first item is chosen by the rule at the population's mean; a `Band` of difficulties; or
            positions of items that are asked first, in this order.
        num_nodes: Q, equally spaced; by default nodes for every posterior that the bank can lead to in `max_items`
            answers (`irtjax.kernels.ability_nodes.line_nodes`). Tables take 8 or 12 bytes for each item and node.
        trials: of a response to each item that is a count; a number, (I,), or (J, I) of many responses with 0 where
            there is none.

    Returns:
        An `AdaptiveTest`; of items with grades, counts or shares a `ScaledAdaptiveTest`.

    Raises:
        InputError: items that cannot be read, an empty bank, an item whose parameters are not finite, an unknown
            rule or method, one that is not for so many dimensions, more items than the bank has, quotas that do not sum
            to 1 or are of unknown groups.
    """
    graded = graded_bank(bank, population)
    if graded is not None:
        settings = {"exposure": exposure, "groups": groups, "quotas": quotas, "start": start, "num_nodes": num_nodes}
        given = [name for name, value in settings.items() if value is not None]
        if ability != "eap" or given:
            wrong = given[0] if given else f"ability={ability}"
            raise InputError(f"`{wrong}`: tests of items with grades, counts or shares do not have it: leave it out")
        return scaled_adaptive_test(*graded, rule=rule, stop=stop, trials=trials)
    if trials is not None:
        raise InputError("`trials` are of counts, and these items are right or wrong: leave it out")
    _, bank, population = item_bank(bank, population)
    bank = checked(bank, rule, ability, population, stop, exposure, num_nodes)
    which, shares = grouped(len(bank.intercept), groups, quotas, stop.max_items)
    first, in_band = first_items(bank, start, stop.max_items)
    dtype, mean, sd = jnp.asarray(bank.slope).dtype, float(population.mean), float(population.sd)
    line = LineNodes(np.zeros(0), np.zeros(0), np.zeros(0))
    if bank.slope.shape[1] == 1:
        line = even_nodes(num_nodes, mean, sd) if num_nodes else line_nodes(bank, stop.max_items, mean, sd)
    return AdaptiveTest(
        tables=tables_of(bank, line, sd, rule in READ_RIGHT),
        log_prior=jnp.asarray(line.log_weights, dtype),
        population=Population(*(jnp.asarray(x, dtype) for x in population)),
        design=Design(
            jnp.asarray(which, jnp.int32),
            jnp.asarray(shares, dtype),
            jnp.asarray(first, jnp.int32),
            jnp.asarray(in_band),
        ),
        rule=rule,
        method=ability,
        stop=stop,
        exposure=exposure,
    )
