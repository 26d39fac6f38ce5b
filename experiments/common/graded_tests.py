"""Adaptive tests of items with grades, counts or shares, over the responses of a file."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from experiments.common import response_files
from experiments.common.item_tables import with_parameters
from experiments.reports import adaptive_test as report
from irtjax.evaluation.replay_tables import answers_table, exposure_table, subjects_table
from irtjax.evaluation.scaled_adaptive import ScaledAdaptiveTest, in_grades
from irtjax.evaluation.scaled_replay import as_written, recorded, replay_recorded
from irtjax.evaluation.scaled_study import compare_scaled, locations
from irtjax.fits.result import Fit
from irtjax.populations.normal import Population
from irtjax.responses.scaled import ScaledResponses
from irtjax.responses.values import whole
from irtjax.scoring.abilities import item_table
from irtjax.scoring.family_items import KnownItems, matched


def matching(path: str, source: str, known: KnownItems) -> tuple[ScaledResponses, KnownItems]:
    """The responses of a file to items of known parameters, and these items; how many others there are is said.

    Args:
        path: of the file.
        source: what messages call the items.
        known: the items.

    Raises:
        InputError: the file has none of the items, or a response that an item cannot have.
    """
    given = response_files.read_given(path)
    ids = np.array(given.item_ids, str)
    chosen = with_parameters(ids, known.item_ids, path, source)
    responses, own = matched(given.of_known(ids[chosen]), known, trials=response_files.number_of_trials())
    return whole(responses), own


def replay(
    source: Fit | pd.DataFrame,
    test: ScaledAdaptiveTest,
    given: ScaledResponses,
    population: Population,
    seed: int,
    say: Callable[[str], None],
) -> tuple[report.Found, pd.DataFrame]:
    """What a test comes to over recorded answers, beside others; and each answer.

    Args:
        source: that the items are of, with their difficulties.
        test: of the items that were answered.
        given: the answers, in the categories of the items.
        population: of abilities.
        seed: of random items.
        say: called with a few words on what is being done.
    """
    say("adaptive, until it ends")
    ids, most = test.known.item_ids, test.stop.max_items
    tests = replay_recorded(test, recorded(test, given), seed)
    study = compare_scaled(test, given, population, seed, lambda name: say(f"{report.NAMES[name]}, {most} items"))
    found = report.Found(
        responses=given,
        difficulty=locations(item_table(source), ids),
        subjects=subjects_table(test, tests, given.subject_ids),
        exposure=exposure_table(tests, ids),
        study=study,
        grades=in_grades(test.known),
    )
    return found, answers_table(tests, given.subject_ids, ids, as_written(test, tests))
