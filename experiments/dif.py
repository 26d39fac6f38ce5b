r"""Do items measure the same for groups of subjects? Differential item functioning.

Writes report.md, dif.csv (one row per item), dif.png and, where items are flagged, dif_curves.png.

  python -m experiments.dif --responses=docs/guide/responses.csv --groups=docs/guide/people.csv:course \
      --output_dir=runs/dif

On 2 CPU cores, half a minute; minutes for 10,000 items and 1,000 subjects, and one with --method=logistic.
"""

from absl import flags

import irtjax
from experiments.common import app, formulas, response_files, shared_flags
from experiments.common.path_flags import define_output_dir, define_path
from experiments.common.table_columns import column_of
from experiments.reports import dif as report
from irtjax.groups.dif import METHODS, TESTS, matched

_RESPONSES = define_path("responses", "file or folder of responses", required=True)
_GROUPS = flags.DEFINE_string(
    "groups", None, "TABLE.csv:COLUMN has the group of each subject; ids are in its first column", required=True
)
_METHOD = flags.DEFINE_enum("method", "score", METHODS, "tests of fits, strata of equal scores, or regression on these")
_TEST = flags.DEFINE_enum("test", "both", TESTS, "of uniform DIF, of nonuniform, or of both at once")
_PURIFY = flags.DEFINE_bool("purify", True, "leave flagged items out of the scores, until the others stay")
_ANCHORS = flags.DEFINE_list("anchors", None, "items that are the same for all groups; default: chosen by --purify")
_MODEL = flags.DEFINE_string("model", "auto", "of the fits; auto: the 2PL, of grades the graded model")
_GUESSING = flags.DEFINE_float("guessing", None, "lower asymptote of the fits of lord and raju, such as 0.25")
_LEVEL = flags.DEFINE_float("level", 0.05, "false-discovery rate of the report; level of the tests that purify")
_METRIC = shared_flags.define_metric()
_FILTER = shared_flags.define_filter()
_COLUMNS = shared_flags.define_columns()
_OUTPUT_DIR = define_output_dir()
shared_flags.define_guard()


def main() -> None:
    """Reads, tests, writes."""
    app.keep_inputs(["responses"], _OUTPUT_DIR.value, report.FILES)
    if _METHOD.value == "mantel_haenszel":
        app.without_effect(["test"], f"--method={_METHOD.value}")
    if _ANCHORS.value is not None:
        app.without_effect(["purify"], "--anchors")
    response_files.require_effect([_RESPONSES.value])
    groups = column_of(_GROUPS.value)
    choice = {"columns": _COLUMNS.value, "metric": _METRIC.value, "filter": _FILTER.value}
    choice = {name: value for name, value in choice.items() if value}
    with formulas.guarded_results(_OUTPUT_DIR.value) as directory, app.naming(_RESPONSES.value):
        data = matched(_RESPONSES.value, groups, **choice)
        table = irtjax.dif(
            _RESPONSES.value,
            groups,
            _METHOD.value,
            test=_TEST.value,
            purify=_PURIFY.value,
            anchors=_ANCHORS.value,
            level=_LEVEL.value,
            model=_MODEL.value,
            guessing=_GUESSING.value,
            **choice,
        )
        given = {
            name: flags.FLAGS[name].value
            for name in ("responses", "groups", "method", "test", "purify", "anchors", "model", "guessing", "level")
        }
        lines = report.write(table, data, given, directory)
    print("\n".join(lines))
    print(f"Done: {_OUTPUT_DIR.value}/report.md, dif.csv, dif.png")


if __name__ == "__main__":
    app.run(main)
