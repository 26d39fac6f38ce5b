"""The kernel for GPUs, interpreted on a CPU, against the kernel of XLA in float64."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.kernels import handwritten, likelihood, likelihood_tiles
from irtjax.kernels.formulation import formulated_for
from irtjax.kernels.likelihood import value_and_sums
from irtjax.kernels.sharding import BY_ITEM, BY_RESPONSE, BY_SUBJECT, EVERYWHERE, ITEMS, SUBJECTS, mesh_of

SUBJECTS_AND_ITEMS = 58, 150  # full tiles, and parts of tiles on either side


@pytest.fixture(autouse=True)
def several_turns(monkeypatch):
    monkeypatch.setattr(likelihood_tiles, "ENOUGH", 4)  # of programs: so small a problem has two tiles in each


def problem(with_slopes):
    rng = np.random.default_rng(0)
    num_subjects, num_items = SUBJECTS_AND_ITEMS
    y = rng.integers(-1, 2, SUBJECTS_AND_ITEMS).astype(np.int8)
    y[5], y[:, 7] = -1, -1  # a subject and an item without responses
    y[y < 0] = rng.integers(-128, 0, (y < 0).sum())
    theta, slope, intercept = rng.normal(0, 3, num_subjects), rng.normal(1, 1, num_items), rng.normal(0, 2, num_items)
    intercept[0] = 300.0  # whose exponential is infinite
    parameters = theta, slope if with_slopes else None, intercept
    return *(None if leaf is None else leaf.astype(np.float32) for leaf in parameters), y


def expected(theta, slope, intercept, y):
    with jax.enable_x64(True):
        return value_and_sums(
            *(None if leaf is None else leaf.astype(float) for leaf in (theta, slope, intercept)), np.maximum(y, -1)
        )


def assert_equal(found, wanted):
    value, by_subject, by_item = found
    np.testing.assert_allclose(value, wanted[0], rtol=1e-6)
    np.testing.assert_allclose(by_subject, wanted[1], atol=3e-5)
    np.testing.assert_allclose(by_item, wanted[2], atol=3e-5)


@pytest.mark.parametrize("with_slopes", [False, True])
def test_it_equals_the_kernel_of_xla(with_slopes):
    arguments = problem(with_slopes)
    kernel = jax.jit(functools.partial(likelihood_tiles.value_and_sums, interpret=True))
    value, by_subject, by_item = kernel(*arguments)
    assert by_subject[5] == 0
    assert not by_item[:, 7].any()
    assert_equal((value, by_subject, by_item.T), expected(*arguments))


def test_over_a_mesh_each_device_has_tiles_of_its_own():
    arguments, mesh = problem(True), mesh_of(2, 2)

    def local(*part):
        value, by_subject, by_item = likelihood_tiles.value_and_sums(*part, interpret=True)
        both = jax.lax.psum(value, (SUBJECTS, ITEMS))
        return both, jax.lax.psum(by_subject, ITEMS), jax.lax.psum(by_item.T, SUBJECTS)

    specs = (BY_SUBJECT, BY_ITEM, BY_ITEM, BY_RESPONSE), (EVERYWHERE, BY_SUBJECT, BY_ITEM)
    # what is interpreted does not say along which axes it varies
    spread = jax.shard_map(local, mesh=mesh, in_specs=specs[0], out_specs=specs[1], check_vma=False)
    assert_equal(jax.jit(spread)(*arguments), expected(*arguments))


def test_a_program_for_a_gpu_runs_on_its_host_too():
    *parameters, y = problem(True)
    arguments = *parameters, np.maximum(y, -1)
    with formulated_for("gpu"):
        assert "pallas_call" in str(jax.make_jaxpr(value_and_sums)(*arguments))
        assert_equal(jax.jit(value_and_sums)(*arguments), expected(*arguments))


def test_what_it_does_not_take_is_left_to_xla():
    def shapes(dtype, of_responses, shape=(6, 4)):
        return (jax.ShapeDtypeStruct(shape[:1], dtype), jax.ShapeDtypeStruct(shape, of_responses))

    takes = likelihood_tiles.takes
    assert takes(*shapes(jnp.float32, jnp.int8))
    assert not takes(*shapes(jnp.float64, jnp.int8))
    assert not takes(*shapes(jnp.float32, jnp.int32))
    assert not takes(*shapes(jnp.float32, jnp.int8, (2**16, 2**15)))  # addresses that Pallas gets wrong
    assert takes(*shapes(jnp.float32, jnp.int8, (2**16, 2**17)))


def test_it_is_tried_on_a_gpu():
    interpreted = functools.partial(likelihood_tiles.value_and_sums, interpret=True)
    assert handwritten.agrees(interpreted, likelihood._block, likelihood_tiles.small_problems)


def test_without_pallas_the_form_for_xla_is_used(monkeypatch):
    theta, slope, intercept, y = problem(True)
    assert likelihood_tiles.takes(theta, y)
    assert not likelihood_tiles.takes(theta, y.astype(np.int32))
    monkeypatch.setattr(handwritten, "available", lambda: False)
    program = jax.jit(lambda *arguments: value_and_sums(*arguments))  # traced anew
    with formulated_for("gpu"):
        text = program.trace(theta, slope, intercept, y).lower(lowering_platforms=("cuda",)).as_text()
    assert "triton" not in text
