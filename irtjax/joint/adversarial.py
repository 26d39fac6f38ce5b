"""Images that are moved against a network: its own gradient says where."""

import functools

import jax
import jax.numpy as jnp

from irtjax.networks import Network, Parameters


@functools.cache
def attacked(network: Network, num_classes: int, step: float, low: float, high: float) -> Network:
    r"""The network as it reads images that the fast gradient sign method (FGSM) has moved against it.

    .. math::
        x' = clip(x + \epsilon (high - low) sign(\nabla_x -\log \hat p(\hat y | x)), low, high)

    (Goodfellow, Shlens and Szegedy 2015.) The class is the most probable one, not the gold label, so that the moved
    image does not give the label away (Kurakin, Goodfellow and Bengio 2017). The gradient is taken of the logit of
    1 - p̂, which has the same sign, and does not vanish where p̂ is rounded to 1.

    Args:
        network: that is attacked; its first outputs are logits of the classes.
        num_classes: C.
        step: ε, as a share of the range of stored values.
        low: the least stored value.
        high: the largest.
    """

    def logits(
        parameters: Parameters, embeddings: jax.Array | None, images: jax.Array, key: jax.Array | None = None
    ) -> jax.Array:
        def surprise(images: jax.Array) -> jax.Array:
            found = network.logits(parameters, embeddings, images, None)[:, :num_classes]
            best = jax.nn.one_hot(found.argmax(-1), num_classes)
            others = jax.nn.logsumexp(jnp.where(best > 0, -jnp.inf, found), axis=1)
            return (others - (best * found).sum(1)).sum()

        stored = images.astype(jnp.float32)
        moved = jnp.clip(stored + step * (high - low) * jnp.sign(jax.grad(surprise)(stored)), low, high)
        return network.logits(parameters, embeddings, moved, key)

    return Network(network.init, logits)
