"""An audit of a benchmark, by the flags of `experiments.audit`."""

import sys

import pandas as pd
from absl import flags

from experiments.common import app, formulas, response_files
from experiments.common.progress import steps
from experiments.common.table_columns import column_of
from experiments.reports import audit as report
from irtjax.auditing.audit import audit
from irtjax.errors import InputError
from irtjax.storage.tables import read_table

FLAGS = flags.FLAGS


def run(names: tuple[str, ...]) -> None:
    """Reads, examines, writes.

    Args:
        names: what reasons are called in flags, in their order.

    Raises:
        InputError: flags that do not go together, or files that cannot be read.
    """
    app.keep_inputs(["responses", "choices"], FLAGS.output_dir, report.FILES)
    if FLAGS.responses is None and FLAGS.choices is None:
        raise InputError("--responses or --choices: expected one of them")
    for one, other in (("choices", "key"), ("dates", "cutoffs")):
        if (FLAGS[one].value is None) != (FLAGS[other].value is None):
            raise InputError(f"--{one} and --{other} are given together")
    fatal = set(app.choose("fail_on", FLAGS.fail_on, names)) if FLAGS.fail_on else set()
    if FLAGS.responses is None:
        app.without_effect(response_files.NAMES, "--choices")
    else:
        response_files.require_effect([FLAGS.responses])
    columns = {name: _column(name) for name in ("key", "dates", "cutoffs")}
    choice = {"columns": FLAGS.columns, "metric": FLAGS.metric, "filter": FLAGS.filter}
    source = FLAGS.responses or FLAGS.choices
    with formulas.guarded_results(FLAGS.output_dir) as directory:
        with app.naming(source), steps("audit") as on_step:
            found = audit(
                FLAGS.responses,
                choices=_choices(),
                **columns,
                level=FLAGS.level,
                seed=FLAGS.seed,
                on_step=on_step,
                model=FLAGS.model,
                **{name: value for name, value in choice.items() if value},
            )
        given = {name: FLAGS[name].value for name in ("responses", "choices", *columns, "model", "level", "seed")}
        lines = report.write(found, given, directory)
    print("\n".join(lines))
    print(f"Done: {FLAGS.output_dir}/report.md, audit.csv, ranking.csv")
    counted = dict(zip(names, found.reasons.values(), strict=True))
    wrong = [f"{name} ({counted[name]:,})" for name in names if name in fatal and counted[name]]
    if wrong:
        print(f"error: --fail_on: items with {', '.join(wrong)}", file=sys.stderr)
        sys.exit(3)


def _column(flag: str) -> pd.Series | None:
    given = FLAGS[flag].value
    return None if given is None else column_of(given, flag, text=True)


def _choices() -> pd.DataFrame | None:
    """The table of choices, by subject."""
    if FLAGS.choices is None:
        return None
    table = read_table(FLAGS.choices, 0, text=True)
    return table.set_index(table.columns[0])
