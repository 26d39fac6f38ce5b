"""Stochastic variational inference: the fit of a NumPyro model of responses, from responses to estimates."""

import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from irtjax import processes
from irtjax.arguments import LARGEST_SEED, checks_types, whole_number
from irtjax.errors import InputError
from irtjax.estimation.driver import Info, Outcome, run
from irtjax.fits.item_features import item_features
from irtjax.fits.result import Fit
from irtjax.kernels.sharding import ITEMS, SUBJECTS, along_subjects
from irtjax.processes import fetch
from irtjax.responses.matrix import require_estimable
from irtjax.responses.sparse import SparseResponses
from irtjax.responses.stored import StoredResponses
from irtjax.responses.values import Responses
from irtjax.svi.choice import Search, best_run
from irtjax.svi.choices import BEST, LOCATIONS, MODELS, STARTS
from irtjax.svi.directions import rotated
from irtjax.svi.engine import Approximation, Task, Variational
from irtjax.svi.estimates import result_of
from irtjax.svi.guide import relative
from irtjax.svi.model import PRIORS, PriorFunction, hyperparameters
from irtjax.svi.placing import answers_on_devices, responses_on_devices, size_of, start_on_devices, without_padding
from irtjax.svi.programs import PLACES, Settings, steps_per_chunk
from irtjax.svi.start import starting_point

MOST_BLOCKS = 1000  # of single answers; a step takes its time for each subject anyway


@checks_types
@processes.collective
def fit_svi(
    responses: Responses,
    model: str = "1pl",
    *,
    priors: str | PriorFunction = "hierarchical",
    start: str = BEST,
    features: Any = None,
    batch_subjects: int | None = None,
    batch_items: int | None = None,
    batch_answers: int | None = None,
    seed: int = 0,
    max_steps: int = 4000,
    mesh: jax.sharding.Mesh | None = None,
    on_chunk: Callable[[int, float], None] | None = None,
) -> Fit:
    """Fits the 1PL or 2PL by stochastic variational inference (see `response_model` and `guide`).

    Adam runs in chunks of 25 steps (10 on many responses, 100 on very few), in units of the posterior standard
    deviations at the start. In noise the mean of the guide's parameters over a chunk turns back from one chunk to the
    next. When, twice in a row, it does not move on as it did before (`programs._drift`), the step size falls from 0.1
    to 0.02. When that happens again, the fit has converged, and the mean of these two chunks and six more is the
    result. With up to 65,536 responses it is run on from there, as long as the ELBO rises: a start that was far off had
    other standard deviations.

    The likelihood knows only θ - b (1PL) or a (θ - b) (2PL), so the scale is fixed afterwards: the mean ability of the
    subjects is 0 and, in the 2PL, their standard deviation 1.

    Args:
        responses: at least one observed response of each subject and item.
        model: "1pl" or "2pl".
        priors: "vague", "hierarchical", or a function of the model's name that returns `model.Priors`; it may draw
            hyperparameters of its own as NumPyro sites.
        start: of the guide's locations: "mml", from a fit by marginal maximum likelihood; "proportions", from logits of
            percent correct; or "best", the one of these that has the higher ELBO (`choice.best_run`).
        features: (I, F) numbers that describe the items, in their order, or a table whose index has their ids. The
            hierarchical priors of difficulties, and of log discriminations, then have means that are regressions on
            them: b_i ~ N(m_b + w' x_i, 1/u_b), with x in standard deviations, w ~ N(0, ω² 1) and ω half-normal(1).
        batch_subjects: subjects in a step, drawn at random; None for all. Of `SparseResponses` subjects are dealt into
            blocks of at most so many, and about equal numbers of answers, of which a step draws one.
        batch_items: items in a step; None for all. Not of `SparseResponses`.
        batch_answers: of `SparseResponses`: answers in a step. They are dealt into blocks of at most so many, of which
            a step draws one; abilities and items are all drawn in every step. None for all.
        seed: of the random draws.
        max_steps: from each start, where a fit that has not converged is ended (`converged` is then False).
        mesh: devices to spread the fit over, with axes "subjects" and "items" (`irtjax.kernels.sharding.mesh_of`). A
            batch is brought to all of them. Of `SparseResponses` each device has some of the subjects, whatever the
            axes are, and its part of each block. If they are of several processes, all of these must call this
            function.
        on_chunk: called with the number of steps made since the start and the ELBO after each chunk; first of the fit
            from one start, then from the next.

    Returns:
        Posterior means and standard deviations; difficulties of the 2PL by `guide.item_moments`. A mean-field guide
        understates the latter where abilities and items are correlated in the posterior: most on short tests. With
        features, their regression too, and in the 2PL that of log discriminations (`slope_regression`).

    Raises:
        InputError: an unknown model, priors or start, no steps, a subject or an item without responses,
            responses that stay in files (but of several processes each reads its part), features that are missing,
            not finite, in several blocks, or with other priors, or batches, devices or processes that single answers,
            or a matrix, do not go with.
    """
    _check_choice(model, priors, start, features)
    check_settings(responses, batch_subjects, batch_items, seed, max_steps)
    check_answers(responses, batch_subjects, batch_items, batch_answers, mesh)
    if isinstance(responses, StoredResponses) and processes.number() == 1:
        raise InputError(
            "estimator svi needs the responses in memory: use estimator mml, which reads files as it goes, or read the "
            "responses into memory with `read_responses`"
        )
    require_estimable(responses)
    began = time.perf_counter()
    sparse = isinstance(responses, SparseResponses)
    if sparse:
        mesh = along_subjects(mesh)
    rows, columns = (1, 1) if mesh is None else (mesh.shape[SUBJECTS], mesh.shape[ITEMS])
    settings = Settings(
        model,
        PRIORS[priors] if isinstance(priors, str) else priors,
        size_of(responses.num_subjects, None if sparse else batch_subjects, rows),
        size_of(responses.num_items, batch_items, columns),
        mesh,
        responses.num_answers if isinstance(responses, SparseResponses) else None,
    )
    answers = None
    if isinstance(responses, SparseResponses):
        answers = answers_on_devices(responses, batch_subjects, batch_answers, seed, mesh)
    rotation = None if features is None else rotated(_one_block(features, responses.item_ids))
    sites_of_priors = hyperparameters(settings.priors, model)
    started = {
        name: starting_point(responses, model, name, sites_of_priors, mesh, rotation, answers)
        for name in (LOCATIONS if start == BEST else (start,))
    }
    values = responses_on_devices(responses.values, settings) if answers is None else answers
    tasks = {name: Task(values, start_on_devices(one, settings)) for name, one in started.items()}

    engine = Variational(settings, seed)
    name, best, chosen = best_run(engine, tasks, search_of(engine, max_steps, on_chunk))
    begun, sites = started[name], fetch(best.task.start.sites)
    posterior = {
        site: without_padding(relative(sites[site], best.found.mean[site]), np.shape(normal.loc))
        for site, normal in begun.sites.items()
        if site in PLACES or rotation is not None
    }
    details = {
        "priors": priors if isinstance(priors, str) else getattr(priors, "__name__", "of the caller"),
        "start": name,
        **chosen,
        "elbo": best.found.elbos[-1],
        "elbo_trace": best.found.elbos,
        "seed": seed,
    }
    if rotation is not None:
        details["features"] = rotation.features.shape[1]
    return result_of(
        responses,
        settings,
        posterior,
        None if begun.pivots is None else np.asarray(begun.pivots, np.float64),
        values,
        rotation,
        outcome=best.outcome,
        began=began,
        details=details,
    )


def _check_choice(model: str, priors: Any, start: str, features: Any) -> None:
    """Refuses what there is not, and features with priors that have no use for them.

    Raises:
        InputError: names the argument.
    """
    if model not in MODELS:
        raise InputError(f"estimator svi fits the {' or the '.join(MODELS)}, not {model!r}: use estimator mml")
    if not callable(priors) and priors not in PRIORS:
        raise InputError(f"unknown priors {priors!r}, expected one of {', '.join(PRIORS)}, or a function")
    if start not in STARTS:
        raise InputError(f"unknown start {start!r}, expected one of {', '.join(STARTS)}")
    if features is not None and priors != "hierarchical":
        raise InputError("`features` go with the hierarchical priors")


def check_answers(
    responses: Any,
    batch_subjects: int | None,
    batch_items: int | None,
    batch_answers: int | None,
    mesh: jax.sharding.Mesh | None,
) -> None:
    """Refuses of single answers what goes through a matrix, and of a matrix batches of single answers.

    Raises:
        InputError: names the argument.
    """
    if not isinstance(responses, SparseResponses):
        if batch_answers is not None:
            raise InputError("`batch_answers` are of single answers: fit with `sparse=True`")
        return
    if batch_items is not None:
        raise InputError("`batch_items` are not of single answers: take `batch_answers`, or `sparse=False`")
    if batch_answers is not None:
        whole_number("batch_answers", batch_answers, 1, responses.num_answers)
        if batch_subjects is not None:
            raise InputError("`batch_answers` and `batch_subjects`: leave out one of them")
    if mesh is not None and batch_subjects is not None and batch_subjects < mesh.size:
        raise InputError(f"`batch_subjects` {batch_subjects:,} on {mesh.size:,} devices: take as many or more")
    for name, batch, size in (
        ("batch_subjects", batch_subjects, responses.num_subjects),
        ("batch_answers", batch_answers, responses.num_answers),
    ):
        if batch is not None and -(-size // batch) > MOST_BLOCKS:
            number = -(-size // batch)
            raise InputError(
                f"`{name}` {batch:,} deals into {number:,} blocks, expected at most {MOST_BLOCKS:,}: "
                f"take {-(-size // MOST_BLOCKS):,} or more"
            )


def check_settings(
    responses: Any, batch_subjects: int | None, batch_items: int | None, seed: int, max_steps: int
) -> None:
    """Refuses batches that are larger than what there is, and a seed or a number of steps that is none.

    Raises:
        InputError: names the argument.
    """
    whole_number("seed", seed, 0, LARGEST_SEED)
    whole_number("max_steps", max_steps, 1)
    for name, batch, size in (
        ("batch_subjects", batch_subjects, responses.num_subjects),
        ("batch_items", batch_items, responses.num_items),
    ):
        if batch is not None:
            whole_number(name, batch, 1, size)


def search_of(engine: Variational, max_steps: int, on_chunk: Callable[[int, float], None] | None) -> Search:
    """A search from a task on, which ends after so many steps since the first start."""
    steps = steps_per_chunk(engine.settings.num_responses)

    def search(task: Task, made: int) -> tuple[Approximation, Outcome]:
        def on_iteration(chunks: int, info: Info) -> None:
            if on_chunk is not None:
                on_chunk(steps * (made + chunks), info.objective)

        most = -(-max_steps // steps) - made
        return run(engine, task, max_iterations=most, patience=sys.maxsize, on_iteration=on_iteration)

    return search


def _one_block(features: Any, item_ids: np.ndarray) -> np.ndarray:
    """The features, whose weights have one variance.

    Raises:
        InputError: features that are bad, or come in several blocks.
    """
    found = item_features(features, item_ids)
    if found.blocks[-1]:
        raise InputError("estimator svi has one variance for the weights of all `features`: give them as one table")
    return found.values
