"""Networks that users bring: they train as ours do, and what is wrong with one is said in one line."""

import dataclasses
import functools
import re

import example_networks
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from example_tasks import arrays, dense, images, text

from irtjax import InputError, networks, tasks
from irtjax.crowd import CrowdDesign, train_crowd
from irtjax.crowd.members import sample_members
from irtjax.networks.resnet import ResNet
from irtjax.training.recipe import Recipe, make_trainer

DIGITS = tasks.load("digits")
KEY = jax.random.key(0)
INPUTS = DIGITS.train.inputs[:4]
RECIPE = Recipe(width=6, patience=1, max_epochs=2, steps_per_epoch=5)


def yours(name):
    return f"example_networks:{name}"


def logits(name, key=None):
    """Of a few digits, with initial parameters."""
    network = networks.build(yours(name), DIGITS, 5)
    parameters = jax.jit(network.init)(KEY, 5)
    return parameters, np.asarray(jax.jit(network.logits)(parameters, None, INPUTS, key))


def test_every_form_is_what_it_was():
    parameters, found = logits("Perceptron")
    hidden, out = (arrays(parameters)[layer] for layer in ("hidden", "out"))
    expected = dense(out, np.tanh(dense(hidden, INPUTS.reshape(4, 64) / 16)))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    parameters, found = logits("Functions")
    np.testing.assert_allclose(found, INPUTS.reshape(4, 64) / 16 @ parameters["kernel"], atol=1e-6)
    for name in ("OfLinen", "ONE_OF_LINEN"):
        parameters, found = logits(name)
        module, x = example_networks.OfLinen(10, 5), (INPUTS - DIGITS.format.mean[0]) / 16
        applied = jax.jit(module.apply, static_argnums=2)({"params": parameters}, jnp.asarray(x, jnp.float32), False)
        np.testing.assert_allclose(found, applied, atol=1e-5)


@pytest.mark.parametrize("name", ["Perceptron", "OfLinen"])
def test_dropout_follows_the_key(name):
    (_, without), (_, one), (_, same), (_, other) = (logits(name, key) for key in (None, KEY, KEY, jax.random.key(1)))
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 1e-3
    assert np.abs(one - without).max() > 1e-3


@pytest.mark.parametrize("name", ["MeanOfWords", "WordsOfLinen"])
def test_text_of_every_length(name):
    task = text(1)
    network = networks.build(yours(name), task, 4)
    parameters = jax.jit(network.init)(KEY, 4)
    kernel = next(leaf for leaf in jax.tree.leaves(parameters) if leaf.ndim == 2)
    for length in (7, 3):
        words = task.train.inputs[0][:, :length]
        expected = task.format.embeddings[words].mean(1) @ np.asarray(kernel)
        found = jax.jit(network.logits)(parameters, task.format.embeddings, (words,), None)
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_same_network_each_time():
    name = yours("Perceptron")
    network = networks.build(name, DIGITS, 5)
    assert networks.build(name, DIGITS, 5) is network
    assert networks.build(networks.from_module(example_networks.Perceptron), DIGITS, 5) is network
    assert networks.build(name, DIGITS, 6) is not network
    assert make_trainer(Recipe(name, 5), DIGITS) == make_trainer(Recipe(name, 5), DIGITS)


def test_registered_from_python():
    class Local(example_networks.Copy):
        pass

    name = networks.from_module(Local)
    first = networks.build(name, DIGITS, 5)

    class Local(example_networks.Copy):  # written anew, as in a notebook
        pass

    assert networks.from_module(Local) == name
    assert networks.build(name, DIGITS, 5) is not first
    deeper = networks.from_module(functools.partial(ResNet, blocks=2), "resnet14")
    assert networks.signature(deeper, DIGITS, 4) != networks.signature("resnet", DIGITS, 4)
    pair = example_networks.Functions
    same = networks.build(networks.from_functions(pair.init, pair.logits, name="regression"), DIGITS, 5)
    assert jax.eval_shape(same.init, KEY, 5)["kernel"].shape == (64, 10)
    for source, other, message in (
        (Local, "a,b", "`name`=a,b: expected letters"),
        (example_networks.ONE_OF_LINEN, None, "`name` is missing"),
        (Local, "mlp", "`name`=mlp: is one of ours"),
    ):
        with pytest.raises(InputError, match=message):
            networks.from_module(source, other)


WRONG = {
    "Transposed": r"logits of shape \(10, 11\) for the inputs of digits, uint8 \(11, 8, 8, 1\), expected \(11, 10\)",
    "FixedClasses": r"logits of shape \(11, 2\)",
    "OfBatches": r"norm\.mean \(BatchStat\) is state .* normalise by groups or layers",
    "LinenOfBatches": r"BatchNorm_0\.mean \(batch_stats\) is state",
    "OwnDropout": r"drop\.rngs\.count \(RngCount\) is a stream of random numbers: draw dropout from `key`",
    "Keyless": r"is called with \(embeddings, inputs, key\).* but it takes \(embeddings, inputs\)",
    "KeylessFunctions": r"logits is called with \(parameters, embeddings, inputs, key\).* but it takes \(parameters",
    "AlwaysDrops": r"without a key raises InvalidRngError: .*example_networks\.py\)",
    "Raising": r"reading the inputs of digits, .* raises TypeError: .*\(line \d+ of .*example_networks\.py\)",
    "Branching": r"raises TracerBoolConversionError: .*\(line \d+ of .*example_networks\.py\)",
    "KeepsActive": r"self\.active is an array: make it an nnx\.Param",
    "TakesNothing": r"building it from \(sizes, active, rngs=rngs\) raises TypeError: TakesNothing\.__init__\(\)",
    "Integers": r"parameter table is of int32, which has no gradient",
    "NUMBER": r"is of type int: expected a class of Flax NNX, a module of Flax Linen, or an object with the functions",
    "function": r"is of type function: expected a class",
    "Nothing": r"module example_networks has no 'Nothing'",
}


def test_what_is_wrong_is_said_in_one_line():
    for name, message in WRONG.items():
        with pytest.raises(InputError, match=f"^`network`={yours(name)}: .*{message}") as caught:
            networks.build(yours(name), DIGITS, 5)
        assert "\n" not in str(caught.value)


def test_names_that_lead_nowhere(tmp_path, monkeypatch):
    (tmp_path / "broken_networks.py").write_text("import numpy\n\nraise OSError('no luck')\n")
    (tmp_path / "needs_networks.py").write_text("import no_such_package\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name, message in {
        "no_networks:A": "no module 'no_networks' in the current folder or among installed packages",
        "os.no_part:A": "no module 'os.no_part'",
        "broken_networks:A": r"importing broken_networks raises OSError: no luck \(line 3 of .*broken_networks.py\)",
        "needs_networks:A": "importing needs_networks raises ModuleNotFoundError: No module named 'no_such_package'",
        "a b:A": "expected package.module:NAME",
        "tests:test_x.<locals>.A": "expected package.module:NAME",
    }.items():
        with pytest.raises(InputError, match=f"^`network`={re.escape(name)}: {message}"):
            networks.require(name)


def test_text_of_one_length_is_refused():
    task = text(1, 7)
    networks.build(yours("FirstWords"), task, 4)  # no other length there
    cut = dataclasses.replace(task, format=dataclasses.replace(task.format, buckets=((3,), (7,))))
    with pytest.raises(InputError, match=r"reading the inputs of text, uint8 \(4, 3\), without a key raises"):
        networks.build(yours("FirstWords"), cut, 4)
    packed = dataclasses.replace(task, format=dataclasses.replace(task.format, packed=True))
    with pytest.raises(InputError, match="pairs of text are packed"):
        networks.build(yours("FirstWords"), packed, 4)


def test_classes_are_those_of_the_task():
    with pytest.raises(InputError, match=r"expected \(4, 3\): one for each of the 3 classes"):
        networks.build(yours("FixedClasses"), images(4, 4, 1), 4)


def members_of(*names, min_width=None, number=6):
    design = CrowdDesign(min_subset=100, min_width=min_width, networks=names)
    return sample_members(number, 1197, 0, RECIPE, design)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A crowd of ours and of the same under a user's name, two of each width and seed; and where it was kept."""
    folder = tmp_path_factory.mktemp("mixed")
    half = members_of("mlp", number=3, min_width=2)
    doubled = half.choose(np.repeat(np.arange(3), 2))
    members = dataclasses.replace(doubled, number=np.arange(6), network=np.array(["mlp", yours("Copy")] * 3))
    return members, train_crowd(DIGITS, members, recipe=RECIPE, slots=1, checkpoints=folder), folder


def test_a_crowd_of_yours_and_ours(mixed):
    _, crowd, _ = mixed
    assert crowd.members.network.tolist() == ["mlp", yours("Copy")] * 3
    for responses in crowd.responses.values():
        np.testing.assert_array_equal(responses.values[::2], responses.values[1::2])
    assert (crowd.responses["train"].values[0] != crowd.responses["train"].values[2]).any()


def test_another_network_does_not_go_on(mixed, monkeypatch):
    members, _, folder = mixed
    options = {"recipe": RECIPE, "slots": 1, "checkpoints": folder}
    other = dataclasses.replace(
        members, network=np.array(["mlp", networks.from_module(example_networks.Copy, "other")] * 3)
    )
    with pytest.raises(InputError, match="holds networks in training with other"):
        train_crowd(DIGITS, other, **options)

    class Wider(example_networks.Copy):
        def __init__(self, sizes, active, *, rngs):
            super().__init__(dataclasses.replace(sizes, width=2 * sizes.width), active, rngs=rngs)

    before = networks.signature(yours("Copy"), DIGITS, 6)
    monkeypatch.setattr(example_networks, "Copy", Wider)
    monkeypatch.delitem(networks.yours._KNOWN, yours("Copy"))  # as in a new process
    assert networks.signature(yours("Copy"), DIGITS, 6) != before
    with pytest.raises(InputError, match="holds networks in training with other"):
        train_crowd(DIGITS, members, **options)


def test_members_of_different_width_need_a_mask():
    assert not networks.follows_width(yours("Functions"), DIGITS, 6)
    assert networks.follows_width(yours("Copy"), DIGITS, 6)
    with pytest.raises(
        InputError, match=r"model_\d+: width \d, but network example_networks:Perceptron masks no hidden"
    ):
        train_crowd(DIGITS, members_of(yours("Perceptron"), min_width=2), recipe=RECIPE)
    with pytest.raises(InputError, match="`network`=example_networks:Keyless"):
        train_crowd(DIGITS, members_of("mlp", yours("Keyless")), recipe=RECIPE)


@pytest.mark.slow
def test_networks_beyond_flax_learn():
    recipe = dataclasses.replace(RECIPE, max_epochs=6, patience=6, steps_per_epoch=40, learning_rate=0.02)
    members = members_of(yours("Functions"), yours("OfLinen"))
    members = dataclasses.replace(
        members, corruption_rate=np.zeros(6, np.float32), subset_size=np.full(6, 1000, np.int32)
    )
    crowd = train_crowd(DIGITS, members, recipe=recipe, slots=3)
    by_network = crowd.members.groupby("network").accuracy_test.min()
    assert by_network[yours("Functions")] > 0.85
    assert by_network[yours("OfLinen")] > 0.6  # six hidden units, half of them dropped
