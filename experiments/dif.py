r"""Do items measure the same for groups of subjects? Differential item functioning.

Writes report.md, dif.csv (one row per item), dif.png and, where items are flagged, dif_curves.png.

  python -m experiments.dif --responses=docs/guide/responses.csv --groups=docs/guide/people.csv:course \
      --output_dir=runs/dif

On 2 CPU cores, half a minute; minutes for 10,000 items and 1,000 subjects, and one with --method=logistic.
"""

from absl import flags

from experiments.common import app, shared_flags
from experiments.common.path_flags import define_output_dir, define_path
from irtjax.groups.choices import DIF_METHODS, TESTS

define_path("responses", "file or folder of responses", required=True)
flags.DEFINE_string(
    "groups", None, "TABLE.csv:COLUMN has the group of each subject; ids are in its first column", required=True
)
flags.DEFINE_enum("method", "score", DIF_METHODS, "tests of fits, strata of equal scores, or regression on these")
flags.DEFINE_enum("test", "both", TESTS, "of uniform DIF, of nonuniform, or of both at once")
flags.DEFINE_bool("purify", True, "leave flagged items out of the scores, until the others stay")
flags.DEFINE_list("anchors", None, "items that are the same for all groups; default: chosen by --purify")
flags.DEFINE_string("model", "auto", "of the fits; auto: the 2PL, of grades the graded model")
flags.DEFINE_float("guessing", None, "lower asymptote of the fits of lord and raju, such as 0.25")
flags.DEFINE_float("level", 0.05, "false-discovery rate of the report; level of the tests that purify")
shared_flags.define_metric()
shared_flags.define_filter()
shared_flags.define_columns()
define_output_dir()
shared_flags.define_guard()


def main() -> None:
    """Reads, tests, writes."""
    from experiments.commands import dif  # here, as `--help` and wrong flags need not wait for JAX

    dif.run()


if __name__ == "__main__":
    app.run(main)
