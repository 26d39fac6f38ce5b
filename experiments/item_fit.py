r"""Does the model fit? Fit of items, subjects, pairs of items and the whole test, for responses of every kind.

Reads the folder of a fit, as experiments.fit_irt writes it, and the responses that it is of, or others to its items;
writes report.md, item_fit.csv, person_fit.csv, local_dependence.csv and overall_fit.json.

  python -m experiments.fit_irt --responses=docs/guide/grades.csv --model=auto --output_dir=runs/grades
  python -m experiments.item_fit --fit=runs/grades --output_dir=runs/item_fit
  python -m experiments.item_fit --fit=runs/grades --responses=new.csv --output_dir=runs/item_fit_new

Without --responses they are those that were fitted. From others no parameter was estimated: degrees of freedom follow.

On 2 CPU cores, half a minute.
"""

from typing import Any

from absl import flags

import irtjax
from experiments.common import app, formulas, response_files, shared_flags
from experiments.common.path_flags import define_output_dir, define_path
from experiments.reports import item_fit as report
from irtjax import InputError
from irtjax.fits.fit_files import holds_fit
from irtjax.fits.reading import AUTO, read
from irtjax.responses.values import on_scales

_FIT = define_path("fit", "folder of a saved fit, or its fit.npz", required=True)
_RESPONSES = define_path("responses", "file or folder of responses to its items; by default those that were fitted")
_METRIC = shared_flags.define_metric()
_FILTER = shared_flags.define_filter()
_COLUMNS = shared_flags.define_columns()
_TRANSPOSE = shared_flags.define_transpose()
_PAIRS = flags.DEFINE_integer("pairs", 1000, "rows of local_dependence.csv, the most dependent first", lower_bound=1)
_OUTPUT_DIR = define_output_dir()
shared_flags.define_guard()


def main() -> None:
    """Reads, computes, writes."""
    app.keep_inputs(["fit", "responses"], _OUTPUT_DIR.value, report.FILES)
    if not holds_fit(_FIT.value):
        raise InputError(f"--fit={_FIT.value}: holds no fit (fit.npz): expected the folder that fit_irt wrote")
    if holds_fit(_OUTPUT_DIR.value):
        raise InputError(f"--output_dir={_OUTPUT_DIR.value} holds a fit: choose another folder")
    if _RESPONSES.value is None:
        app.without_effect(response_files.NAMES, "the responses that were fitted")
    else:
        response_files.require_effect([_RESPONSES.value])
    fit = irtjax.load_fit(_FIT.value)
    responses = None if _RESPONSES.value is None else _read(_RESPONSES.value, fit)
    with formulas.guarded_results(_OUTPUT_DIR.value) as directory:
        with app.naming(f"{_FIT.value}" + (f", for {_RESPONSES.value}" if _RESPONSES.value else "")):
            found = report.Found(
                items=irtjax.item_fit(fit, responses),
                subjects=irtjax.person_fit(fit, responses),
                pairs=irtjax.local_dependence(fit, responses),
                overall=_overall(fit, responses),
            )
        given = {"fit": _FIT.value, "responses": _RESPONSES.value or "", "pairs": _PAIRS.value}
        lines = report.write(found, fit, {**given, **response_files.given()}, _PAIRS.value, directory)
    print("\n".join(lines))
    print(f"Done: {_OUTPUT_DIR.value}/report.md, item_fit.csv, person_fit.csv, local_dependence.csv, overall_fit.json")


def _read(path: str, fit: irtjax.Fit) -> Any:
    """Responses of the kind that the fit is of."""
    if not on_scales(fit.responses):
        return response_files.read(path)
    models = set(fit.item_models)
    model = models.pop() if len(models) == 1 else AUTO
    return read(path, model, transpose=_TRANSPOSE.value, columns=_COLUMNS.value)[0]


def _overall(fit: irtjax.Fit, responses: Any) -> Any:
    """Fit of the whole test, or why there is none."""
    try:
        return irtjax.overall_fit(fit, responses)
    except InputError as error:
        return str(error)


if __name__ == "__main__":
    app.run(main)
