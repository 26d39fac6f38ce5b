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

from absl import flags

from experiments.common import app, shared_flags
from experiments.common.path_flags import define_path
from irtjax.evaluation.choices import MAX_ITEMS, METHODS, RULES

define_path("items", "items.csv with known parameters, or the folder of a saved fit", required=True)
define_path("responses", "file or folder of scored responses, whose answers are asked for one by one")
flags.DEFINE_boolean("interactive", False, "ask on standard output, read answers from standard input")
define_path("texts", "CSV of item_id and text, for --interactive: questions come with it")
define_path("output_dir", "folder for the results; made where missing. May be left out in a dialogue")
shared_flags.define_guard()
flags.DEFINE_enum(
    "rule",
    "variance",
    [rule for rule in RULES if rule != "determinant"],
    "by which the next item is chosen; of grades, counts and shares information (default) or random",
)
flags.DEFINE_enum("ability", "eap", METHODS, "posterior mean, posterior mode, or maximum likelihood")
flags.DEFINE_integer(
    "max_items", None, f"largest number of items (default: {MAX_ITEMS}, or all if there are fewer)", lower_bound=1
)
flags.DEFINE_integer("min_items", 1, "smallest number of items", lower_bound=1)
flags.DEFINE_float("standard_error", None, "of the ability, in logits, at which a test ends")
flags.DEFINE_float("score_error", None, "of the predicted score, a share or a grade, at which a test ends")
flags.DEFINE_float("change", None, "of the ability by the last answers, in logits, at which a test ends")
flags.DEFINE_integer(
    "randomesque", None, "ask a random one of so many best items, so that the best are asked less", lower_bound=2
)
flags.DEFINE_boolean("progressive", False, "ask random items at first, the best at the end")
flags.DEFINE_integer("at_a_time", 1, "items that are asked together", lower_bound=1)
define_path("categories", "CSV of item_id and category; tests keep the shares of the categories")
define_path("quotas", "CSV of category and share in a test (default: shares of the bank)")
flags.DEFINE_float("start_low", None, "least difficulty of the first item, a random one, in logits")
flags.DEFINE_float("start_high", None, "largest difficulty of the first item, in logits")
flags.DEFINE_integer("seed", 0, "of random items", lower_bound=0, upper_bound=2**31 - 1)
flags.DEFINE_float("population_mean", 0.0, "mean of the population; that of the fit, if --items is its folder")
flags.DEFINE_float("population_sd", 1.0, "standard deviation of that population", lower_bound=1e-6)
shared_flags.define_metric()
shared_flags.define_filter()
shared_flags.define_columns()
shared_flags.define_trials()
shared_flags.define_transpose()


def main() -> None:
    """Reads, tests, compares, and writes; or holds a dialogue."""
    from experiments.commands import adaptive_test  # here, as `--help` and wrong flags need not wait for JAX

    adaptive_test.run()


if __name__ == "__main__":
    app.run(main)
