"""Adaptive tests over recorded answers, or in a dialogue, by the flags of `experiments.adaptive_test`."""

import contextlib
import json
import sys
from typing import Any

import jax
import numpy as np
import pandas as pd
from absl import flags

import irtjax
from experiments.common import app, formulas, graded_tests, response_files, right_wrong_tests
from experiments.common.progress import steps
from experiments.reports import adaptive_test as report
from irtjax.errors import InputError
from irtjax.evaluation.adaptive import adaptive_test
from irtjax.evaluation.adaptive_options import Band, Progressive, Randomesque, Stop
from irtjax.evaluation.binary_adaptive import AdaptiveTest
from irtjax.evaluation.choices import MAX_ITEMS
from irtjax.evaluation.dialogue import END_OF_INPUT, hold
from irtjax.evaluation.item_bank import ItemBank, column_of, graded_bank, item_bank, quotas_of
from irtjax.evaluation.replay_tables import answers_table, subjects_table
from irtjax.evaluation.scaled_adaptive import RULES as SCALED_RULES
from irtjax.evaluation.scaled_adaptive import ScaledAdaptiveTest, scaled_adaptive_test
from irtjax.evaluation.scaled_replay import as_written
from irtjax.evaluation.scaled_trials import recorded_trials
from irtjax.fits.fit_files import holds_fit
from irtjax.fits.result import Fit
from irtjax.populations.normal import Population
from irtjax.scoring.family_items import KnownItems
from irtjax.storage.files import write_csv

FLAGS = flags.FLAGS
ONE_SUBJECT = "interactive"  # id of who answers in a dialogue

CONDITIONS = ("standard_error", "score_error", "change")
IDLE = {
    "--rule=random": ["randomesque", "progressive"],
    "--progressive": ["randomesque"],
    "no --categories": ["quotas"],
    "--interactive": ["responses", "at_a_time", *response_files.NAMES],
    "no --interactive": ["texts"],
}
RIGHT_WRONG_ONLY = ("randomesque", "progressive", "at_a_time", "categories", "quotas", "start_low", "start_high")
INPUTS = ("items", "responses", "categories", "quotas", "texts")


def run() -> None:
    """Reads, tests, compares, and writes; or holds a dialogue."""
    require_sound_flags()
    if FLAGS.output_dir is not None:
        app.keep_inputs(INPUTS, FLAGS.output_dir, report.FILES)
        if holds_fit(FLAGS.output_dir):
            raise InputError(f"--output_dir={FLAGS.output_dir} holds a fit and its subjects.csv: choose another")
    source = irtjax.load_fit(FLAGS.items) if holds_fit(FLAGS.items) else irtjax.read_items(FLAGS.items)
    with app.naming(FLAGS.items):
        graded = graded_bank(source, population())
    if graded is not None:
        require_known_of_grades()
    if FLAGS.interactive:
        talk(source, graded)
    elif graded is not None:
        replay_grades(source, graded)
    else:
        replay_file(source)


def require_sound_flags() -> None:
    """Refuses what is out of range, missing, or without effect.

    Raises:
        InputError: names the flag.
    """
    for name in CONDITIONS:
        if FLAGS[name].present and not FLAGS[name].value > 0:  # type: ignore[operator]
            raise InputError(f"--{name}={FLAGS[name].value}: expected a number above 0")
    if not any(FLAGS[name].present for name in CONDITIONS):
        app.without_effect(["min_items"], f"no --{', --'.join(CONDITIONS)}")
    app.refuse_idle(IDLE)
    band = start()
    if band is not None and band.low > band.high:
        raise InputError(f"--start_low={FLAGS.start_low} is above --start_high={FLAGS.start_high}")
    if not FLAGS.interactive:
        for what in ("responses", "output_dir"):
            if FLAGS[what].value is None:
                raise InputError(f"--{what} is missing: {FLAGS[what].help}; or give --interactive")
        response_files.require_effect([FLAGS.responses])
        return
    if FLAGS.rule != "random" and exposure() is None and band is None:
        app.without_effect(["seed"], "--interactive and nothing random")


def require_known_of_grades() -> None:
    """Refuses flags that tests of grades, counts and shares do not know.

    Raises:
        InputError: names the flag.
    """
    what = "items with grades, counts or shares"
    app.without_effect(RIGHT_WRONG_ONLY, what)
    if FLAGS["rule"].present and FLAGS.rule not in SCALED_RULES:
        raise InputError(f"--rule={FLAGS.rule}: {what} are asked by one of {', '.join(SCALED_RULES)}")
    if FLAGS.ability != "eap":
        raise InputError(f"--ability={FLAGS.ability}: tests of {what} have eap alone")


def exposure() -> Randomesque | Progressive | None:
    """How far tests stray from the best item."""
    if FLAGS.randomesque is not None:
        return Randomesque(FLAGS.randomesque)
    return Progressive() if FLAGS.progressive else None


def start() -> Band | None:
    """Difficulties of the first item."""
    if FLAGS.start_low is None and FLAGS.start_high is None:
        return None
    low, high = FLAGS.start_low, FLAGS.start_high
    return Band(-np.inf if low is None else low, np.inf if high is None else high)


def population() -> Population | None:
    """The population that flags describe; None for the usual one where they do not."""
    given = any(FLAGS[name].present for name in ("population_mean", "population_sd"))
    return Population(FLAGS.population_mean, FLAGS.population_sd) if given else None


def bank_of(source: Fit | pd.DataFrame, ids: np.ndarray | None = None) -> ItemBank:
    """The items of the tests, all of them or those of the ids.

    Raises:
        InputError: there are none, or parameters are missing, or in several dimensions.
    """
    with app.naming(FLAGS.items):
        bank = item_bank(source, population(), ids)
        dimensions = bank.parameters.slope.shape[1]
        if dimensions > 1:
            raise InputError(
                f"items in {dimensions} dimensions, expected one: for more, call irtjax.evaluation.adaptive"
            )
        if not len(bank.ids):
            raise InputError("has no items")
    return bank


def options_of(bank: ItemBank) -> dict[str, Any]:
    """Arguments of the adaptive test, but for when it ends.

    Raises:
        InputError: a file lacks what it should have.
    """
    groups = None if FLAGS.categories is None else column_of(FLAGS.categories, "category", bank.ids)
    return {
        "rule": FLAGS.rule,
        "ability": FLAGS.ability,
        "population": bank.population,
        "exposure": exposure(),
        "groups": groups,
        "quotas": None if FLAGS.quotas is None else quotas_of(FLAGS.quotas),
        "start": start(),
    }


def longest(bank: ItemBank, options: dict[str, Any]) -> int:
    """The largest number of items: --max_items, or the usual one as far as there are so many that may be asked."""
    if FLAGS.max_items is not None:
        return FLAGS.max_items
    quotas, groups = options["quotas"], options["groups"]
    possible = len(bank.ids) if quotas is None else sum(quotas.get(group, 0) > 0 for group in groups)
    return max(min(MAX_ITEMS, possible), 1)


def stop(max_items: int) -> Stop:
    """When a test ends."""
    conditions = {name: FLAGS[name].value for name in CONDITIONS}
    return Stop(max_items, min_items=FLAGS.min_items, **conditions)


def replay_file(source: Fit | pd.DataFrame) -> None:
    """Tests over recorded answers, and the comparison."""
    with app.naming(FLAGS.responses):
        responses = right_wrong_tests.matching(FLAGS.responses, FLAGS.items, source)
    bank = bank_of(source, responses.item_ids)
    options = options_of(bank)
    max_items, at_a_time = longest(bank, options), FLAGS.at_a_time
    test = adaptive_test(bank.parameters, stop=stop(max_items), **options)
    if at_a_time > max_items:
        raise InputError(f"--at_a_time={at_a_time}: expected at most --max_items={max_items}")
    with steps("tests") as say:
        key = jax.random.key(FLAGS.seed)
        found, answers = right_wrong_tests.replay(test, bank, responses, options, key, at_a_time, say)
    write(found, answers, {"max_items": max_items})


def replay_grades(source: Fit | pd.DataFrame, graded: tuple[KnownItems, Population]) -> None:
    """The same of items with grades, counts or shares."""
    with app.naming(FLAGS.responses):
        given, known = graded_tests.matching(FLAGS.responses, FLAGS.items, graded[0])
    test = graded_test(known, graded[1], recorded_trials(given))
    with steps("tests") as say:
        found, answers = graded_tests.replay(source, test, given, graded[1], FLAGS.seed, say)
    write(found, answers, {"max_items": test.stop.max_items, "rule": test.rule})


def graded_test(known: KnownItems, population: Population, trials: Any) -> ScaledAdaptiveTest:
    """The test of items with grades, counts or shares, by the flags."""
    rule = FLAGS.rule if FLAGS["rule"].present else SCALED_RULES[0]
    max_items = FLAGS.max_items or min(MAX_ITEMS, len(known.item_ids))
    with app.naming(FLAGS.items):
        return scaled_adaptive_test(known, population, rule=rule, stop=stop(max_items), trials=trials)


def write(found: report.Found, answers: pd.DataFrame, used: dict[str, Any]) -> None:
    """Writes what was found, and says it."""
    given: dict[str, Any] = {name: FLAGS[name].value for name in flags_of_run()}
    with formulas.guarded_results(FLAGS.output_dir) as directory:
        write_csv(answers, directory / "answers.csv")
        verdict = report.write(found, given | used | response_files.given(), directory)
    print(f"{verdict}\nDone: {FLAGS.output_dir}/report.html, report.md, subjects.csv, answers.csv and exposure.csv")


def flags_of_run() -> list[str]:
    """Names of the flags that a report lists."""
    names = ["items", "responses", "rule", "ability", "max_items", "min_items", *CONDITIONS, "randomesque"]
    names += ["progressive"] if FLAGS.progressive else []
    names += ["at_a_time", "categories", "quotas", "start_low", "start_high", "seed"]
    return names + [name for name in ("population_mean", "population_sd") if FLAGS[name].present]


def talk(source: Fit | pd.DataFrame, graded: tuple[KnownItems, Population] | None) -> None:
    """A dialogue, and what it came to."""
    test: AdaptiveTest | ScaledAdaptiveTest
    key: Any
    if graded is not None:
        test, ids, key = graded_test(*graded, response_files.number_of_trials()), graded[0].item_ids, FLAGS.seed
    else:
        bank = bank_of(source)
        options, ids = options_of(bank), bank.ids
        test = adaptive_test(bank.parameters, stop=stop(longest(bank, options)), **options)
        key = jax.random.split(jax.random.key(FLAGS.seed), 1)[0]  # as of the only subject of a file
    texts = None
    if FLAGS.texts is not None:
        texts = dict(zip(ids.tolist(), column_of(FLAGS.texts, "text", ids).tolist(), strict=True))
    with contextlib.suppress(AttributeError, OSError):  # another kind of stream, or one that was read from
        sys.stdin.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    folder = contextlib.nullcontext(None) if FLAGS.output_dir is None else formulas.guarded_results(FLAGS.output_dir)
    with folder as directory:
        tests, end = hold(
            test,
            ids,
            key,
            iter(sys.stdin.readline, ""),
            lambda line: print(line, flush=True),
            lambda line: print(line, file=sys.stderr, flush=True),
            texts,
        )
        if directory is not None:
            one = np.array([ONE_SUBJECT])
            subjects = subjects_table(test, tests, one)
            write_csv(subjects.replace({"reason": {"": END_OF_INPUT}}), directory / "subjects.csv")
            written = as_written(test, tests) if isinstance(test, ScaledAdaptiveTest) else None
            write_csv(answers_table(tests, one, ids, written), directory / "answers.csv")
    print(json.dumps(end), flush=True)
