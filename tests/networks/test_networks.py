"""Every network: against NumPy, through padding, masks, keys and gradients; and how they are asked for."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from example_tasks import arrays, dense, embeddings, images, text, words_of

from irtjax import InputError, networks, tasks
from irtjax.tasks.task import TextFormat
from irtjax.training.recipe import default_recipe

TEXT, PAIR, IMAGES, COLOURS = text(1), text(2), images(8, 8, 1), images(8, 6, 3)
ODD = images(7, 5, 2)
TEXT_NETWORKS = [("lstm", TEXT), ("lstm", PAIR), ("cnn", TEXT), ("cnn", PAIR), ("nse", TEXT), ("nse", PAIR)]
TEXT_NETWORKS += [("esim", PAIR), ("lstm_study", TEXT), ("cnn_study", PAIR)]


def named(cases, slow=()):
    marks = [[pytest.mark.slow] if case[0] in slow else [] for case in cases]
    return [pytest.param(*case, id=f"{case[0]}-{at}", marks=marks[at]) for at, case in enumerate(cases)]


PAIR_NETWORKS = [(name, PAIR) for name in ("lstm", "cnn", "nse", "esim", "cnn_study")]


def random_parameters(network, width, seed=0, active=None):
    """Like initial parameters, but with biases and gains that matter; drawn by NumPy, which compiles nothing."""
    active, rng = width if active is None else active, np.random.default_rng(seed)
    like = jax.eval_shape(lambda: network.init(jax.random.key(0), active))

    def draw(path, leaf):
        if "mask" in jax.tree_util.keystr(path):
            return jnp.asarray(np.arange(width) < active, jnp.float32)
        scale = np.sqrt(1.5 / np.prod(leaf.shape[:-1])) if leaf.ndim > 1 else 0.5
        return jnp.asarray(rng.normal(0, scale, leaf.shape), jnp.float32)

    return jax.tree_util.tree_map_with_path(draw, like)


# sizes of which every test asks, so that each program is compiled once
TEXT_WIDTH, IMAGE_WIDTH = 5, 3


def width_for(task):
    return TEXT_WIDTH if isinstance(task.format, TextFormat) else IMAGE_WIDTH


def answer(network, parameters, task, inputs=None, key=None):
    return jax.jit(network.logits)(parameters, embeddings(task), task.train.inputs if inputs is None else inputs, key)


@pytest.mark.parametrize(("name", "task"), named(TEXT_NETWORKS))
def test_text_networks_against_numpy(name, task):
    network = networks.build(name, task, TEXT_WIDTH)
    parameters = random_parameters(network, TEXT_WIDTH)
    p = arrays(parameters)
    expected = []
    for sentences in zip(*task.train.inputs, strict=True):
        vectors = [task.format.embeddings[words_of(sentence)].astype(np.float64) for sentence in sentences]
        projected = [dense(p["words"]["projection"], each) for each in vectors]
        expected.append(getattr(reference, f"{name}_network")(p, projected))
    np.testing.assert_allclose(answer(network, parameters, task), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "task", "width"),
    [
        ("lenet", IMAGES, IMAGE_WIDTH),
        ("lenet", COLOURS, 2),
        ("lenet", ODD, 2),
        ("vgg16", COLOURS, 2),
        ("resnet", IMAGES, IMAGE_WIDTH),
        ("resnet", ODD, 5),
    ],
)
def test_image_networks_against_numpy(name, task, width):
    network = networks.build(name, task, width)
    parameters = random_parameters(network, width)
    p, format = arrays(parameters), task.format
    x = (task.train.inputs / format.scale - np.array(format.mean)) / np.array(format.deviation)
    expected = [getattr(reference, f"{name}_network")(p, image) for image in x]
    np.testing.assert_allclose(answer(network, parameters, task), expected, atol=2e-4)


def count(network):
    return sum(leaf.size for leaf in jax.tree.leaves(jax.eval_shape(network.init, jax.random.key(0), 1)))


@pytest.mark.parametrize("shape", [(28, 28, 1), (32, 32, 3), (64, 64, 3), (8, 8, 1), (15, 9, 3)])
def test_images_of_any_size(shape):
    height, breadth, channels = shape
    task, w, c = images(*shape), 4, 3
    lenet, vgg16, resnet = (networks.build(name, task, w) for name in ("lenet", "vgg16", "resnet"))
    for network in (lenet, vgg16, resnet):
        parameters = jax.eval_shape(network.init, jax.random.key(0), w)
        assert jax.eval_shape(network.logits, parameters, None, task.train.inputs, None).shape == (3, c)
    pixels = -(-height // 4) * -(-breadth // 4)
    dense_of_lenet = (pixels * 2 * w + 1) * 8 * w + (8 * w + 1) * c
    assert count(lenet) == 25 * (channels * w + w * 2 * w) + 3 * w + dense_of_lenet + w
    of_vgg16 = [channels, *np.repeat((w, 2 * w, 4 * w, 8 * w, 8 * w), (2, 2, 3, 3, 3))]
    pixels = -(-height // 32) * -(-breadth // 32)
    dense_of_vgg16 = (pixels * 8 * w + 1) * 8 * w + (8 * w + 1) * c
    assert count(vgg16) == sum(9 * a * b + 2 * b for a, b in itertools.pairwise(of_vgg16)) + dense_of_vgg16 + w
    of_resnet = [channels, w, w, w, 2 * w, 2 * w, 4 * w, 4 * w]
    assert count(resnet) == sum(9 * a * b + 2 * b for a, b in itertools.pairwise(of_resnet)) + (4 * w + 1) * c + w


def test_tables_of_features_are_read_by_the_mlp():
    table = images(1, 1, 30)
    assert networks.choices(table) == ("mlp",)
    assert default_recipe(table).network == default_recipe(dataclasses.replace(table, name="sst2")).network == "mlp"
    for name in ("lenet", "vgg16", "resnet"):
        message = f"'{name}' reads images; for task 'images', a table of 30 features, choose mlp$"
        with pytest.raises(InputError, match=message):
            networks.build(name, table, 4)
    network = networks.build("mlp", table, 4)
    parameters = random_parameters(network, 4)
    p, format = arrays(parameters), table.format
    x = (table.train.inputs.reshape(3, 30) / format.scale - np.array(format.mean)) / np.array(format.deviation)
    expected = dense(p["out"], np.maximum(dense(p["hidden"], x), 0))
    np.testing.assert_allclose(answer(network, parameters, table), expected, atol=1e-4)


def test_mlp_by_hand():
    task = tasks.load("digits")
    network = networks.build("mlp", task, width=5)
    parameters = random_parameters(network, 5)
    p = arrays(parameters)
    assert p["hidden"]["kernel"].shape == (64, 5)
    assert p["out"]["kernel"].shape == (5, 10)
    x = task.train.inputs[:3].reshape(3, 64) / 16.0
    expected = dense(p["out"], np.maximum(dense(p["hidden"], x), 0))
    logits = answer(network, parameters, task, task.train.inputs[:3])
    np.testing.assert_allclose(logits, expected, atol=1e-5)


@pytest.mark.parametrize(("name", "task"), named(PAIR_NETWORKS))
def test_padding_changes_no_answer(name, task):
    network = networks.build(name, task, TEXT_WIDTH)
    parameters = random_parameters(network, TEXT_WIDTH)
    longer = tuple(np.pad(sentence, ((0, 0), (0, 7))) for sentence in task.train.inputs)
    np.testing.assert_allclose(answer(network, parameters, task), answer(network, parameters, task, longer), atol=1e-6)


@pytest.mark.parametrize(
    ("name", "task"),
    named(
        [("mlp", IMAGES), ("lenet", IMAGES), ("resnet", IMAGES), ("lstm_study", TEXT), *PAIR_NETWORKS],
        slow=("nse", "esim", "cnn_study"),
    ),
)
def test_a_masked_network_is_a_narrower_one(name, task):
    active = width_for(task)
    width = active + 1
    wide, narrow = networks.build(name, task, width), networks.build(name, task, active)
    parameters = random_parameters(wide, width, active=active)
    like = random_parameters(narrow, active)

    def cut(path, leaf, small):
        """The units that are active, along each axis that grows with the width."""
        path, leaf = jax.tree_util.keystr(path), np.asarray(leaf)
        for axis, size in enumerate(leaf.shape):
            if size != small.shape[axis]:
                block = units_in_turn(name, path, axis, size, width)
                leaf = leaf.take(np.flatnonzero(np.arange(size) % block // (block // width) < active), axis)
        return leaf

    @jax.jit
    def gradients_and_logits(parameters):
        def loss(parameters):
            logits = wide.logits(parameters, embeddings(task), task.train.inputs, None)
            return jnp.sin(logits).sum(), logits

        return jax.grad(loss, has_aux=True)(parameters)

    gradients, logits = gradients_and_logits(parameters)
    sliced = jax.tree_util.tree_map_with_path(cut, parameters, like)
    np.testing.assert_allclose(logits, answer(narrow, sliced, task), atol=1e-5)
    kept = jax.tree_util.tree_map_with_path(cut, gradients, like)
    for all_units, active_units in zip(*map(jax.tree.leaves, (gradients, kept)), strict=True):
        assert np.isfinite(all_units).all()
        assert np.count_nonzero(all_units) == np.count_nonzero(active_units)  # masked units have no gradient


def units_in_turn(name, path, axis, size, width):
    """After how many units the mask begins anew: a wider layer repeats each place of it, concatenated layers all."""
    if name == "lenet":
        return 2 * width if "['hidden']['kernel']" in path and axis == 0 else size  # pixels, channels
    if name == "resnet":
        return size
    after_joining = "out" in path or ("layers" in path and not ("[0]['kernel']" in path and axis == 0))
    return size if name in ("lstm", "cnn") and after_joining else width


@pytest.mark.parametrize(("name", "task"), named([("mlp", IMAGES), ("lstm", PAIR)]))
def test_initial_weights_follow_the_key(name, task):
    init = jax.jit(networks.build(name, task, width=3).init)
    one, same, other = (jax.tree.leaves(init(jax.random.key(seed), 3)) for seed in (0, 0, 1))
    assert all(np.array_equal(a, b) for a, b in zip(one, same, strict=True))
    assert any(not np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    assert all(leaf.dtype == jnp.float32 for leaf in one)


@pytest.mark.parametrize(
    ("name", "task", "dropout"), named([("mlp", IMAGES, 0.5), ("lenet", IMAGES, None), ("lstm", TEXT, None)])
)
def test_dropout_follows_the_key_and_is_absent_without_one(name, task, dropout):
    network = networks.build(name, task, width_for(task), dropout=dropout)
    parameters = random_parameters(network, width_for(task))
    logits = jax.jit(network.logits)
    arguments = parameters, embeddings(task), task.train.inputs
    without = logits(*arguments, None)
    np.testing.assert_array_equal(without, logits(*arguments, None))
    one, same, other = (logits(*arguments, jax.random.key(seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 1e-3
    assert np.abs(one - without).max() > 1e-3


def test_the_lenet_of_the_studies_drops_out_hidden_units_alone():
    network = networks.build("lenet_study", IMAGES, IMAGE_WIDTH)
    parameters = random_parameters(network, IMAGE_WIDTH)
    out = np.zeros((8 * IMAGE_WIDTH, 3), np.float32)
    out[[0, 8, 16], [0, 1, 2]] = 1  # a logit is one hidden unit
    parameters["out"]["kernel"].set_value(jnp.asarray(out))
    parameters["out"]["bias"].set_value(jnp.zeros(3))
    parameters["hidden"]["bias"].set_value(jnp.full(8 * IMAGE_WIDTH, 20.0))  # beyond the rectifier
    logits = jax.jit(network.logits)
    whole = np.asarray(logits(parameters, None, IMAGES.train.inputs, None))
    drawn = np.array([logits(parameters, None, IMAGES.train.inputs, jax.random.key(seed)) for seed in range(20)])
    kept = drawn != 0
    assert (whole > 0).all()
    assert 0.3 < kept.mean() < 0.7
    np.testing.assert_allclose(drawn[kept], np.broadcast_to(2 * whole, drawn.shape)[kept], rtol=1e-5)


@pytest.mark.parametrize(("name", "task"), named([("lstm", TEXT), ("lenet", IMAGES)]))
def test_members_of_a_vmapped_crowd_answer_as_alone(name, task):
    width = width_for(task)
    network = networks.build(name, task, width)
    members = [random_parameters(network, width, seed, active) for seed, active in ((0, width), (1, 2), (2, width - 1))]
    crowd = jax.tree.map(lambda *leaves: jnp.stack(leaves), *members)
    together = jax.jit(jax.vmap(lambda p: network.logits(p, embeddings(task), task.train.inputs, None)))(crowd)
    for parameters, logits in zip(members, together, strict=True):
        np.testing.assert_allclose(logits, answer(network, parameters, task), atol=1e-5)


def test_bad_requests_are_named():
    with pytest.raises(InputError, match="unknown network 'rnn', expected one of mlp, lenet, vgg16, resnet, lstm, cnn"):
        networks.build("rnn", IMAGES, 4)
    with pytest.raises(InputError, match="width 0, expected at least 1"):
        networks.build("mlp", IMAGES, 0)
    with pytest.raises(InputError, match=r"dropout 1\.0, expected at least 0 and less than 1"):
        networks.build("mlp", IMAGES, 4, dropout=1.0)
    with pytest.raises(InputError, match="'lstm' reads text; for task 'images', choose mlp, lenet, vgg16, resnet"):
        networks.build("lstm", IMAGES, 4)
    with pytest.raises(InputError, match="'lenet' reads images; for task 'text', choose lstm, cnn, nse, esim"):
        networks.build("lenet", PAIR, 4)
    with pytest.raises(InputError, match="'esim' reads pairs of sentences; for task 'text', choose lstm, cnn, nse"):
        networks.build("esim", TEXT, 4)


def test_one_network_a_size():
    assert networks.build("lstm", TEXT, 4) is networks.build("lstm", TEXT, 4)
    assert networks.build("lstm", TEXT, 4) is not networks.build("lstm", TEXT, 5)
