"""Hashed permutations and bits: bijections, even, and different from key to key."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.networks.hashing import mix, permute, random_bits

MOST_PLACES = 1025


@jax.jit
def permutations(keys, size):
    """Images of `MOST_PLACES` places, which begin anew after `size` of them, under the permutation of each key."""
    return jax.vmap(permute, (0, None, None))(keys, jnp.arange(MOST_PLACES) % size, size)


def keys_of(*seeds):
    return jax.vmap(jax.random.key)(jnp.array(seeds))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 16, 17, 1000, MOST_PLACES])
def test_permutations_are_permutations(size):
    for taken in permutations(keys_of(0, 1, 2), jnp.int32(size)):
        np.testing.assert_array_equal(np.sort(taken[:size]), np.arange(size))


def test_places_are_taken_anywhere_alike():
    size, draws = 12, 6000
    keys = jax.random.split(jax.random.key(0), draws)
    taken = np.asarray(jax.jit(jax.vmap(lambda key: permute(key, jnp.arange(size), jnp.int32(size))))(keys))
    for place in range(size):
        counts = np.bincount(taken[:, place], minlength=size)
        assert ((counts - draws / size) ** 2 / (draws / size)).sum() < 31.3  # 11 degrees of freedom, p = 0.001
    # neighbours do not stay neighbours: each of the size - 1 other places as likely
    apart = np.bincount((taken[:, 1] - taken[:, 0]) % size, minlength=size)[1:]
    assert ((apart - draws / 11) ** 2 / (draws / 11)).sum() < 29.6


def test_the_permutation_follows_the_key():
    one, same, other = np.asarray(permutations(keys_of(0, 0, 1), jnp.int32(100)))[:, :100]
    np.testing.assert_array_equal(one, same)
    assert (one != other).mean() > 0.9


def test_mix_by_hand():
    def by_hand(x):
        x = ((x ^ x >> 16) * 0x7FEB352D) % 2**32
        x = ((x ^ x >> 15) * 0x846CA68B) % 2**32
        return x ^ x >> 16

    values = [0, 1, 2, 12345, 2**31, 2**32 - 1]
    np.testing.assert_array_equal(jax.jit(mix)(jnp.array(values, jnp.uint32)), [by_hand(value) for value in values])


def test_bits_are_even_and_unrelated():
    bits = np.asarray(jax.jit(random_bits, static_argnums=1)(jax.random.key(3), 40_000))
    ones = np.unpackbits(bits.view(np.uint8)).reshape(-1, 32).mean(0)
    np.testing.assert_allclose(ones, 0.5, atol=0.011)  # 4.4 standard errors
    one, other = (((bits >> shift) & 0xFF).astype(float) for shift in (0, 8))
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.02
    assert abs(np.corrcoef(one[1:], one[:-1])[0, 1]) < 0.02
    assert len(np.unique(bits)) > 39_900
