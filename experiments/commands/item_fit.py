"""Fit of items, subjects, pairs of items and the whole test, by the flags of `experiments.item_fit`."""

from typing import Any

from absl import flags

import irtjax
from experiments.common import app, formulas, response_files
from experiments.reports import item_fit as report
from irtjax import InputError
from irtjax.fits.fit_files import holds_fit
from irtjax.fits.reading import AUTO, read
from irtjax.responses.values import on_scales

FLAGS = flags.FLAGS


def run() -> None:
    """Reads, computes, writes."""
    app.keep_inputs(["fit", "responses"], FLAGS.output_dir, report.FILES)
    if not holds_fit(FLAGS.fit):
        raise InputError(f"--fit={FLAGS.fit}: holds no fit (fit.npz): expected the folder that fit_irt wrote")
    if holds_fit(FLAGS.output_dir):
        raise InputError(f"--output_dir={FLAGS.output_dir} holds a fit: choose another folder")
    if FLAGS.responses is None:
        app.without_effect(response_files.NAMES, "the responses that were fitted")
    else:
        response_files.require_effect([FLAGS.responses])
    fit = irtjax.load_fit(FLAGS.fit)
    responses = None if FLAGS.responses is None else _read(FLAGS.responses, fit)
    with formulas.guarded_results(FLAGS.output_dir) as directory:
        with app.naming(f"{FLAGS.fit}" + (f", for {FLAGS.responses}" if FLAGS.responses else "")):
            found = report.Found(
                items=irtjax.item_fit(fit, responses),
                subjects=irtjax.person_fit(fit, responses),
                pairs=irtjax.local_dependence(fit, responses),
                overall=_overall(fit, responses),
            )
        given = {"fit": FLAGS.fit, "responses": FLAGS.responses or "", "pairs": FLAGS.pairs}
        lines = report.write(found, fit, {**given, **response_files.given()}, FLAGS.pairs, directory)
    print("\n".join(lines))
    print(f"Done: {FLAGS.output_dir}/report.md, item_fit.csv, person_fit.csv, local_dependence.csv, overall_fit.json")


def _read(path: str, fit: irtjax.Fit) -> Any:
    """Responses of the kind that the fit is of."""
    if not on_scales(fit.responses):
        return response_files.read(path)
    models = set(fit.item_models)
    model = models.pop() if len(models) == 1 else AUTO
    return read(path, model, transpose=FLAGS.transpose, columns=FLAGS.columns)[0]


def _overall(fit: irtjax.Fit, responses: Any) -> Any:
    """Fit of the whole test, or why there is none."""
    try:
        return irtjax.overall_fit(fit, responses)
    except InputError as error:
        return str(error)
