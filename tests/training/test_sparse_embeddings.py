"""Trained word vectors: what a step by rows does is what a step of the whole table would."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from irtjax.training import sparse_embeddings as own_embeddings
from irtjax.training.data import Owned, split_embeddings
from irtjax.training.recipe import optimizer_of
from irtjax.training.sparse_embeddings import NO_WORD

RNG = np.random.default_rng(0)
TABLE = jnp.asarray(RNG.normal(size=(11, 3)), jnp.float32)


def test_renumbered_sentences_have_the_same_vectors():
    sentences = (jnp.array([[3, 5, 0], [5, 1, 9]], jnp.uint8), jnp.array([[2, 0], [3, 3]], jnp.uint8))
    words, local = own_embeddings.renumber(sentences)
    assert words.shape == (11,)
    np.testing.assert_array_equal(words, [0, 1, 2, 3, 5, 9] + [NO_WORD] * 5)
    rows = own_embeddings.rows_of(TABLE, words)
    for before, after in zip(sentences, local, strict=True):
        np.testing.assert_array_equal(rows[after], TABLE[before])
        np.testing.assert_array_equal(after == 0, before == 0)  # padding stays padding
    without = own_embeddings.renumber((jnp.array([[4, 4]]),))[1][0]
    assert (without > 0).all()  # even where there is none


@pytest.mark.parametrize(
    "arguments", [("adam",), ("adam", 0.0, 0.1), ("sgd",), ("sgd", 0.9), ("sgd", 0.0, 0.1), ("sgd", 0.5, 0.1)]
)
def test_rows_follow_the_optimizer_and_the_others_stay(arguments):
    optimizer = optimizer_of(*arguments)
    own, table = optimizer.init(TABLE), TABLE
    state, dense = optimizer.init(TABLE), TABLE
    words = jnp.array([2, 7, NO_WORD])
    for at in range(4):  # the same rows in every step: lazy updates are those of the whole table
        gradient = jnp.asarray(RNG.normal(size=(3, 3)), jnp.float32)
        table, own = own_embeddings.update(optimizer, table, own, words, gradient, jnp.float32(0.01), at != 2)
        if at == 2:
            continue
        whole = jnp.zeros_like(TABLE).at[words[:2]].set(gradient[:2])
        updates, state = optimizer.update(whole, state, dense)
        dense = optax.apply_updates(dense, jax.tree.map(lambda step: 0.01 * step, updates))
    np.testing.assert_allclose(table[words[:2]], dense[words[:2]], rtol=1e-5)
    others = np.setdiff1d(np.arange(11), words[:2])
    np.testing.assert_array_equal(table[others], TABLE[others])


def test_rows_seen_now_and_then_keep_their_moments():
    adam = optimizer_of("adam")
    state, table = adam.init(TABLE), TABLE
    for words in ([1], [4], [1]):
        table, state = own_embeddings.update(adam, table, state, jnp.array(words), jnp.ones((1, 3)), jnp.float32(0.1))
    # by hand: the mean of row 1 after two gradients of 1 is 1 - 0.9², corrected by three steps
    np.testing.assert_allclose(state[0].mu[1], 1 - 0.9**2, rtol=1e-6)
    assert state[0].count == 3
    first = 1.0
    second = ((1 - 0.9**2) / (1 - 0.9**3)) / np.sqrt((1 - 0.999**2) / (1 - 0.999**3))
    np.testing.assert_allclose(TABLE[1] - table[1], 0.1 * (first + second), rtol=1e-4)


def test_padded_rows_are_passed_over():
    words, rows = own_embeddings.pad_rows(jnp.array([3]), jnp.ones((1, 3)), 4)
    np.testing.assert_array_equal(words, [3] + [NO_WORD] * 3)
    adam = optimizer_of("adam")
    table, _ = own_embeddings.update(adam, TABLE, adam.init(TABLE), words, rows, jnp.float32(0.1))
    assert (table != TABLE).any(axis=1).sum() == 1


def test_own_vectors_come_before_shared_ones():
    assert split_embeddings(Owned("network", "own"), "shared") == ("network", "own")
    assert split_embeddings("network", "shared") == ("network", "shared")


def test_padding_and_absent_words_have_zeros():
    assert (own_embeddings.rows_of(TABLE, jnp.array([NO_WORD])) == 0).all()
    gradient = jax.grad(lambda table: own_embeddings.rows_of(table, jnp.array([NO_WORD, 2])).sum())(TABLE)
    assert gradient.sum() == 3
