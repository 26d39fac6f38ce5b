"""A fit to files of responses, by the flags of `experiments.fit_irt`."""

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
from absl import flags

import irtjax
from experiments.common import app, guessing, peers, response_files, tensorboard
from experiments.common.progress import fit_bar
from experiments.common.sources import names_of
from experiments.common.table_columns import column_of, columns_of
from irtjax import processes
from irtjax.errors import InputError, NotScoredError, printable
from irtjax.estimation.priors import NormalPrior
from irtjax.fits import category_text, fit_text
from irtjax.fits.fit_files import COVARIATES, FILES, GROUPS, JUDGES
from irtjax.fits.reading import AUTO, Models, is_scaled, read, read_judged
from irtjax.item_models.listing import MODELS as OTHERS
from irtjax.populations.groups import FittedGroups
from irtjax.populations.latent_regression import FittedLatentRegression
from irtjax.responses.formats import names_models
from irtjax.responses.joining import concatenate_given, concatenate_subjects
from irtjax.responses.judged import Judged
from irtjax.responses.matrix import require_estimable
from irtjax.responses.scaled import ScaledResponses
from irtjax.responses.sparse import SparseResponses
from irtjax.responses.values import Responses, on_scales
from irtjax.svi.choices import MODELS as BY_SVI
from irtjax.svi.choices import PRIORS

FLAGS = flags.FLAGS


def slope_prior(words: list[str]) -> NormalPrior | str | None:
    """The prior that the words of --slope_prior stand for.

    Raises:
        InputError: they are not auto, none, or a mean and a standard deviation.
    """
    if words in (["auto"], ["none"]):
        return "auto" if words == ["auto"] else None
    try:
        mean, sd = map(float, words)
    except ValueError:
        mean, sd = 0.0, 0.0
    if not (sd > 0 and math.isfinite(mean) and math.isfinite(sd)):
        raise InputError(f"--slope_prior={','.join(words)}: expected auto, none, or mean and sd such as 1,2")
    return NormalPrior(mean, sd)


RANKING = "ranking.png"
MOST_RANKED = 60  # subjects, all of whom the picture names
ONLY_MML = [
    "dims",
    "groups",
    "covariates",
    "integration",
    "anchors",
    "guessing",
    "extremes",
    "slope_prior",
    "asymptote_priors",
]
ONLY_SCORED = ["guessing", "extremes", "slope_prior", "asymptote_priors"]
ONLY_SVI = ["start", "seed", "batch_subjects", "batch_items", "batch_answers"]


def run() -> None:
    """Reads responses, fits the model and writes the results.

    Raises:
        InputError: flags that do not go together, or responses that cannot be read or fitted.
    """
    app.without_effect(ONLY_SVI if FLAGS.estimator == "mml" else ONLY_MML, f"--estimator={FLAGS.estimator}")
    others = is_scaled(FLAGS.model) or FLAGS.facet is not None
    if FLAGS.facet is not None:
        without = ["estimator", "dims", "groups", "covariates", "anchors", "transpose", "repeats", "sparse"]
        app.without_effect([*ONLY_SCORED, *ONLY_SVI, "integration", *without], "--facet")
    elif others:
        app.without_effect(ONLY_SCORED, f"--model={FLAGS.model}")
    if not others and FLAGS.model != AUTO:
        idle = response_files.of_grades_alone()
        app.without_effect(idle, f"--model={FLAGS.model}, which is of right and wrong answers")
    if FLAGS.model not in ("3pl", "4pl"):
        app.without_effect(["asymptote_priors"], f"--model={FLAGS.model}")
    if FLAGS.model == "rasch":
        app.without_effect(["slope_prior"], "--model=rasch, whose slopes are 1 (--model=1pl has one)")
    if FLAGS.estimator == "svi" and FLAGS.model not in (*BY_SVI, *OTHERS, AUTO):
        raise InputError(f"--estimator=svi fits the {' and the '.join(BY_SVI)}, not the {FLAGS.model}: use mml")
    if FLAGS.priors not in (("auto", "none") if FLAGS.estimator == "mml" else ("auto", *PRIORS)):
        app.without_effect(["priors"], f"--estimator={FLAGS.estimator}")
    if FLAGS.groups is None:
        app.without_effect(["free_by_group"], "no --groups")
    slope_prior(FLAGS.slope_prior)  # raises before anything is read
    groups = None if FLAGS.groups is None else column_of(FLAGS.groups)
    covariates = None if FLAGS.covariates is None else columns_of(FLAGS.covariates, "covariates")
    tensorboard.require()
    app.keep_inputs(["responses", "anchors", "guessing"], FLAGS.output_dir, (*FILES, RANKING))
    response_files.require_effect(FLAGS.responses)
    mesh = peers.mesh()
    name = ",".join(FLAGS.responses)
    responses: Responses | ScaledResponses | Judged
    responses, model = (_read if FLAGS.facet is None else _read_judged)(FLAGS.responses, mesh)
    if is_scaled(model) and FLAGS.facet is None:  # which auto may have found
        app.without_effect(ONLY_SCORED, f"--model={FLAGS.model} of these responses")
    scaled = responses.of_rows if isinstance(responses, Judged) else responses
    if peers.is_first():
        size = f"{responses.num_subjects:,} subjects × {responses.num_items:,} items"
        what = f" of {category_text.read_as(scaled)}" if on_scales(scaled) else ""
        if isinstance(responses, Judged):
            what += f" by {fit_text.counted(len(responses.judge_ids), 'judge')}"
        if isinstance(responses, SparseResponses):
            what += f", {responses.num_answers:,} answers, held one by one"
        print(f"{size}{what} (the other way round: --{'no' * FLAGS.transpose}transpose)", flush=True)
    with app.naming(name), processes.together(mesh):
        require_estimable(scaled)
    held = guessing.held(responses.item_ids)
    if isinstance(held, float) and FLAGS.model == "3pl":
        raise InputError(f"--guessing={held}: holds what --model=3pl estimates: use the 2pl, or the 4pl")
    with peers.results_of_first(FLAGS.output_dir, (RANKING, GROUPS, COVARIATES, JUDGES)) as directory:
        quantity = "elbo" if FLAGS.estimator == "svi" else "change"
        with fit_bar(model if isinstance(model, str) else "mixed", quantity) as on_step, app.naming(name):
            if FLAGS.facet is not None:
                options: dict[str, Any] = {"priors": None if FLAGS.priors == "none" else "auto", "facet": FLAGS.facet}
            elif FLAGS.estimator == "svi":
                options = _of_svi(on_step)
            else:
                options = _of_others(on_step) if is_scaled(model) else _of_mml(on_step, held)
            if groups is not None:
                pairs = [one.rpartition(":") for one in FLAGS.free_by_group]
                free = {item or kind: kind if item else "all" for item, _, kind in pairs}
                options |= {"groups": groups, "free_by_group": free or None}
            if covariates is not None:
                options["covariates"] = covariates
            fit = irtjax.fit(
                responses,
                model=FLAGS.model if FLAGS.model == AUTO else model,
                estimator=FLAGS.estimator,
                mesh=mesh,
                sparse=response_files.sparse(),
                **options,
            )
        if directory is None:
            return
        fit.save(directory)
        ranked = fit.ability.ndim == 1 and responses.num_subjects <= MOST_RANKED
        if ranked:
            _draw_ranking(fit, directory)
        if FLAGS.misfit:
            from irtjax.scale.misfit import (
                write_misfit,  # as other fits need no `scipy.stats`, which takes long to import
            )

            write_misfit(fit, directory)
    if isinstance(fit.population, FittedGroups):
        print(fit.groups().round(3).to_string(index=False))
    if isinstance(fit.population, FittedLatentRegression):
        digits = {name: "{:.2g}" if name.startswith("p_value") else "{:.3g}" for name in fit.covariates().columns[1:]}
        print(fit.covariates().to_string(index=False, formatters={name: form.format for name, form in digits.items()}))
    for note in fit.notes():
        print(f"note: {printable(note)}")
    others_of = [JUDGES] * (FLAGS.facet is not None) + [RANKING] * ranked
    print(f"Done: {', '.join([str(Path(FLAGS.output_dir, 'items.csv')), 'subjects.csv', *others_of])} and fit.json")


def _draw_ranking(fit: irtjax.Fit, directory: Path) -> None:
    """Writes the picture of the subjects by ability."""
    from irtjax.plots import ranking  # as other fits need no matplotlib, which takes long to import
    from irtjax.plots.style import save_figure

    save_figure(ranking(fit, most=MOST_RANKED), directory / RANKING)


def _read(paths: list[str], mesh: jax.sharding.Mesh | None) -> tuple[Responses | ScaledResponses, Models]:
    """The responses of one file, which may stay there, and their model; those of several files joined by items."""
    how: dict[str, Any] = {
        "grades": FLAGS.grades, "repeats": FLAGS.repeats, "trials": response_files.number_of_trials(),
    }  # fmt: skip
    if len(paths) == 1:
        how |= {"transpose": FLAGS.transpose, "sparse": response_files.sparse()} | response_files.choice(paths[0])
        return read(paths[0], FLAGS.model, mesh, **how)
    if processes.spans(mesh):
        raise InputError(f"--responses={','.join(paths)}: several processes read one file or folder; join them first")
    how["repeats"] = None if response_files.last() else FLAGS.repeats  # each file is read so
    if not is_scaled(FLAGS.model) and not any(value is not None for value in how.values()):
        try:
            sparse = response_files.sparse()
            found = _parts(paths, functools.partial(response_files.read_as_held, as_single=sparse))
            return concatenate_subjects(found, sparse), "2pl" if FLAGS.model == AUTO else FLAGS.model
        except NotScoredError:
            if FLAGS.model not in (AUTO, "2pl"):
                raise
    how["sparse"] = response_files.sparse()
    return read(concatenate_given(_parts(paths, response_files.read_given)), FLAGS.model, **how)


def _read_judged(paths: list[str], mesh: jax.sharding.Mesh | None) -> tuple[Judged, Models]:
    """The responses by judge, and the model of the items."""
    del mesh  # one process reads them
    given = concatenate_given(_parts(paths, response_files.read_given))
    assert FLAGS.facet is not None
    with app.naming(",".join(paths)):
        return read_judged(
            given, FLAGS.model, FLAGS.facet, grades=FLAGS.grades, trials=response_files.number_of_trials()
        )


def _parts(paths: list[str], read_one: Callable[[Any], Any]) -> dict[str, Any]:
    """What is in each file, by its name; a model is one subject, however many files it is in."""
    names = dict(zip(paths, names_of(paths, []), strict=True))
    of_models = [path for path in paths if names_models(path)]
    parts = {names[path]: read_one(path) for path in paths if path not in of_models}
    return parts | ({names[of_models[0]]: read_one(of_models)} if of_models else {})


def _of_mml(on_step: Callable[[int, float], None], held: object) -> dict[str, Any]:
    options = {
        "dims": FLAGS.dims, "anchors": FLAGS.anchors, "extremes": FLAGS.extremes, "on_iteration": on_step,
        "slope_prior": slope_prior(FLAGS.slope_prior), "max_iterations": FLAGS.max_iterations, "guessing": held,
        "priors": None if FLAGS.priors == "none" else "auto", "integration": FLAGS.integration,
    }  # fmt: skip
    return options if FLAGS.asymptote_priors else options | {"guessing_prior": None, "upper_prior": None}


def _of_others(on_step: Callable[[int, float], None]) -> dict[str, Any]:
    return {
        "dims": FLAGS.dims, "anchors": FLAGS.anchors, "max_iterations": FLAGS.max_iterations,
        "on_iteration": on_step, "priors": None if FLAGS.priors == "none" else "auto",
        "integration": FLAGS.integration,
    }  # fmt: skip


def _of_svi(on_step: Callable[[int, float], None]) -> dict[str, Any]:
    return {
        "priors": "hierarchical" if FLAGS.priors == "auto" else FLAGS.priors, "seed": FLAGS.seed,
        "start": FLAGS.start, "max_steps": FLAGS.max_iterations, "on_chunk": on_step,
        "batch_subjects": FLAGS.batch_subjects, "batch_items": FLAGS.batch_items,
        "batch_answers": FLAGS.batch_answers,
    }  # fmt: skip
