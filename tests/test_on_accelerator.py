"""On a GPU or TPU as on a CPU: `make gpu` runs these tests on a machine that has one; elsewhere they are skipped."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from simulation import simulate

import irtjax
from irtjax import networks, tasks
from irtjax.crowd.members import CrowdDesign, sample_members
from irtjax.crowd.train import crowd_job
from irtjax.estimation.mml import fit_mml
from irtjax.kernels.formulation import ACCELERATORS, formulated_for
from irtjax.kernels.likelihood import log_likelihood_1pl, log_likelihood_2pl
from irtjax.training import pool
from irtjax.training.data import to_device
from irtjax.training.recipe import Recipe

pytestmark = pytest.mark.accelerator


@pytest.fixture(scope="module")
def on_both():
    """Calls a function of a device on the accelerator and on the CPU."""
    if jax.default_backend() not in ACCELERATORS:
        pytest.skip("needs a GPU or a TPU, which is not here")

    def call(function):
        there, here = jax.devices()[0], jax.devices("cpu")[0]
        with jax.default_device(there), formulated_for(there.platform):
            found = function(there)
        with jax.default_device(here), formulated_for("cpu"):
            return found, function(here)

    return call


def assert_close(found, expected, **tolerance):
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, **tolerance)


def test_likelihood_and_gradients(on_both):
    rng = np.random.default_rng(0)
    responses = rng.integers(-1, 2, (300, 500)).astype(np.int8)
    theta, b, a = (rng.normal(size=size).astype(np.float32) for size in (300, 500, 500))

    def both_models(device):
        one = jax.jit(jax.value_and_grad(log_likelihood_1pl, (0, 1)))(theta, b, jnp.asarray(responses))
        two = jax.jit(jax.value_and_grad(log_likelihood_2pl, (0, 1, 2)))(theta, a, b, jnp.asarray(responses))
        return one, two

    # float32 sums of hundreds of terms; TensorFloat-32 would be off by ten times as much
    assert_close(*on_both(both_models), rtol=1e-5, atol=2e-4)


@pytest.mark.parametrize("model", ["1pl", "2pl", "3pl"])
def test_the_long_engine(on_both, model):
    responses, _, _ = simulate(300, 600, missing=0.1)
    found, expected = on_both(lambda device: fit_mml(responses, model, extremes="keep"))
    assert found.details["posteriors"] == "normal"
    # both end within 0.01, and with asymptotes 0.02, standard errors of the maximum
    far = np.abs(found.ability - expected.ability) / expected.ability_se
    assert far.max() < 0.05, far.max()
    np.testing.assert_allclose(found.log_likelihood, expected.log_likelihood, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:the data hardly support asymptotes")
@pytest.mark.parametrize("model", ["1pl", "2pl", "4pl"])
def test_the_short_engine_and_scores(on_both, model):
    responses, _, _ = simulate(400, 20, missing=0.1)

    def fit_and_score(device):
        fit = irtjax.fit(responses, model)
        table = irtjax.score(fit, responses)
        return fit.log_likelihood, fit.ability, fit.ability_se, table["ability"], table["ability_se"]

    found, expected = on_both(fit_and_score)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-9)
    assert_close(found[1:], expected[1:], atol=1e-3)


def test_variational_inference(on_both):
    responses, _, _ = simulate(200, 100)
    found, expected = on_both(lambda device: irtjax.fit(responses, "2pl", "svi"))
    far = np.abs(found.ability - expected.ability) / expected.ability_se
    assert far.max() < 0.1, far.max()  # the same draws; the mean of the last chunks


@pytest.mark.parametrize("name", ["mlp", "lenet", "vgg16"])
def test_a_network_and_its_gradient(on_both, name):
    """Products in bfloat16 there, in float32 here."""
    task = tasks.load("digits")
    network = networks.build(name, task, width=4, dropout=0.0)
    images = task.test.inputs[:16]

    def loss_and_gradient(device):
        parameters = network.init(jax.random.key(0), 4)

        def loss(parameters):
            logits = network.logits(parameters, None, jnp.asarray(images), None)
            return jax.nn.logsumexp(logits, axis=1).mean()

        return jax.jit(jax.value_and_grad(loss))(parameters)

    (found, gradient), (expected, expected_gradient) = on_both(loss_and_gradient)
    np.testing.assert_allclose(found, expected, rtol=0.02)
    one, other = (
        np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(x)]) for x in (gradient, expected_gradient)
    )
    cosine = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
    assert cosine > 0.98, cosine


def test_a_crowd_learns_as_well(on_both):
    task, recipe = tasks.load("digits"), Recipe(max_epochs=10)
    members = sample_members(8, len(task.train.labels), 0, recipe, CrowdDesign(min_subset=200))

    def accuracies(device):
        mesh = jax.make_mesh((1,), ("network",), axis_types=(jax.sharding.AxisType.Auto,), devices=[device])
        job = crowd_job(task, members, recipe, to_device(task, mesh), mesh)
        return pool.train_all(job, pool.begin(job, 8), lambda finished: None, None).best_accuracies

    found, expected = on_both(accuracies)
    np.testing.assert_allclose(found, expected, atol=0.1)
    assert abs(found.mean() - expected.mean()) < 0.03
