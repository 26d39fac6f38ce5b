"""Tests of differential item functioning, by the flags of `experiments.dif`."""

from absl import flags

import irtjax
from experiments.common import app, formulas, response_files
from experiments.common.table_columns import column_of
from experiments.reports import dif as report
from irtjax.groups.dif import matched

FLAGS = flags.FLAGS


def run() -> None:
    """Reads, tests, writes."""
    app.keep_inputs(["responses"], FLAGS.output_dir, report.FILES)
    if FLAGS.method == "mantel_haenszel":
        app.without_effect(["test"], f"--method={FLAGS.method}")
    if FLAGS.anchors is not None:
        app.without_effect(["purify"], "--anchors")
    response_files.require_effect([FLAGS.responses])
    groups = column_of(FLAGS.groups)
    choice = {"columns": FLAGS.columns, "metric": FLAGS.metric, "filter": FLAGS.filter}
    choice = {name: value for name, value in choice.items() if value}
    with formulas.guarded_results(FLAGS.output_dir) as directory, app.naming(FLAGS.responses):
        data = matched(FLAGS.responses, groups, **choice)
        table = irtjax.dif(
            FLAGS.responses,
            groups,
            FLAGS.method,
            test=FLAGS.test,
            purify=FLAGS.purify,
            anchors=FLAGS.anchors,
            level=FLAGS.level,
            model=FLAGS.model,
            guessing=FLAGS.guessing,
            **choice,
        )
        given = {
            name: FLAGS[name].value
            for name in ("responses", "groups", "method", "test", "purify", "anchors", "model", "guessing", "level")
        }
        lines = report.write(table, data, given, directory)
    print("\n".join(lines))
    print(f"Done: {FLAGS.output_dir}/report.md, dif.csv, dif.png")
