"""Item response models, compared on held-out answers, by the flags of `experiments.compare_models`."""

from pathlib import Path
from typing import Any

from absl import flags

import irtjax
from experiments.common import app, formulas, response_files
from experiments.common.progress import counting_bar
from experiments.reports import models
from irtjax.choices import ESTIMATORS, OF_RIGHT_WRONG
from irtjax.comparison.candidates import candidates
from irtjax.comparison.choices import WAYS
from irtjax.comparison.cross_validation import require_folds
from irtjax.errors import InputError
from irtjax.responses.matrix import require_estimable

FLAGS = flags.FLAGS


def whole_numbers(words: list[str]) -> list[int]:
    """The numbers that --dims gives.

    Raises:
        InputError: one is not a whole number from 1 up.
    """
    for word in words:
        if not word.isdecimal() or int(word) < 1:
            raise InputError(f"--dims={','.join(words)}: expected whole numbers from 1 up, such as 1,2")
    return [int(word) for word in words]


def run() -> None:
    """Reads responses, compares the models and writes the report."""
    chosen: dict[str, Any] = {
        "models": app.choose("models", FLAGS.models, OF_RIGHT_WRONG),
        "dims": whole_numbers(FLAGS.dims),
        "estimators": app.choose("estimators", FLAGS.estimators, ESTIMATORS),
    }
    by = app.choose("by", FLAGS.by, WAYS)
    number = len(candidates(*chosen.values()))
    app.keep_inputs(["responses"], FLAGS.output_dir, models.FILES)
    if Path(FLAGS.output_dir, "fit.json").exists():
        raise InputError(f"--output_dir={FLAGS.output_dir} holds a fit (fit.json): choose another folder")
    response_files.require_effect([FLAGS.responses])
    responses = response_files.read(FLAGS.responses)
    with app.naming(FLAGS.responses):
        require_estimable(responses)
        require_folds(responses, FLAGS.folds)
    given = {"responses": FLAGS.responses, **{name: ",".join(map(str, words)) for name, words in chosen.items()}}
    given |= {"by": ",".join(by), "folds": FLAGS.folds, "seed": FLAGS.seed}
    given |= response_files.given()
    with formulas.guarded_results(FLAGS.output_dir) as directory:
        with app.naming(FLAGS.responses), counting_bar("fits", number * (1 + len(by) * FLAGS.folds)) as on_progress:
            comparison = irtjax.compare(
                responses, **chosen, by=by, folds=FLAGS.folds, seed=FLAGS.seed, on_progress=on_progress
            )
        advice = models.write(comparison, responses, given, directory)
    print(f"{advice}\nDone: {FLAGS.output_dir}/report.html, report.md, comparison.csv and calibration.png", flush=True)
