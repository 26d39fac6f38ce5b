r"""Two tests on one scale by their common items: linking constants, items of the other test, tables of equated scores.

Writes items.csv (of the other test, on the scale of the base), common_items.csv, equated_scores.csv, link.json.

  python -m experiments.link --base=runs/fit --other=runs/other --output_dir=runs/link
  python -m experiments.link --base=items.csv --other=other_items.csv --method=haebara --output_dir=runs/link

Tests are folders of fits, as experiments.fit_irt writes them, or tables like items.csv. Fits give standard errors.
On 2 CPU cores, some seconds.
"""

import pandas as pd
from absl import flags

import irtjax
from experiments.common import app, formulas, shared_flags
from experiments.common.path_flags import define_output_dir, define_path
from experiments.reports import document
from irtjax.errors import InputError
from irtjax.groups.linking import METHODS, Link
from irtjax.scoring.abilities import item_table
from irtjax.storage.files import write_csv

FILES = ("items.csv", "common_items.csv", "equated_scores.csv", "link.json")
_BASE = define_path("base", "folder of a fit, or items.csv, whose scale is kept", required=True)
_OTHER = define_path("other", "the same of the test that is put on it", required=True)
_METHOD = flags.DEFINE_enum("method", "stocking_lord", METHODS, "by characteristic curves, or by moments")
_SYMMETRIC = flags.DEFINE_bool("symmetric", True, "compare curves on both scales (haebara, stocking_lord)")
_WEIGHTS = flags.DEFINE_enum("weights", "normal", ["normal", "uniform"], "of abilities (haebara, stocking_lord)")
_ROBUST = flags.DEFINE_bool("robust", False, "leave out common items that drift, the worst first")
_OUTPUT_DIR = define_output_dir()
shared_flags.define_guard()


def main() -> None:
    """Reads, links, writes."""
    app.keep_inputs(["base", "other"], _OUTPUT_DIR.value, FILES)
    if _METHOD.value.startswith("mean"):
        app.without_effect(["symmetric", "weights"], f"--method={_METHOD.value}")
    with formulas.guarded_results(_OUTPUT_DIR.value) as directory:
        with app.naming(f"{_BASE.value} and {_OTHER.value}"):
            found = irtjax.link(
                _BASE.value,
                _OTHER.value,
                _METHOD.value,
                symmetric=_SYMMETRIC.value,
                weights=_WEIGHTS.value,
                robust=_ROBUST.value,
            )
        write_csv(found.items(item_table(_OTHER.value)).reset_index(), directory / "items.csv")
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
    print(f"Done: {_OUTPUT_DIR.value}/{', '.join(FILES)}")


def _equated(found: Link) -> pd.DataFrame:
    """Both ways of equating side by side; empty, with the reason told, where there are no sums of scores."""
    try:
        true, observed = (
            irtjax.equate(_BASE.value, _OTHER.value, found, method) for method in ("true_score", "observed_score")
        )
    except InputError as error:
        print(f"note: no table of equated scores: {error}")
        return pd.DataFrame(columns=["score", "ability", "true_score", "observed_score"])
    table = true.rename(columns={"equated": "true_score"})
    return table.assign(observed_score=observed["equated"])


if __name__ == "__main__":
    app.run(main)
