"""Variational inference of single answers: the same as that of the matrix, and blocks that are unbiased."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro import handlers
from numpyro.infer.util import log_density
from simulation import draw, simulate

import irtjax
from irtjax import InputError
from irtjax.estimation.cells_or_answers import held_for
from irtjax.kernels import answers as of_answers
from irtjax.kernels import likelihood
from irtjax.kernels.sharding import along_subjects, mesh_of
from irtjax.responses.sparse import SparseResponses, of_matrix
from irtjax.svi import answers, choices, guide, placing, start
from irtjax.svi import fit as svi
from irtjax.svi import model as svi_model

SHAPE = 150, 80  # as in test_svi


def pieces(share, num_subjects=61, num_items=33, seed=0):
    """Responses of which a share is observed, one item by everyone, one by no one; θ, a and b; in float64."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, (num_subjects, num_items)).astype(np.int8)
    y[rng.uniform(size=y.shape) >= share] = -1
    y[:, 3], y[:, 5] = np.arange(num_subjects) % 2, -1
    theta, a, b = rng.normal(0, 2, num_subjects), rng.normal(1, 0.5, num_items), rng.normal(0, 2, num_items)
    names = (np.char.mod(f"{kind}%d", np.arange(size)) for kind, size in zip("si", y.shape, strict=True))
    return of_matrix(irtjax.ResponseMatrix(y, *names)), y, (theta, a, b)


@pytest.mark.parametrize("share", [0.1, 1.0])
def test_the_likelihood_is_that_of_the_matrix(share, monkeypatch):
    monkeypatch.setattr(
        of_answers, "IN_CACHE", 64
    )  # rows are then worked on in several parts, the last one with padding
    responses, y, (theta, a, b) = pieces(share)
    with jax.enable_x64(True):
        one = jax.tree.map(lambda leaf: leaf[0], answers.dealt(responses).answers)
        assert all(len(side.keys) > 1 for side in one)
        for name, parameters in (("log_likelihood_1pl", (theta, b)), ("log_likelihood_2pl", (theta, a, b))):
            number = tuple(range(len(parameters)))
            found, expected = (
                jax.value_and_grad(getattr(room, name), argnums=number)(*map(jnp.asarray, parameters), data)
                for room, data in ((of_answers, one), (likelihood, y))
            )
            for mine, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-10)


def test_several_devices_have_the_likelihood_of_one():
    # of 61 subjects the last device has 13, where others have 16
    responses, y, (theta, a, b) = pieces(0.3)
    mesh = along_subjects(mesh_of(2, 2))
    with jax.enable_x64(True):
        blocks = placing.answers_on_devices(responses, None, None, 0, mesh)
        one = jax.tree.map(lambda leaf: leaf[0], blocks.answers)
        theta, a, b = map(jnp.asarray, (theta, a, b))
        spread = functools.partial(of_answers.log_likelihood_2pl, mesh=mesh)
        found, (of_subjects, *of_items) = jax.value_and_grad(spread, (0, 1, 2))(jnp.pad(theta, (0, 3)), a, b, one)
        expected = jax.value_and_grad(likelihood.log_likelihood_2pl, (0, 1, 2))(theta, a, b, y)
        assert not of_subjects[61:].any()
        for mine, theirs in zip(
            jax.tree.leaves((found, of_subjects[:61], of_items)), jax.tree.leaves(expected), strict=True
        ):
            np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("devices", [1, 3])
@pytest.mark.parametrize("sizes", [{"subject_blocks": 4}, {"answer_blocks": 3}])
def test_every_answer_is_in_one_block(sizes, devices):
    responses, y, _ = pieces(0.4, num_subjects=50)
    of_devices = [answers.dealt(responses, **sizes, devices=devices, own=(d,)) for d in range(devices)]
    assert_dealt(sizes, responses, y, of_devices)
    together = answers.dealt(responses, **sizes, devices=devices, own=range(devices))
    for whole, *parts in zip(*map(jax.tree.leaves, (together, *of_devices)), strict=True):
        assert whole.shape[1] >= sum(part.shape[1] for part in parts)  # filled up to equal length


def assert_dealt(sizes, responses, y, of_devices):
    """Each answer is in one block of one device, and blocks have as many answers."""
    each = -(-len(y) // len(of_devices))
    again = np.full(y.shape, -1)
    number, observed = np.zeros((2, *y.shape), int), 0
    for device, found in enumerate(of_devices):
        for at, (side, turned) in enumerate(((found.answers.by_subject, False), (found.answers.by_item, True))):
            for g, (codes, keys) in enumerate(zip(side.codes, side.keys, strict=True)):
                there = codes > 0
                own, other = np.broadcast_to(keys[..., None], codes.shape)[there], codes[there] >> 2
                rows, columns = (other, own) if turned else (own, other)
                rows = rows + device * each if found.subjects is None else found.subjects[g][rows]
                np.add.at(number[at], (rows, columns), 1)
                again[rows, columns] = codes[there] & 1
        observed = observed + (found.answers.by_subject.codes > 0).sum(axis=(1, 2, 3))
    np.testing.assert_array_equal(number, np.broadcast_to(y >= 0, number.shape))
    np.testing.assert_array_equal(again, y)
    least = 1 if "answer_blocks" in sizes else len(of_devices) * np.diff(responses.starts).max()
    assert np.ptp(observed) <= least
    if of_devices[0].subjects is not None:
        subjects = np.concatenate([found.subjects for found in of_devices], axis=1)
        np.testing.assert_array_equal(np.sort(subjects[subjects >= 0]), np.arange(len(y)))


@pytest.mark.parametrize("model", [pytest.param("1pl", marks=pytest.mark.slow), "2pl"])
def test_blocks_are_unbiased(model):
    # the mean over all blocks of log p - log q, and of its gradients, is that of all answers
    responses, _, (theta, a, b) = pieces(0.4)
    a = np.abs(a)
    priors = svi_model.hierarchical
    size = [svi_model.Size(number, None, number) for number in (responses.num_subjects, responses.num_items)]
    bound = dict(zip(("subjects", "items"), size, strict=True)) | {"model": model, "priors": priors, "mesh": None}
    draws = {site: np.asarray(1.3) for site in svi_model.hyperparameters(priors, model)}
    draws |= {"ability": theta, "difficulty": b} | ({"discrimination": a} if model == "2pl" else {})

    def difference(draws, sites, dealt, g):
        begun = guide.Start(sites, jnp.linspace(-1, 1, len(b)) if model == "2pl" else None)
        fixed = {"blocks": jnp.asarray(g)[None]}
        if dealt.subjects is not None:
            draws = draws | {"ability": draws["ability"][jnp.maximum(dealt.subjects[g], 0)]}
        of = (
            functools.partial(svi_model.response_model, dealt, **bound),
            functools.partial(guide.guide, begun, dealt, **bound),
        )
        p, q = (log_density(handlers.substitute(handlers.seed(f, 0), fixed), (), {}, draws)[0] for f in of)
        return p - q

    with jax.enable_x64(True):
        shapes = {site: jnp.shape(x) for site, x in draws.items()}
        if model == "2pl":
            shapes["intercept"] = shapes.pop("difficulty")
        sites = {site: guide.Normal(jnp.full(shape, 0.2), jnp.full(shape, 0.7)) for site, shape in shapes.items()}
        draws = jax.tree.map(jnp.asarray, draws)
        value_and_gradients = jax.jit(jax.value_and_grad(difference, argnums=(0, 1)))
        expected = value_and_gradients(draws, sites, answers.dealt(responses), 0)
        for sizes in ({"subject_blocks": 4}, {"answer_blocks": 3}):
            dealt = jax.tree.map(jnp.asarray, answers.dealt(responses, **sizes))
            number = max(sizes.values())
            each = [value_and_gradients(draws, sites, dealt, g) for g in range(number)]
            for *mine, theirs in zip(*map(jax.tree.leaves, (*each, expected)), strict=True):
                np.testing.assert_allclose(np.mean(mine, axis=0), theirs, rtol=1e-10, atol=1e-10)


def test_a_fit_is_that_of_the_matrix():
    responses, _, _ = simulate(*SHAPE, seed=1, missing=0.3)
    found, expected = (
        irtjax.fit(responses, "1pl", "svi", priors="vague", start="proportions", sparse=sparse)
        for sparse in (True, False)
    )
    assert found.responses == of_matrix(responses)
    assert found.details["num_answers"] == (responses.values >= 0).sum()
    agree(found, expected)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 0.6, 1.0])
@pytest.mark.parametrize("model", choices.MODELS)
def test_fits_are_those_of_the_matrix(model, share):
    responses, _, _ = simulate(*{0.1: (350, 150), 0.6: SHAPE, 1.0: SHAPE}[share], seed=1, missing=1 - share)
    # later the rounding of a thousand steps may decide when a search comes to rest
    options = {"start": "proportions", "max_steps": 250}
    agree(*(svi.fit_svi(given, model, **options) for given in (of_matrix(responses), responses)))


def agree(found, expected):
    """The same search, to rounding."""
    assert found.iterations == expected.iterations
    np.testing.assert_allclose(found.details["elbo_trace"], expected.details["elbo_trace"], rtol=1e-5)
    np.testing.assert_allclose(found.log_likelihood, expected.log_likelihood, rtol=1e-5)
    for name in ("ability", "difficulty"):
        se = getattr(expected, f"{name}_se")
        np.testing.assert_array_less(np.abs(getattr(found, name) - getattr(expected, name)) / se, 1e-3)
        np.testing.assert_allclose(getattr(found, f"{name}_se"), se, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "start"), [("1pl", "mml"), ("2pl", "proportions")])
def test_several_devices_find_what_one_does(model, start):
    responses, _, _ = simulate(*SHAPE, seed=1, missing=0.3)
    fit = functools.partial(svi.fit_svi, of_matrix(responses), model, start=start, max_steps=250)
    agree(fit(mesh=mesh_of(1, 4)), fit())


@pytest.mark.parametrize("name", choices.LOCATIONS)
def test_starts_are_those_of_the_matrix(name):
    responses, _, _ = simulate(*SHAPE, seed=1, missing=0.3)
    single = of_matrix(responses)
    hyperparameters = svi_model.hyperparameters(svi_model.hierarchical, "2pl")
    expected = start.starting_point(responses, "2pl", name, hyperparameters)
    for blocks in (1, 4):
        dealt = jax.tree.map(jnp.asarray, answers.dealt(single, blocks))
        found = start.starting_point(single, "2pl", name, hyperparameters, answers=dealt)
        for mine, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=2e-4, atol=2e-4)
    if name == "proportions":
        mesh = along_subjects(mesh_of(1, 4))
        for batch in (None, 40):
            dealt = placing.answers_on_devices(single, batch, None, 0, mesh)
            found = start.starting_point(single, "2pl", name, hyperparameters, mesh, answers=dealt)
            for mine, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=2e-4, atol=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("devices", [1, 4])
@pytest.mark.parametrize("batch", [{"batch_subjects": 40}, {"batch_answers": 2500}])
def test_minibatches_lead_to_the_same_estimates(batch, devices):
    responses, _, _ = simulate(*SHAPE, seed=3, missing=0.3)
    single = of_matrix(responses)
    batch = batch | {"mesh": None if devices == 1 else mesh_of(1, devices)}
    found, expected = svi.fit_svi(single, **batch), svi.fit_svi(single)
    assert found.converged
    for name in ("ability", "difficulty"):
        se = getattr(expected, f"{name}_se")
        error = (getattr(found, name) - getattr(expected, name)) / se
        assert np.sqrt((error**2).mean()) < 0.25  # 0.1 to 0.2: steps are of 0.02, and see a part of the answers
        assert abs(np.median(getattr(found, f"{name}_se") / se) - 1) < 0.03


@pytest.mark.slow
def test_features_go_with_single_answers():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(SHAPE[1], 2))
    theta, b = rng.normal(size=SHAPE[0]), features @ [0.8, -0.4] + 0.3 * rng.normal(size=SHAPE[1])
    values = draw(rng, 1 / (1 + np.exp(b - theta[:, None])), missing=0.3)
    names = (np.char.mod(f"{kind}%d", np.arange(size)) for kind, size in zip("si", SHAPE, strict=True))
    responses = irtjax.ResponseMatrix(values, *names)
    found, expected = (irtjax.fit(responses, "1pl", "svi", features=features, sparse=held) for held in (True, False))
    assert "num_answers" in found.details
    np.testing.assert_allclose(found.regression.weights, expected.regression.weights, atol=5e-3)


def test_large_matrices_with_few_answers_are_fitted_by_the_answer():
    values = np.full((3000, 1500), -1, np.int8)
    values[np.arange(3000), np.arange(3000) % 1500] = 1
    names = (np.char.mod(f"{kind}%d", np.arange(size)) for kind, size in zip("si", values.shape, strict=True))
    responses = irtjax.ResponseMatrix(values, *names)
    assert isinstance(held_for(responses, None, {}, "svi"), SparseResponses)
    assert held_for(responses, None, {"batch_items": 10}, "svi") is responses
    assert held_for(responses, False, {}, "svi") is responses


def test_bad_requests_are_named():
    responses, _, _ = simulate(10, 10)
    single = of_matrix(responses)
    fit = functools.partial(irtjax.fit, model="1pl", estimator="svi")
    with pytest.raises(InputError, match="`batch_answers` 101, expected a whole number, 1 to 100"):
        fit(responses, batch_answers=101)
    with pytest.raises(InputError, match="`batch_subjects` 1 deals into 2,000 blocks, expected at most 1,000"):
        fit(of_matrix(simulate(2000, 10)[0]), batch_subjects=1)
    with pytest.raises(InputError, match="`batch_answers` and `batch_subjects`: leave out one of them"):
        fit(single, batch_answers=10, batch_subjects=5)
    with pytest.raises(InputError, match="`batch_items` are not of single answers: take `batch_answers`"):
        fit(single, batch_items=5, sparse=True)
    with pytest.raises(InputError, match="`batch_answers` are of single answers: fit with `sparse=True`"):
        fit(responses, batch_answers=10, sparse=False)
    with pytest.raises(InputError, match="`batch_subjects` 3 on 4 devices: take as many or more"):
        fit(single, mesh=mesh_of(1, 4), batch_subjects=3)
