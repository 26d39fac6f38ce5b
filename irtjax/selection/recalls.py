"""A measure of accuracy that falls to 0 where a network has one class all wrong."""

import jax
import jax.numpy as jnp

from irtjax.types import AnyArray, Bool, Float, Int, UInt


def geometric_mean_of_recalls(
    right: Bool[AnyArray, " N"], labels: Int[AnyArray, " N"] | UInt[AnyArray, " N"], num_classes: int
) -> Float[jax.Array, ""]:
    """(r_1 · … · r_C)^(1/C), where r_c is the share of right answers among the examples of class c.

    0 if all answers to some class are wrong, such as those of a network that always says another (Kubat, Holte and
    Matwin 1998, for two classes). Classes without an example do not count; NaN if none has one.

    Args:
        right: (N,) whether a network is right about each example.
        labels: (N,) of the examples, from 0 to C - 1, as tasks have them; no others are refused.
        num_classes: C.
    """
    of_class = jnp.zeros(num_classes).at[labels].add(1)
    recalls = jnp.zeros(num_classes).at[labels].add(right) / jnp.maximum(of_class, 1)
    exists = of_class > 0
    return jnp.exp(jnp.where(exists, jnp.log(recalls), 0).sum() / exists.sum())
