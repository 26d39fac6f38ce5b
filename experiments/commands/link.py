"""Two tests on one scale, by the flags of `experiments.link`."""

import pandas as pd
from absl import flags

import irtjax
from experiments.common import app, formulas
from experiments.reports import document
from irtjax.errors import InputError
from irtjax.groups.linking import Link
from irtjax.scoring.abilities import item_table
from irtjax.storage.files import write_csv

FLAGS = flags.FLAGS
FILES = ("items.csv", "common_items.csv", "equated_scores.csv", "link.json")


def run() -> None:
    """Reads, links, writes."""
    app.keep_inputs(["base", "other"], FLAGS.output_dir, FILES)
    if FLAGS.method.startswith("mean"):
        app.without_effect(["symmetric", "weights"], f"--method={FLAGS.method}")
    with formulas.guarded_results(FLAGS.output_dir) as directory:
        with app.naming(f"{FLAGS.base} and {FLAGS.other}"):
            found = irtjax.link(
                FLAGS.base,
                FLAGS.other,
                FLAGS.method,
                symmetric=FLAGS.symmetric,
                weights=FLAGS.weights,
                robust=FLAGS.robust,
            )
        write_csv(found.items(item_table(FLAGS.other)).reset_index(), directory / "items.csv")
        write_csv(found.common.reset_index(), directory / "common_items.csv")
        write_csv(_equated(found), directory / "equated_scores.csv")
        record = {
            "method": found.method,
            "slope": found.slope,
            "intercept": found.intercept,
            "slope_se": None if pd.isna(found.slope_se) else found.slope_se,
            "intercept_se": None if pd.isna(found.intercept_se) else found.intercept_se,
            "common_items": len(found.common),
            "used": int(found.common["used"].sum()),
            "drifting": found.common.index[found.common["drifting"]].tolist(),
            "versions": irtjax.versions(),
        }
        document.write_json(record, directory / "link.json")
    print(found)
    print(f"Done: {FLAGS.output_dir}/{', '.join(FILES)}")


def _equated(found: Link) -> pd.DataFrame:
    """Both ways of equating side by side; empty, with the reason told, where there are no sums of scores."""
    try:
        true, observed = (
            irtjax.equate(FLAGS.base, FLAGS.other, found, method) for method in ("true_score", "observed_score")
        )
    except InputError as error:
        print(f"note: no table of equated scores: {error}")
        return pd.DataFrame(columns=["score", "ability", "true_score", "observed_score"])
    table = true.rename(columns={"equated": "true_score"})
    return table.assign(observed_score=observed["equated"])
