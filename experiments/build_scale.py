r"""Builds a test scale from scored responses or grades: which items measure one ability well, and how precisely?

Tests dimensionality and guessing, removes items that do not discriminate, depend on one another or do not fit, then
reports overall fit, information and a short form. Each decision is written down.

  python -m experiments.build_scale --responses=responses.csv --output_dir=runs/scale
  python -m experiments.build_scale --responses=responses.csv --items=items.csv --group_column=gold_label \
    --output_dir=runs/scale

The second builds a scale for each group of items. Grades, such as answers from 1 to 5, are read as they are. Both end
with report.md and its pictures. Durations and expected numbers: docs/results/scale.md.
"""

from absl import flags

from experiments.common import app, help, shared_flags
from experiments.common.path_flags import define_output_dir, define_path
from irtjax.choices import AUTO
from irtjax.scale.choices import GRADED

define_path("responses", "file or folder of scored responses", required=True)
shared_flags.define_metric()
shared_flags.define_filter()
shared_flags.define_columns()
shared_flags.define_transpose()
shared_flags.define_grades()
flags.DEFINE_enum(
    "model",
    AUTO,
    [AUTO, *GRADED],
    "of grades; auto takes the graded model, and of right and wrong answers the 2PL or 3PL",
)
flags.DEFINE_list(
    "reverse", [], "ids of items that are worded the other way round, or a file with one id per line: scored reversed"
)
define_output_dir()
flags.DEFINE_enum(
    "missing",
    "refuse",
    ["refuse", "wrong", "drop", "by_design"],
    "what missing answers are: refused, scored as wrong, dropped with their subjects, or not asked for, by a design in "
    "which each subject was given some blocks of items",
)
define_path("items", "CSV of items, with their ids in the first column")
flags.DEFINE_string("group_column", "group", "column of --items: a scale is built for each group in it")
define_path("answers", "CSV of the labels that people gave, to report their agreement")
flags.DEFINE_string("gold_column", "gold_label", "column of --items with the gold labels, for --answers")
flags.DEFINE_list("expert_drop", [], "ids of items removed by reading, or a file with one id per line")
flags.DEFINE_float(
    "level",
    0.05,
    "level of the tests of guessing, dependence and fit, after Holm's adjustment",
    lower_bound=0,
    upper_bound=1,
)
flags.DEFINE_float("communality", 0.15, "least share of variance explained", lower_bound=0, upper_bound=1)
flags.DEFINE_float(
    "eigenvalue_ratio",
    3.0,
    "least ratio of the first eigenvalue to the second, if both are above those of independent items; 0 for any",
    lower_bound=0,
)
flags.DEFINE_bool("factors", True, "compare one factor with two")
flags.DEFINE_integer(
    "choices",
    None,
    "answers that subjects choose from, such as 4: items are tested for guessing; otherwise all get 2PL curves",
    lower_bound=2,
)
shared_flags.define_guessing("a column of --items, ")
flags.DEFINE_bool("triplets", False, "remove items of dependent triplets too, as those of pairs")
flags.DEFINE_integer("short_form", 10, "number of items in the short form", lower_bound=1)
flags.DEFINE_list("ability_range", ["-2", "2"], "abilities that the short form is chosen for")
flags.DEFINE_float(
    "least_information", 4.0, "information that is enough: the report says where the scale has more", lower_bound=0
)
define_path("fresh", "responses of other subjects, on which the scale is confirmed")
define_path(
    "subjects",
    "CSV of subjects, with their ids in the first column: group and covariates, to compare scores and abilities",
)
flags.DEFINE_string("baseline", None, "group of --subjects that all others are compared with")
shared_flags.define_guard()
flags.DEFINE_integer("seed", 0, "seed of the parallel analysis", lower_bound=0, upper_bound=2**31 - 1)


def main() -> None:
    """Reads, builds a scale for each group of items, writes."""
    from experiments.commands import build_scale  # here, as `--help` and wrong flags need not wait for JAX

    build_scale.run(help.own_flags(main))


if __name__ == "__main__":
    app.run(main)
