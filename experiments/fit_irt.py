r"""Fits an item response model to a file of scored responses.

Reads responses, right and wrong or grades, and writes items.csv, subjects.csv, fit.json and, of up to 60 subjects,
ranking.png. The format of the file is recognised by its ending or its content: CSV matrix (a header of item ids, the
subject id first in each row, cells 0, 1 or empty), long CSV (subject_id, item_id, response), py-irt JSON lines, Parquet
or NPZ. A folder is that of shards, or what a harness wrote about language models: the samples of lm-evaluation-harness,
the lines of every_eval_ever, logs of Inspect, HELM's statistics, results of EvalPlus. Grades, categories, counts and
shares are fitted by --model=graded, gpcm, pcm, rsm, nominal, binomial or ordered_beta; --model=auto goes by the data.

  python -m experiments.fit_irt --responses=responses.csv --model=2pl --output_dir=runs/fit
  python -m experiments.fit_irt --responses=responses.csv --model=1pl --estimator=svi --output_dir=runs/fit
  python -m experiments.fit_irt --responses=grades.csv --model=graded --output_dir=runs/fit
  python -m experiments.fit_irt --responses=grades.csv --model=pcm --facet=judge --output_dir=runs/fit
  python -m experiments.fit_irt --responses=grades.csv --model=graded --estimator=svi --output_dir=runs/fit

On 2 CPU cores a fit to 1,000 people and 100 items takes four seconds, mostly start and compilation. A fit to
1,000 networks and 550,000 items takes a quarter of a minute by mml and one and a half by svi, reading the file aside.
"""

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
from absl import flags

import irtjax
from experiments.common import app, formulas, guessing, peers, response_files, tensorboard
from experiments.common.path_flags import define_output_dir, define_path, define_paths
from experiments.common.progress import fit_bar
from experiments.common.sources import names_of
from experiments.common.table_columns import column_of, columns_of
from irtjax import processes
from irtjax.errors import InputError, NotScoredError, printable
from irtjax.estimation.priors import NormalPrior
from irtjax.fits import category_text, fit_text
from irtjax.fits.fit_files import COVARIATES, FILES, GROUPS, JUDGES
from irtjax.fits.reading import AUTO, Models, is_scaled, read, read_judged
from irtjax.fitting import ESTIMATORS, MODELS, NAMES
from irtjax.integration.rules import WAYS
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
from irtjax.svi.choices import BEST, PRIORS, STARTS
from irtjax.svi.choices import MODELS as BY_SVI

_RESPONSES = define_paths(
    "responses",
    "file or folder of scored responses; several, with commas, are those of other subjects to these items",
    required=True,
)
_METRIC = response_files.define_metric()
_FILTER = response_files.define_filter()
_COLUMNS = response_files.define_columns()
_TRIALS = response_files.define_trials()
_TRANSPOSE = response_files.define_transpose()
_OUTPUT_DIR = define_output_dir()
_MODEL = flags.DEFINE_enum(
    "model",
    "2pl",
    NAMES,
    f"item response model: of right and wrong answers {', '.join(MODELS)} (svi fits the 1pl and the 2pl); of other "
    "responses graded and what follows; auto goes by the responses",
)
_GRADES = response_files.define_grades()
_REPEATS = response_files.define_repeats()
_SPARSE = response_files.define_sparse()
_FACET = flags.DEFINE_string(
    "facet", None, "column of a table with one row per response that says who judged: adds the severity of each judge"
)
_DIMS = flags.DEFINE_integer("dims", 1, "dimensions of ability (mml)", lower_bound=1)
_ESTIMATOR = flags.DEFINE_enum(
    "estimator", "mml", ESTIMATORS, "marginal maximum likelihood or stochastic variational inference"
)
_PRIORS = flags.DEFINE_enum(
    "priors",
    "auto",
    ["auto", "none", *PRIORS],
    "priors: auto, or none for plain maximum likelihood (mml); auto, hierarchical or vague (svi)",
)
_ASYMPTOTE_PRIORS = flags.DEFINE_bool("asymptote_priors", True, "priors on the asymptotes of 3pl and 4pl (mml)")
_SLOPE_PRIOR = flags.DEFINE_list(
    "slope_prior",
    ["auto"],
    "normal prior on slopes: mean,sd, none, or auto: estimated where the responses leave slopes open (mml)",
)
_INTEGRATION = flags.DEFINE_enum(
    "integration",
    "auto",
    WAYS,
    "abilities are integrated out on shared nodes, around each posterior, or normal (mml)",
)
_START = flags.DEFINE_enum("start", BEST, STARTS, "where svi begins; best: at the one of the highest ELBO")
_BATCH_SUBJECTS = flags.DEFINE_integer("batch_subjects", None, "subjects in a step; default: all (svi)")
_BATCH_ITEMS = flags.DEFINE_integer("batch_items", None, "items in a step; default: all (svi)")
_BATCH_ANSWERS = flags.DEFINE_integer(
    "batch_answers", None, "answers in a step of a fit by single answers; default: all (svi)"
)
_GROUPS = flags.DEFINE_string(
    "groups",
    None,
    "several populations of subjects: TABLE.csv:COLUMN has the group of each; ids are in its first column (mml)",
)
_FREE = flags.DEFINE_list(
    "free_by_group", [], "items whose parameters differ by group: item, item:difficulty or item:slope (--groups)"
)
_COVARIATES = flags.DEFINE_string(
    "covariates",
    None,
    "what the mean ability of subjects depends on: TABLE.csv:COLUMN,COLUMN; ids are in its first column (mml)",
)
_ANCHORS = define_path("anchors", "items.csv of items whose parameters are held fixed (mml)")
_GUESSING = guessing.define_guessing()
_EXTREMES = flags.DEFINE_enum(
    "extremes", "keep", ["keep", "refuse"], "items that everyone or no one answered right: under a prior, or not (mml)"
)
formulas.define_guard()
tensorboard.define_tensorboard()
_MISFIT = flags.DEFINE_bool(
    "misfit", False, "add infit and outfit to items.csv and subjects.csv, and lz to subjects.csv (one dimension)"
)
_SEED = flags.DEFINE_integer("seed", 0, "seed of every random draw (svi)", lower_bound=0, upper_bound=2**31 - 1)
_MAX_ITERATIONS = flags.DEFINE_integer(
    "max_iterations",
    4000,
    "most EM steps (mml), or optimisation steps in rounds of 10 to 100 (svi)",
    lower_bound=1,
)


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


peers.define_flags()


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


def main() -> None:
    """Reads responses, fits the model and writes the results."""
    app.without_effect(ONLY_SVI if _ESTIMATOR.value == "mml" else ONLY_MML, f"--estimator={_ESTIMATOR.value}")
    others = is_scaled(_MODEL.value) or _FACET.value is not None
    if _FACET.value is not None:
        without = ["estimator", "dims", "groups", "covariates", "anchors", "transpose", "repeats", "sparse"]
        app.without_effect([*ONLY_SCORED, *ONLY_SVI, "integration", *without], "--facet")
    elif others:
        app.without_effect(ONLY_SCORED, f"--model={_MODEL.value}")
    if not others and _MODEL.value != AUTO:
        idle = response_files.of_grades_alone()
        app.without_effect(idle, f"--model={_MODEL.value}, which is of right and wrong answers")
    if _MODEL.value not in ("3pl", "4pl"):
        app.without_effect(["asymptote_priors"], f"--model={_MODEL.value}")
    if _MODEL.value == "rasch":
        app.without_effect(["slope_prior"], "--model=rasch, whose slopes are 1 (--model=1pl has one)")
    if _ESTIMATOR.value == "svi" and _MODEL.value not in (*BY_SVI, *OTHERS, AUTO):
        raise InputError(f"--estimator=svi fits the {' and the '.join(BY_SVI)}, not the {_MODEL.value}: use mml")
    if _PRIORS.value not in (("auto", "none") if _ESTIMATOR.value == "mml" else ("auto", *PRIORS)):
        app.without_effect(["priors"], f"--estimator={_ESTIMATOR.value}")
    if _GROUPS.value is None:
        app.without_effect(["free_by_group"], "no --groups")
    slope_prior(_SLOPE_PRIOR.value)  # raises before anything is read
    groups = None if _GROUPS.value is None else column_of(_GROUPS.value)
    covariates = None if _COVARIATES.value is None else columns_of(_COVARIATES.value, "covariates")
    tensorboard.require()
    app.keep_inputs(["responses", "anchors", "guessing"], _OUTPUT_DIR.value, (*FILES, RANKING))
    response_files.require_effect(_RESPONSES.value)
    mesh = peers.mesh()
    name = ",".join(_RESPONSES.value)
    responses: Responses | ScaledResponses | Judged
    responses, model = (_read if _FACET.value is None else _read_judged)(_RESPONSES.value, mesh)
    if is_scaled(model) and _FACET.value is None:  # which auto may have found
        app.without_effect(ONLY_SCORED, f"--model={_MODEL.value} of these responses")
    scaled = responses.of_rows if isinstance(responses, Judged) else responses
    if peers.is_first():
        size = f"{responses.num_subjects:,} subjects × {responses.num_items:,} items"
        what = f" of {category_text.read_as(scaled)}" if on_scales(scaled) else ""
        if isinstance(responses, Judged):
            what += f" by {fit_text.counted(len(responses.judge_ids), 'judge')}"
        if isinstance(responses, SparseResponses):
            what += f", {responses.num_answers:,} answers, held one by one"
        print(f"{size}{what} (the other way round: --{'no' * _TRANSPOSE.value}transpose)", flush=True)
    with app.naming(name), processes.together(mesh):
        require_estimable(scaled)
    held = guessing.held(responses.item_ids)
    if isinstance(held, float) and _MODEL.value == "3pl":
        raise InputError(f"--guessing={held}: holds what --model=3pl estimates: use the 2pl, or the 4pl")
    with peers.results_of_first(_OUTPUT_DIR.value, (RANKING, GROUPS, COVARIATES, JUDGES)) as directory:
        quantity = "elbo" if _ESTIMATOR.value == "svi" else "change"
        with fit_bar(model if isinstance(model, str) else "mixed", quantity) as on_step, app.naming(name):
            if _FACET.value is not None:
                options: dict[str, Any] = {"priors": None if _PRIORS.value == "none" else "auto", "facet": _FACET.value}
            elif _ESTIMATOR.value == "svi":
                options = _of_svi(on_step)
            else:
                options = _of_others(on_step) if is_scaled(model) else _of_mml(on_step, held)
            if groups is not None:
                pairs = [one.rpartition(":") for one in _FREE.value]
                free = {item or kind: kind if item else "all" for item, _, kind in pairs}
                options |= {"groups": groups, "free_by_group": free or None}
            if covariates is not None:
                options["covariates"] = covariates
            fit = irtjax.fit(
                responses,
                model=_MODEL.value if _MODEL.value == AUTO else model,
                estimator=_ESTIMATOR.value,
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
        if _MISFIT.value:
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
    others_of = [JUDGES] * (_FACET.value is not None) + [RANKING] * ranked
    print(f"Done: {', '.join([str(Path(_OUTPUT_DIR.value, 'items.csv')), 'subjects.csv', *others_of])} and fit.json")


def _draw_ranking(fit: irtjax.Fit, directory: Path) -> None:
    """Writes the picture of the subjects by ability."""
    from irtjax.plots import ranking  # as other fits need no matplotlib, which takes long to import
    from irtjax.plots.style import save_figure

    save_figure(ranking(fit, most=MOST_RANKED), directory / RANKING)


def _read(paths: list[str], mesh: jax.sharding.Mesh | None) -> tuple[Responses | ScaledResponses, Models]:
    """The responses of one file, which may stay there, and their model; those of several files joined by items."""
    how: dict[str, Any] = {
        "grades": _GRADES.value, "repeats": _REPEATS.value, "trials": response_files.number_of_trials(),
    }  # fmt: skip
    if len(paths) == 1:
        how |= {"transpose": _TRANSPOSE.value, "sparse": response_files.sparse()} | response_files.choice(paths[0])
        return read(paths[0], _MODEL.value, mesh, **how)
    if processes.spans(mesh):
        raise InputError(f"--responses={','.join(paths)}: several processes read one file or folder; join them first")
    how["repeats"] = None if response_files.last() else _REPEATS.value  # each file is read so
    if not is_scaled(_MODEL.value) and not any(value is not None for value in how.values()):
        try:
            sparse = response_files.sparse()
            found = _parts(paths, functools.partial(response_files.read_as_held, as_single=sparse))
            return concatenate_subjects(found, sparse), "2pl" if _MODEL.value == AUTO else _MODEL.value
        except NotScoredError:
            if _MODEL.value not in (AUTO, "2pl"):
                raise
    how["sparse"] = response_files.sparse()
    return read(concatenate_given(_parts(paths, response_files.read_given)), _MODEL.value, **how)


def _read_judged(paths: list[str], mesh: jax.sharding.Mesh | None) -> tuple[Judged, Models]:
    """The responses by judge, and the model of the items."""
    del mesh  # one process reads them
    given = concatenate_given(_parts(paths, response_files.read_given))
    assert _FACET.value is not None
    with app.naming(",".join(paths)):
        return read_judged(
            given, _MODEL.value, _FACET.value, grades=_GRADES.value, trials=response_files.number_of_trials()
        )


def _parts(paths: list[str], read_one: Callable[[Any], Any]) -> dict[str, Any]:
    """What is in each file, by its name; a model is one subject, however many files it is in."""
    names = dict(zip(paths, names_of(paths, []), strict=True))
    of_models = [path for path in paths if names_models(path)]
    parts = {names[path]: read_one(path) for path in paths if path not in of_models}
    return parts | ({names[of_models[0]]: read_one(of_models)} if of_models else {})


def _of_mml(on_step: Callable[[int, float], None], held: object) -> dict[str, Any]:
    options = {
        "dims": _DIMS.value, "anchors": _ANCHORS.value, "extremes": _EXTREMES.value, "on_iteration": on_step,
        "slope_prior": slope_prior(_SLOPE_PRIOR.value), "max_iterations": _MAX_ITERATIONS.value, "guessing": held,
        "priors": None if _PRIORS.value == "none" else "auto", "integration": _INTEGRATION.value,
    }  # fmt: skip
    return options if _ASYMPTOTE_PRIORS.value else options | {"guessing_prior": None, "upper_prior": None}


def _of_others(on_step: Callable[[int, float], None]) -> dict[str, Any]:
    return {
        "dims": _DIMS.value, "anchors": _ANCHORS.value, "max_iterations": _MAX_ITERATIONS.value,
        "on_iteration": on_step, "priors": None if _PRIORS.value == "none" else "auto",
        "integration": _INTEGRATION.value,
    }  # fmt: skip


def _of_svi(on_step: Callable[[int, float], None]) -> dict[str, Any]:
    return {
        "priors": "hierarchical" if _PRIORS.value == "auto" else _PRIORS.value, "seed": _SEED.value,
        "start": _START.value, "max_steps": _MAX_ITERATIONS.value, "on_chunk": on_step,
        "batch_subjects": _BATCH_SUBJECTS.value, "batch_items": _BATCH_ITEMS.value,
        "batch_answers": _BATCH_ANSWERS.value,
    }  # fmt: skip


if __name__ == "__main__":
    app.run(main)
