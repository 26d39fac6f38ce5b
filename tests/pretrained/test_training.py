"""Text read by an encoder: word pieces in a task, fine-tuning, and vectors that are computed once."""

import dataclasses

import jax
import numpy as np
import pandas as pd
import pytest
from folders import PIECES, WORDS, states, weights, write_folder

from irtjax import InputError, networks
from irtjax.crowd.train import train_crowd
from irtjax.pretrained.folder import read_pretrained
from irtjax.tasks.extra_items import read_split
from irtjax.tasks.options import TaskOptions
from irtjax.tasks.pairs import pack, packed
from irtjax.tasks.sentences import make_task
from irtjax.tasks.text import Examples, describe, lengths, lengths_of_first
from irtjax.training.features import features, frozen, frozen_examples
from irtjax.training.recipe import default_recipe, make_trainer
from irtjax.training.step import share_of_rate

RNG = np.random.default_rng(0)
CLASSES = ("negative", "positive")


def examples(count, sentences=1, name=""):
    """Five random words, so that one program is compiled, of one half of them in positive examples."""
    positive = RNG.random(count) < 0.5
    words = [[list(RNG.choice(WORDS[:6] if at else WORDS[6:12], 5)) for at in positive] for _ in range(sentences)]
    ids = np.array([f"{name} item {at}" for at in range(count)])
    return Examples(tuple([" ".join(one) for one in part] for part in words), np.array(positive, np.int32), ids)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("encoder"))


def make(folder, sentences=1, **options):
    splits = {
        name: examples(count, sentences, name) for name, count in (("train", 96), ("validation", 32), ("test", 32))
    }
    return make_task("toy", splits, CLASSES, TaskOptions(pretrained=str(folder), **options))


@pytest.fixture(scope="module")
def task(folder):
    return make(folder)


def test_a_task_in_word_pieces(task):
    assert task.format.vocabulary == tuple(PIECES)
    (rows,) = task.train.inputs
    spelled = [" ".join(PIECES[number] for number in row if number) for row in rows[:5]]
    assert spelled == [f"[CLS] {text} [SEP]" for text in task.train.texts[:5]]
    assert set(networks.choices(task)) == {"lstm", "cnn", "nse", "bert", "lstm_study", "cnn_study"}
    np.testing.assert_array_equal(task.format.embeddings, weights()["embeddings.word_embeddings.weight"])


def test_a_pair_has_one_beginning(folder):
    first, second = (PIECES[row[0]] for row in (part[0] for part in make(folder, 2).train.inputs))
    assert first == "[CLS]"
    assert second != "[CLS]"


def test_packed_pairs_are_read_as_pairs(folder, tmp_path):
    """One row, without padding between the sentences, has the logits of two."""
    task = make(folder, 2)
    short = task.train.inputs[0].copy()
    short[::2, 3:] = [PIECES.index("[SEP]"), *[0] * (short.shape[1] - 4)]  # of half of the pairs
    task = dataclasses.replace(task, train=task.train._replace(inputs=(short, task.train.inputs[1])))
    one = packed(task)
    network = networks.build("bert", one, 8)
    parameters = jax.jit(network.init, static_argnums=1)(jax.random.key(0), 8, task.format.encoder.weights)
    answer = jax.jit(network.logits)
    logits = [answer(parameters, task.format.embeddings, each.train.inputs) for each in (one, task)]
    np.testing.assert_allclose(*logits, atol=1e-5)
    assert np.std(logits[0], axis=0).min() > 0.01
    (rows,) = one.train.inputs
    assert one.format.buckets[0][0] < one.format.buckets[-1][0] == rows.shape[1]
    assert all((row[np.count_nonzero(row) :] == 0).all() for row in rows)
    np.testing.assert_array_equal(lengths_of_first(one), lengths_of_first(task))
    assert lengths_of_first(one)[0] == 4
    np.testing.assert_array_equal(lengths(one.train), lengths(task.train))
    assert (one.format.sentences, task.format.sentences, packed(make(folder)).format.sentences) == (2, 2, 1)

    texts = pd.DataFrame([text.split(" / ") for text in task.test.texts], columns=["premise", "hypothesis"])
    texts.assign(item_id=task.test.ids, label=task.test.labels).to_csv(tmp_path / "more.csv", index=False)
    more = read_split(str(tmp_path / "more.csv"), one)
    np.testing.assert_array_equal(more.inputs[0], one.test.inputs[0])

    rows = pack((np.array([[5, 6, 7, 8, 9, 10]]), np.array([[11, 12, 0, 0]])), 40, 6)  # too long: of both something
    assert rows.tolist() == [[5, 6, 7, 8, 51, 52]]
    rows = pack((np.array([[5, 6, 7, 8]]), np.array([[11, 12, 13, 14, 15]])), 40, 5)
    assert rows.tolist() == [[5, 6, 51, 52, 53]]

    assert networks.choices(one) == ("bert",)
    with pytest.raises(InputError, match="word vectors cannot be trained where pairs are packed"):
        make_trainer(dataclasses.replace(default_recipe(one, "bert"), train_embeddings=True), one)
    with pytest.raises(InputError, match="toy was loaded without an encoder"):
        packed(frozen(task))
    with pytest.raises(InputError, match="pairs are packed, and a frozen encoder reads their sentences apart"):
        frozen(one)
    with pytest.raises(InputError, match="pairs are packed, and their texts were not kept"):
        describe(one, one.test._replace(texts=None))


def test_other_words_are_refused(folder):
    with pytest.raises(InputError, match="`glove`=vectors: `pretrained` has words of its own"):
        TaskOptions(pretrained=str(folder), glove="vectors").check("sst2", ())
    text = make_task(
        "toy", dict.fromkeys(("train", "validation", "test"), examples(20)), CLASSES, TaskOptions(min_count=1)
    )
    with pytest.raises(InputError, match="network 'bert' begins from weights that others have trained"):
        networks.build("bert", text, 8)


def fine_tuning(task):
    return dataclasses.replace(default_recipe(task, "bert"), width=8, batch_size=16, max_epochs=12, patience=12)


def test_fine_tuning_begins_from_the_weights(task, folder):
    recipe = fine_tuning(task)
    assert (recipe.clip, recipe.weight_decay, recipe.steps_per_epoch) == (1.0, 0.01, None)
    network = networks.build("bert", task, 8)
    pretrained = read_pretrained(folder)
    parameters = network.init(jax.random.key(0), 8, pretrained.weights)
    np.testing.assert_array_equal(parameters["encoder"]["positions"][...], pretrained.weights["positions"])
    kernel = parameters["encoder"]["layers"][1]["inner"]["kernel"][...]
    np.testing.assert_array_equal(kernel, weights()["encoder.layer.1.intermediate.dense.weight"].T)


@pytest.mark.slow
def test_fine_tuning_moves_the_weights(task):
    recipe = fine_tuning(task)
    table = {"seed": [1, 2], "subset_size": [96, 96], "corruption_rate": [0.0, 0.0], "learning_rate": [2e-2, 2e-2]}
    members = pd.DataFrame(
        {"subject_id": ["model_0", "model_1"], **table, "width": [8, 8], "network": ["bert", "bert"]}
    )
    crowd = train_crowd(task, members=members, recipe=recipe, slots=1)
    accuracy = (crowd.predictions["train"] == task.train.labels).mean(1)
    assert (accuracy > 0.85).all()


def test_vectors_of_sentences_by_the_equations(task, tmp_path, monkeypatch):
    monkeypatch.setenv("IRTJAX_CACHE", str(tmp_path))
    found = features(task.format, task.format.encoder, task.test)
    for at in range(3):
        pieces = task.test.inputs[0][at]
        expected = states(weights(), pieces[pieces != 0], np.zeros((pieces != 0).sum(), int)).mean(0)
        np.testing.assert_allclose(found[at], expected, atol=1e-5)
    assert len(list(tmp_path.iterdir())) == 1
    np.testing.assert_array_equal(features(task.format, task.format.encoder, task.test), found)  # from the cache


def test_vectors_of_a_pair(folder):
    """Each sentence is read by itself."""
    task = make(folder, 2)
    found = features(task.format, task.format.encoder, task.test)
    u, v = (
        states(weights(), pieces, np.zeros(len(pieces), int)).mean(0)
        for pieces in (
            task.test.inputs[0][0][task.test.inputs[0][0] != 0],
            np.concatenate([[PIECES.index("[CLS]")], task.test.inputs[1][0][task.test.inputs[1][0] != 0]]),
        )
    )
    np.testing.assert_allclose(found[0], np.concatenate([u, v, np.abs(u - v), u * v]), atol=1e-5)


def test_a_frozen_task_is_one_of_vectors(task):
    still = frozen(task)
    assert still.train.inputs.shape == (96, 1, 1, 12)
    assert describe(still, still.test) == list(task.test.texts)
    assert "mlp" in networks.choices(still)
    with pytest.raises(InputError, match="toy was loaded without an encoder"):
        frozen(still)


@pytest.mark.parametrize("sentences", [1, 2])
def test_further_examples_of_a_frozen_task(folder, sentences):
    """The texts of its test split, as examples from elsewhere, have the vectors of that split."""
    task = make(folder, sentences)
    parts = zip(*(text.split(" / ") for text in task.test.texts), strict=True)
    more = Examples(tuple(list(part) for part in parts), task.test.labels, task.test.ids)
    found, own = frozen_examples(more, task.format.encoder), frozen(task).test
    np.testing.assert_allclose(found.inputs, own.inputs, atol=1e-5)
    assert list(found.texts) == list(own.texts)
    np.testing.assert_array_equal(found.labels, own.labels)
    np.testing.assert_array_equal(found.ids, own.ids)


def test_the_rate_warms_up_and_falls():
    """As a straight line over all minibatches that there may be: ten, of which two are to warm up."""
    rates = [float(share_of_rate(0.2, step / 10, 1 / 10)) for step in range(12)]
    np.testing.assert_allclose(rates, [1 / 2, 1, 1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8, 0, 0], atol=1e-6)
    assert share_of_rate(None, 0.3, 0.1) == 1
    assert float(share_of_rate(0.2, 19 / 20, 1 / 20)) == pytest.approx(1 / 16)
    assert float(share_of_rate(0.01, 0.0, 1 / 20)) == 1  # at least one minibatch warms up
