r"""How able is a subject, from the most informative items? Adaptive tests over recorded answers, or in a dialogue.

  python -m experiments.adaptive_test --items=runs/fit --responses=new.csv --output_dir=runs/adaptive
  python -m experiments.adaptive_test --items=runs/fit --interactive --standard_error=0.3

The first asks each subject of a file item after item, as if it were present; its report compares random items and a
fixed form, on the same answers. Writes subjects.csv, answers.csv, exposure.csv, comparison.csv, report.md and pictures.

Items are right or wrong, or those of a fit of grades, counts or shares, which are asked by their information.

The second asks whoever answers its lines: questions are lines of JSON on standard output, answers lines on standard
input, {"answer": 1}, or just 1, 0 or skip. With --output_dir it writes subjects.csv and answers.csv.

On 2 CPU cores, 20 seconds for 1,000 subjects and 1,000 items; a dialogue starts in a few seconds.
"""

import contextlib
import json
import sys
from typing import Any

import jax
import numpy as np
import pandas as pd
from absl import flags

import irtjax
from experiments.common import app, formulas, graded_tests, response_files, right_wrong_tests, shared_flags
from experiments.common.path_flags import define_path
from experiments.common.progress import steps
from experiments.reports import adaptive_test as report
from irtjax.errors import InputError
from irtjax.evaluation.adaptive import adaptive_test
from irtjax.evaluation.adaptive_options import METHODS, Band, Progressive, Randomesque, Stop
from irtjax.evaluation.binary_adaptive import AdaptiveTest
from irtjax.evaluation.dialogue import END_OF_INPUT, hold
from irtjax.evaluation.item_bank import ItemBank, column_of, graded_bank, item_bank, quotas_of
from irtjax.evaluation.replay_tables import answers_table, subjects_table
from irtjax.evaluation.rules import RULES
from irtjax.evaluation.scaled_adaptive import RULES as SCALED_RULES
from irtjax.evaluation.scaled_adaptive import ScaledAdaptiveTest, scaled_adaptive_test
from irtjax.evaluation.scaled_replay import as_written
from irtjax.evaluation.scaled_trials import recorded_trials
from irtjax.fits.fit_files import holds_fit
from irtjax.fits.result import Fit
from irtjax.populations.normal import Population
from irtjax.scoring.family_items import KnownItems
from irtjax.storage.files import write_csv

MAX_ITEMS = 50  # unless another number is asked for
ONE_SUBJECT = "interactive"  # id of who answers in a dialogue

_ITEMS = define_path("items", "items.csv with known parameters, or the folder of a saved fit", required=True)
_RESPONSES = define_path("responses", "file or folder of scored responses, whose answers are asked for one by one")
_INTERACTIVE = flags.DEFINE_boolean("interactive", False, "ask on standard output, read answers from standard input")
_TEXTS = define_path("texts", "CSV of item_id and text, for --interactive: questions come with it")
_OUTPUT_DIR = define_path("output_dir", "folder for the results; made where missing. May be left out in a dialogue")
shared_flags.define_guard()
_RULE = flags.DEFINE_enum(
    "rule",
    "variance",
    [rule for rule in RULES if rule != "determinant"],
    "by which the next item is chosen; of grades, counts and shares information (default) or random",
)
_ABILITY = flags.DEFINE_enum("ability", "eap", METHODS, "posterior mean, posterior mode, or maximum likelihood")
_MAX_ITEMS = flags.DEFINE_integer(
    "max_items", None, f"largest number of items (default: {MAX_ITEMS}, or all if there are fewer)", lower_bound=1
)
_MIN_ITEMS = flags.DEFINE_integer("min_items", 1, "smallest number of items", lower_bound=1)
_STANDARD_ERROR = flags.DEFINE_float("standard_error", None, "of the ability, in logits, at which a test ends")
_SCORE_ERROR = flags.DEFINE_float(
    "score_error", None, "of the predicted score, a share or a grade, at which a test ends"
)
_CHANGE = flags.DEFINE_float("change", None, "of the ability by the last answers, in logits, at which a test ends")
_RANDOMESQUE = flags.DEFINE_integer(
    "randomesque", None, "ask a random one of so many best items, so that the best are asked less", lower_bound=2
)
_PROGRESSIVE = flags.DEFINE_boolean("progressive", False, "ask random items at first, the best at the end")
_AT_A_TIME = flags.DEFINE_integer("at_a_time", 1, "items that are asked together", lower_bound=1)
_CATEGORIES = define_path("categories", "CSV of item_id and category; tests keep the shares of the categories")
_QUOTAS = define_path("quotas", "CSV of category and share in a test (default: shares of the bank)")
_START_LOW = flags.DEFINE_float("start_low", None, "least difficulty of the first item, a random one, in logits")
_START_HIGH = flags.DEFINE_float("start_high", None, "largest difficulty of the first item, in logits")
_SEED = flags.DEFINE_integer("seed", 0, "of random items", lower_bound=0, upper_bound=2**31 - 1)
_MEAN = flags.DEFINE_float("population_mean", 0.0, "mean of the population; that of the fit, if --items is its folder")
_SD = flags.DEFINE_float("population_sd", 1.0, "standard deviation of that population", lower_bound=1e-6)
_METRIC = shared_flags.define_metric()
_FILTER = shared_flags.define_filter()
_COLUMNS = shared_flags.define_columns()
_TRIALS = shared_flags.define_trials()
_TRANSPOSE = shared_flags.define_transpose()

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


def main() -> None:
    """Reads, tests, compares, and writes; or holds a dialogue."""
    require_sound_flags()
    if _OUTPUT_DIR.value is not None:
        app.keep_inputs(INPUTS, _OUTPUT_DIR.value, report.FILES)
        if holds_fit(_OUTPUT_DIR.value):
            raise InputError(f"--output_dir={_OUTPUT_DIR.value} holds a fit and its subjects.csv: choose another")
    source = irtjax.load_fit(_ITEMS.value) if holds_fit(_ITEMS.value) else irtjax.read_items(_ITEMS.value)
    with app.naming(_ITEMS.value):
        graded = graded_bank(source, population())
    if graded is not None:
        require_known_of_grades()
    if _INTERACTIVE.value:
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
        if flags.FLAGS[name].present and not flags.FLAGS[name].value > 0:  # type: ignore[operator]
            raise InputError(f"--{name}={flags.FLAGS[name].value}: expected a number above 0")
    if not any(flags.FLAGS[name].present for name in CONDITIONS):
        app.without_effect(["min_items"], f"no --{', --'.join(CONDITIONS)}")
    app.refuse_idle(IDLE)
    band = start()
    if band is not None and band.low > band.high:
        raise InputError(f"--start_low={_START_LOW.value} is above --start_high={_START_HIGH.value}")
    if not _INTERACTIVE.value:
        for flag, what in ((_RESPONSES, "responses"), (_OUTPUT_DIR, "output_dir")):
            if flag.value is None:
                raise InputError(f"--{what} is missing: {flags.FLAGS[what].help}; or give --interactive")
        response_files.require_effect([_RESPONSES.value])
        return
    if _RULE.value != "random" and exposure() is None and band is None:
        app.without_effect(["seed"], "--interactive and nothing random")


def require_known_of_grades() -> None:
    """Refuses flags that tests of grades, counts and shares do not know.

    Raises:
        InputError: names the flag.
    """
    what = "items with grades, counts or shares"
    app.without_effect(RIGHT_WRONG_ONLY, what)
    if flags.FLAGS["rule"].present and _RULE.value not in SCALED_RULES:
        raise InputError(f"--rule={_RULE.value}: {what} are asked by one of {', '.join(SCALED_RULES)}")
    if _ABILITY.value != "eap":
        raise InputError(f"--ability={_ABILITY.value}: tests of {what} have eap alone")


def exposure() -> Randomesque | Progressive | None:
    """How far tests stray from the best item."""
    if _RANDOMESQUE.value is not None:
        return Randomesque(_RANDOMESQUE.value)
    return Progressive() if _PROGRESSIVE.value else None


def start() -> Band | None:
    """Difficulties of the first item."""
    if _START_LOW.value is None and _START_HIGH.value is None:
        return None
    low, high = _START_LOW.value, _START_HIGH.value
    return Band(-np.inf if low is None else low, np.inf if high is None else high)


def population() -> Population | None:
    """The population that flags describe; None for the usual one where they do not."""
    given = any(flags.FLAGS[name].present for name in ("population_mean", "population_sd"))
    return Population(_MEAN.value, _SD.value) if given else None


def bank_of(source: Fit | pd.DataFrame, ids: np.ndarray | None = None) -> ItemBank:
    """The items of the tests, all of them or those of the ids.

    Raises:
        InputError: there are none, or parameters are missing, or in several dimensions.
    """
    with app.naming(_ITEMS.value):
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
    groups = None if _CATEGORIES.value is None else column_of(_CATEGORIES.value, "category", bank.ids)
    return {
        "rule": _RULE.value,
        "ability": _ABILITY.value,
        "population": bank.population,
        "exposure": exposure(),
        "groups": groups,
        "quotas": None if _QUOTAS.value is None else quotas_of(_QUOTAS.value),
        "start": start(),
    }


def longest(bank: ItemBank, options: dict[str, Any]) -> int:
    """The largest number of items: --max_items, or the usual one as far as there are so many that may be asked."""
    if _MAX_ITEMS.value is not None:
        return _MAX_ITEMS.value
    quotas, groups = options["quotas"], options["groups"]
    possible = len(bank.ids) if quotas is None else sum(quotas.get(group, 0) > 0 for group in groups)
    return max(min(MAX_ITEMS, possible), 1)


def stop(max_items: int) -> Stop:
    """When a test ends."""
    conditions = {name: flags.FLAGS[name].value for name in CONDITIONS}
    return Stop(max_items, min_items=_MIN_ITEMS.value, **conditions)


def replay_file(source: Fit | pd.DataFrame) -> None:
    """Tests over recorded answers, and the comparison."""
    with app.naming(_RESPONSES.value):
        responses = right_wrong_tests.matching(_RESPONSES.value, _ITEMS.value, source)
    bank = bank_of(source, responses.item_ids)
    options = options_of(bank)
    max_items, at_a_time = longest(bank, options), _AT_A_TIME.value
    test = adaptive_test(bank.parameters, stop=stop(max_items), **options)
    if at_a_time > max_items:
        raise InputError(f"--at_a_time={at_a_time}: expected at most --max_items={max_items}")
    with steps("tests") as say:
        key = jax.random.key(_SEED.value)
        found, answers = right_wrong_tests.replay(test, bank, responses, options, key, at_a_time, say)
    write(found, answers, {"max_items": max_items})


def replay_grades(source: Fit | pd.DataFrame, graded: tuple[KnownItems, Population]) -> None:
    """The same of items with grades, counts or shares."""
    with app.naming(_RESPONSES.value):
        given, known = graded_tests.matching(_RESPONSES.value, _ITEMS.value, graded[0])
    test = graded_test(known, graded[1], recorded_trials(given))
    with steps("tests") as say:
        found, answers = graded_tests.replay(source, test, given, graded[1], _SEED.value, say)
    write(found, answers, {"max_items": test.stop.max_items, "rule": test.rule})


def graded_test(known: KnownItems, population: Population, trials: Any) -> ScaledAdaptiveTest:
    """The test of items with grades, counts or shares, by the flags."""
    rule = _RULE.value if flags.FLAGS["rule"].present else SCALED_RULES[0]
    max_items = _MAX_ITEMS.value or min(MAX_ITEMS, len(known.item_ids))
    with app.naming(_ITEMS.value):
        return scaled_adaptive_test(known, population, rule=rule, stop=stop(max_items), trials=trials)


def write(found: report.Found, answers: pd.DataFrame, used: dict[str, Any]) -> None:
    """Writes what was found, and says it."""
    given: dict[str, Any] = {name: flags.FLAGS[name].value for name in flags_of_run()}
    with formulas.guarded_results(_OUTPUT_DIR.value) as directory:
        write_csv(answers, directory / "answers.csv")
        verdict = report.write(found, given | used | response_files.given(), directory)
    print(f"{verdict}\nDone: {_OUTPUT_DIR.value}/report.html, report.md, subjects.csv, answers.csv and exposure.csv")


def flags_of_run() -> list[str]:
    """Names of the flags that a report lists."""
    names = ["items", "responses", "rule", "ability", "max_items", "min_items", *CONDITIONS, "randomesque"]
    names += ["progressive"] if _PROGRESSIVE.value else []
    names += ["at_a_time", "categories", "quotas", "start_low", "start_high", "seed"]
    return names + [name for name in ("population_mean", "population_sd") if flags.FLAGS[name].present]


def talk(source: Fit | pd.DataFrame, graded: tuple[KnownItems, Population] | None) -> None:
    """A dialogue, and what it came to."""
    test: AdaptiveTest | ScaledAdaptiveTest
    key: Any
    if graded is not None:
        test, ids, key = graded_test(*graded, response_files.number_of_trials()), graded[0].item_ids, _SEED.value
    else:
        bank = bank_of(source)
        options, ids = options_of(bank), bank.ids
        test = adaptive_test(bank.parameters, stop=stop(longest(bank, options)), **options)
        key = jax.random.split(jax.random.key(_SEED.value), 1)[0]  # as of the only subject of a file
    texts = None
    if _TEXTS.value is not None:
        texts = dict(zip(ids.tolist(), column_of(_TEXTS.value, "text", ids).tolist(), strict=True))
    with contextlib.suppress(AttributeError, OSError):  # another kind of stream, or one that was read from
        sys.stdin.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    folder = contextlib.nullcontext(None) if _OUTPUT_DIR.value is None else formulas.guarded_results(_OUTPUT_DIR.value)
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


if __name__ == "__main__":
    app.run(main)
