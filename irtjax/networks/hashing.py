"""Random bits and permutations by hashing counters.

`jax.random` is good enough for everything, and slow within a training step on a CPU: drawing the bits of a dropout
takes longer than much of the step, and a shuffle that sorts all examples longer than many steps. For dropout and the
order of minibatches, a hash is good enough.
"""

import jax
import jax.numpy as jnp

ROUNDS = 6


def mix(x: jax.Array) -> jax.Array:
    """A bijection of 32-bit integers whose every output bit depends on every input bit evenly (Wellons 2018)."""
    x = (x ^ (x >> 16)) * jnp.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * jnp.uint32(0x846CA68B)
    return x ^ (x >> 16)


def random_bits(key: jax.Array, count: int) -> jax.Array:
    """(count,) uint32: two rounds of `mix` over a counter, each with a word of the key."""
    first, second = jax.random.bits(key, (2,), jnp.uint32)
    return mix(mix(jnp.arange(count, dtype=jnp.uint32) ^ first) + second)


def permute(key: jax.Array, places: jax.Array, size: jax.Array | int) -> jax.Array:
    """Images of some places under a random permutation of 0 … size - 1; the cost is proportional to their number.

    A Feistel network permutes the numbers of as many bits as `size` takes. Numbers that it leads out of range pass
    through it again until they are back in range, which keeps it a permutation (cycle walking, Black and Rogaway 2002).

    Args:
        key: of the permutation.
        places: any shape, integers from 0 to size - 1.
        size: scalar, at least 1.

    Returns:
        int32, the shape of `places`; different places have different images.
    """
    size = jnp.asarray(size, jnp.uint32)
    bits = 32 - jax.lax.clz(size - 1)
    low = bits // 2
    low_mask, high_mask = (jnp.uint32(1) << low) - 1, (jnp.uint32(1) << (bits - low)) - 1
    words = jax.random.bits(key, (ROUNDS,), jnp.uint32)

    def network(x: jax.Array) -> jax.Array:
        left, right = x >> low, x & low_mask
        for at in range(0, ROUNDS, 2):
            left = left ^ (mix(right ^ words[at]) & high_mask)
            right = right ^ (mix(left ^ words[at + 1]) & low_mask)
        return left << low | right

    def back(x: jax.Array) -> jax.Array:
        return jnp.where(x < size, x, network(x))

    return jax.lax.while_loop(lambda x: (x >= size).any(), back, network(places.astype(jnp.uint32))).astype(jnp.int32)
