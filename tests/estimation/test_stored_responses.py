"""Fits of responses that stay in files: those of the same responses in memory, in the memory of a part."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from simulation import simulate

import irtjax
from irtjax import InputError
from irtjax.estimation.svi import fit as svi
from irtjax.estimation.svi.guide import Normal, Start
from irtjax.estimation.svi.model import PRIORS, Size
from irtjax.estimation.svi.programs import Settings, programs
from irtjax.kernels import reading
from irtjax.kernels.likelihood import log_likelihood_2pl

RESPONSES, _, _ = simulate(53, 1_003, missing=0.1)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stored") / "r.shards"
    cuts = range(0, 1_003, 170)
    parts = ((RESPONSES.values[:, at : at + 170], RESPONSES.item_ids[at : at + 170]) for at in cuts)
    irtjax.write_shards(parts, RESPONSES.subject_ids, folder)
    return irtjax.open_responses(folder)


@pytest.fixture
def in_parts(monkeypatch):
    """Everything stays in its files, and is read in parts of 200 items."""
    monkeypatch.setattr(svi, "MOST_IN_MEMORY", 0)
    monkeypatch.setattr(reading, "PART_RESPONSES", 53 * 200)


def test_the_likelihood_of_parts_is_that_of_the_whole(stored, in_parts):
    rng = np.random.default_rng(0)
    theta, slope, b = (jnp.asarray(rng.normal(size=n), jnp.float32) for n in (53, 1_003, 1_003))
    parts = svi._parts(stored.values)
    assert parts.width == 200

    def of_parts(theta, slope, b):
        return reading.log_likelihood_of_parts(theta, slope, -slope * b, parts)

    values = jnp.asarray(RESPONSES.values)
    found = jax.value_and_grad(of_parts, (0, 1, 2))(theta, slope, b)
    whole = jax.value_and_grad(log_likelihood_2pl, (0, 1, 2))(theta, slope, b, values)
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-3), found, whole)


@pytest.mark.parametrize(("model", "estimator"), [("2pl", "mml"), pytest.param("1pl", "svi", marks=pytest.mark.slow)])
def test_fits_from_files_are_those_from_memory(stored, in_parts, tmp_path, model, estimator):
    fit, whole = irtjax.fit(stored, model, estimator), irtjax.fit(RESPONSES, model, estimator)
    assert fit.converged
    assert fit.iterations == whole.iterations
    for name in ("difficulty", "difficulty_se", "ability", "ability_se"):
        np.testing.assert_allclose(getattr(fit, name), getattr(whole, name), rtol=1e-3, atol=1e-4)
    assert fit.log_likelihood == pytest.approx(whole.log_likelihood, rel=1e-6)
    fit.save(tmp_path / "fit")
    restored = irtjax.load_fit(tmp_path / "fit")
    assert restored == fit
    with pytest.raises(InputError, match="were read from files, and not saved with it: read them again"):
        restored.responses.read()


def test_scores_from_files_are_those_from_memory(stored):
    fit = irtjax.fit(RESPONSES, "2pl")
    np.testing.assert_array_equal(irtjax.score(fit, stored), irtjax.score(fit, RESPONSES))


def test_what_stays_in_files_has_no_minibatches(stored, in_parts):
    with pytest.raises(InputError, match="fitted whole: leave `batch_subjects` and `batch_items` out"):
        irtjax.fit(stored, "1pl", "svi", batch_items=10)


@pytest.mark.parametrize("model", ["1pl", "2pl"])
def test_a_step_never_has_the_matrix_in_memory(model):
    # JAX takes out of a loop whatever does not change in it, when it derives one: all responses, as float32
    shape = (1_000, 200_000)
    parts = reading.Parts(None, shape)
    sizes = [Size(size, None, size) for size in shape]
    settings = Settings(model, PRIORS["vague"], *sizes, parts=parts)

    def normal(*shape):
        return Normal(*[jax.ShapeDtypeStruct(shape, jnp.float32)] * 2)

    sites = {"difficulty": normal(shape[1])} if model == "1pl" else {}
    if model == "2pl":
        sites = {name: normal(shape[1]) for name in ("intercept", "discrimination")}
    start = Start({"ability": normal(shape[0]), **sites}, None if model == "1pl" else sites["intercept"].loc)
    init, advance = programs(settings)
    nothing = jax.ShapeDtypeStruct((0, 0), jnp.int8)
    state = jax.eval_shape(init, jax.random.key(0), start, nothing)
    program = str(jax.make_jaxpr(advance)(state, 0.1, start, nothing, start.sites, start.sites))
    sizes = [np.prod([int(size) for size in dims.split(",")]) for dims in re.findall(r"\w\d+\[([\d,]+)\]", program)]
    assert "i8[1000,16777]" in program  # a part
    assert max(sizes) == 1_000 * parts.width
