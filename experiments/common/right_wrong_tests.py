"""Adaptive tests of right and wrong answers, over the responses of a file."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pandas as pd

from experiments.common import response_files
from experiments.common.item_tables import with_parameters
from experiments.reports import adaptive_test as report
from irtjax.errors import InputError
from irtjax.evaluation.adaptive_study import compare_tests
from irtjax.evaluation.binary_adaptive import AdaptiveTest
from irtjax.evaluation.item_bank import ItemBank
from irtjax.evaluation.replay import replay as replay_answers
from irtjax.evaluation.replay_tables import answers_table, exposure_table, subjects_table
from irtjax.fits.result import Fit
from irtjax.responses.matrix import MISSING, ResponseMatrix
from irtjax.scoring.abilities import item_table


def matching(path: str, source: str, items: Fit | pd.DataFrame) -> ResponseMatrix:
    """The responses of a file to items of known parameters; how many others there are, on either side, is said.

    Args:
        path: of the file.
        source: what messages call the items.
        items: a fit, or their table.

    Raises:
        InputError: there are none.
    """
    responses = response_files.read(path)
    chosen = with_parameters(responses.item_ids, item_table(items).index.to_numpy(str), path, source)
    if not chosen.all():
        responses = responses.choose_items(chosen)
    if (responses.values == MISSING).all():
        raise InputError(f"no answer to an item of {source}")
    return responses


def replay(
    test: AdaptiveTest,
    bank: ItemBank,
    responses: ResponseMatrix,
    options: dict[str, Any],
    key: jax.Array,
    at_a_time: int,
    say: Callable[[str], None],
) -> tuple[report.Found, pd.DataFrame]:
    """What a test comes to over recorded answers, beside others; and each answer.

    Args:
        test: of the bank.
        bank: the items that were answered.
        responses: the answers.
        options: of the test, but for when it ends; the others have them too.
        key: of random items.
        at_a_time: items that are asked together.
        say: called with a few words on what is being done.
    """
    say("adaptive, until it ends")
    tests, max_items = replay_answers(test, responses.values, key, at_a_time=at_a_time), test.stop.max_items
    study = compare_tests(
        bank.parameters,
        responses.values,
        key,
        max_items=max_items,
        at_a_time=at_a_time,
        on_method=lambda name: say(f"{report.NAMES[name]}, {max_items} items"),
        **options,
    )
    slope, intercept = (np.asarray(x) for x in (bank.parameters.slope[:, 0], bank.parameters.intercept))
    found = report.Found(
        responses=responses,
        difficulty=np.divide(-intercept, slope, out=np.full(slope.shape, np.nan), where=slope != 0),
        subjects=subjects_table(test, tests, responses.subject_ids),
        exposure=exposure_table(tests, responses.item_ids),
        study=study,
        at_a_time=at_a_time,
    )
    return found, answers_table(tests, responses.subject_ids, responses.item_ids)
