"""A measure of accuracy that falls to 0 where a network has one class all wrong."""

import jax
import jax.numpy as jnp

from irtjax.arguments import checks_types
from irtjax.types import AnyArray, Bool, Float, Int


@checks_types
def geometric_mean_of_recalls(
    right: Bool[AnyArray, " N"], labels: Int[AnyArray, " N"], num_classes: int
) -> Float[jax.Array, ""]:
    """(r_1 · … · r_C)^(1/C), where r_c is the share of right answers among the examples of class c.

    0 if all answers to some class are wrong, such as those of a network that always says another (Kubat, Holte and
    Matwin 1998, for two classes). Classes without an example do not count.

    Args:
        right: whether a network is right about each example.
        labels: of the examples, from 0.
        num_classes: C, at least the largest label and 1.
    """
    of_class = jnp.zeros(num_classes).at[labels].add(1)
    recalls = jnp.zeros(num_classes).at[labels].add(right) / jnp.maximum(of_class, 1)
    exists = of_class > 0
    return jnp.exp(jnp.where(exists, jnp.log(recalls), 0).sum() / exists.sum())
