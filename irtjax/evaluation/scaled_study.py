"""What an adaptive test of items with grades, counts or shares gains, beside random items and a fixed form."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.evaluation.adaptive_options import Stop
from irtjax.evaluation.adaptive_study import Study, course, summed_up
from irtjax.evaluation.scaled_adaptive import ScaledAdaptiveTest
from irtjax.evaluation.scaled_replay import Recorded, recorded, replay_recorded
from irtjax.populations.normal import Population
from irtjax.responses.scaled import ScaledResponses
from irtjax.scoring.family_scores import family_abilities
from irtjax.types import Float, Int


def scaled_form(test: ScaledAdaptiveTest, number: int) -> Int[np.ndarray, " K"]:
    """Positions of the items of the most information, averaged over the population, best first."""
    return np.argsort(-(np.exp(test.log_prior) @ test.information), kind="stable")[:number]


def compare_scaled(
    test: ScaledAdaptiveTest,
    given: ScaledResponses,
    population: Population,
    seed: int = 0,
    on_method: Callable[[str], None] = lambda _: None,
) -> Study:
    """Tests of `test.stop.max_items` by information, of random items, and by a form, all scored alike.

    As `irtjax.evaluation.adaptive_study.compare_tests`; scores are in the unit of the test.

    Args:
        test: whose items and largest number of items count.
        given: responses in the categories of the bank (`irtjax.scoring.family_items.matched`).
        population: of abilities.
        seed: of random items.
        on_method: called with the name of each test before it begins.

    Raises:
        InputError: there is no answer.
    """
    given = given.with_responses()
    if not given.num_subjects:
        raise InputError("there is no recorded answer: nothing to compare")
    most = test.stop.max_items
    answers, form = recorded(test, given), scaled_form(test, most)
    places = pd.Index(test.known.item_ids.astype(str)).get_indexer(pd.Index(given.item_ids.astype(str)))
    true_ability = np.asarray(family_abilities(given, test.known.take(places), "eap", population).ability)
    true_score = np.nanmean(answers.worth, axis=1)
    rest = np.setdiff1d(np.arange(test.num_items), form)
    order, of_form = np.concatenate([form, rest]), np.array(answers.values)
    of_form[:, rest] = -1.0
    runs: dict[str, tuple[str, Recorded, Any]] = {
        "adaptive": ("information", answers, None),
        "random": ("random", answers, None),
        "form": ("random", answers._replace(values=of_form), order),
    }
    errors: list[pd.DataFrame] = []
    needed: list[dict[str, Any]] = []
    for name, (rule, of_test, by) in runs.items():
        on_method(name)
        one = dataclasses.replace(test, rule=rule, stop=Stop(most))
        known = course(one, replay_recorded(one, of_test, seed, by))
        of_errors, of_needed = summed_up(name, known, true_ability, true_score)
        errors.append(of_errors)
        needed += of_needed
    return Study(pd.concat(errors, ignore_index=True), pd.DataFrame(needed))


def locations(table: pd.DataFrame, item_ids: np.ndarray) -> Float[np.ndarray, " I"]:
    """The difficulty of each item, of grades the mean of its thresholds; NaN where the table does not tell."""
    if "difficulty" in table:
        return pd.to_numeric(table["difficulty"], errors="coerce").reindex(item_ids).to_numpy(float)
    thresholds = table.filter(regex=r"^threshold_\d+$").reindex(item_ids)
    return thresholds.mean(axis=1).to_numpy(float)
