r"""Which few items predict how a model does on a whole benchmark? Small forms, and scores predicted from them.

  python -m experiments.small_benchmark --responses=arc.npz --scores=arc_scores.csv --output_dir=runs/arc

Calibrates the items on four fifths of the models, chooses forms of --num_items items in five ways, predicts the scores
of the other models in seven, and does so with five splits. Writes report.md, errors.csv (one row per method, size and
split), errors.png, predicted.png, and forms/ (one CSV per size, of the items to ask, chosen with all models).
--new_responses has the answers of further models to some of the items: predictions.csv has their scores with intervals.
Of grades, counts and shares (--model=graded and others) the score is the mean grade, or the mean share in points.

On 2 CPU cores, 10 minutes for 2,700 models and 317 items; half a minute with --forms=variance --predictors=calibrated
--seeds=1.
"""

from absl import flags

from experiments.common import app, shared_flags
from experiments.common.path_flags import define_output_dir, define_path, define_paths
from irtjax.evaluation.choices import HELD_OUT, ONE_DIMENSION, PREDICTORS, SIZES, WAYS

define_paths("responses", "scored responses of models: files or folders, joined by model and item", required=True)
define_path(
    "scores", "CSV of subject_id and score on the whole benchmark, in points (default: the items are the whole)"
)
shared_flags.define_metric()
shared_flags.define_filter()
shared_flags.define_columns()
shared_flags.define_transpose()
shared_flags.define_grades()
shared_flags.define_repeats()
flags.DEFINE_list(
    "num_items", [], f"sizes of forms (default: those of {', '.join(map(str, SIZES))} that are less than all items)"
)
flags.DEFINE_list("calibration", ["all"], "numbers of calibration models, to compare; `all` is all")
flags.DEFINE_enum("model", "2pl", ONE_DIMENSION, "of the item response functions")
flags.DEFINE_list("forms", list(WAYS), "ways to choose items")
flags.DEFINE_list("predictors", list(PREDICTORS), "ways to predict")
define_path("categories", "CSV of item_id and category; every form keeps the shares of the categories")
flags.DEFINE_float("held_out", HELD_OUT, "share of the models to predict", lower_bound=0.01, upper_bound=0.9)
flags.DEFINE_integer("seeds", 5, "number of splits", lower_bound=1, upper_bound=1000)
define_path("new_responses", "answers of new models to some of the items, whose scores are predicted")
define_output_dir()
shared_flags.define_guard()


def main() -> None:
    """Reads, compares on held-out models, chooses forms with all models, predicts new ones, and writes the report."""
    from experiments.commands import small_benchmark  # here, as `--help` and wrong flags need not wait for JAX

    small_benchmark.run()


if __name__ == "__main__":
    app.run(main)
