"""What a user's network must do on a task, seen without computing anything: it is traced as training would run it."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.errors import InputError
from irtjax.networks.network import Network
from irtjax.networks.sizes import Sizes
from irtjax.networks.yours import Yours, failure
from irtjax.tasks import Task
from irtjax.tasks.task import TextFormat

MEMBERS = 2  # of the crowd that is traced


def check(yours: Yours, network: Network, sizes: Sizes, task: Task) -> None:
    """Refuses a network that cannot be trained on a task; once for each size and shape of inputs.

    Raises:
        InputError: parameters that have no gradient, logits of another shape than (B, C), or code that raises on the
            task's inputs, at its shortest or longest sentences, with a key or without, or in the gradient.
    """
    text = task.format if isinstance(task.format, TextFormat) else None
    batch = task.num_classes + 1  # so that (C, B) is not (B, C)
    if text is None:
        shapes: tuple[Any, ...] = (_like(np.asarray(task.train.inputs), batch),)
    else:
        ends = dict.fromkeys((text.buckets[0], text.buckets[-1]))
        sentences = tuple(task.train.inputs)
        shapes = tuple(
            tuple(_like(sentence, batch, length) for sentence, length in zip(sentences, cut, strict=True))
            for cut in ends
        )
    embeddings = None if text is None else jax.ShapeDtypeStruct(text.embeddings.shape, text.embeddings.dtype)
    _check(yours, network, sizes, shapes, embeddings, task.name)


def _like(array: np.ndarray, batch: int, length: int | None = None) -> jax.ShapeDtypeStruct:
    rest = array.shape[1:] if length is None else (length,)
    return jax.ShapeDtypeStruct((batch, *rest), array.dtype)


@functools.cache
def _check(
    yours: Yours,
    network: Network,
    sizes: Sizes,
    shapes: tuple[Any, ...],
    embeddings: jax.ShapeDtypeStruct | None,
    task: str,
) -> None:
    name, width = yours.name, jax.ShapeDtypeStruct((), jnp.int32)
    try:
        parameters = jax.eval_shape(network.init, jax.random.key(0), width)
        leaves = jax.tree_util.tree_leaves_with_path(parameters)
    except Exception as error:
        raise failure(name, "making parameters", error) from error
    for path, leaf in leaves:
        if not jnp.issubdtype(leaf.dtype, jnp.floating):
            at = jax.tree_util.keystr(path, simple=True, separator=".").removesuffix(".value")
            raise InputError(
                f"`network`={name}: parameter {at} is of {leaf.dtype}, which has no gradient: expected real numbers"
            )
    if not leaves:
        raise InputError(f"`network`={name}: has no parameters")
    for inputs in shapes:
        batch = jax.tree.leaves(inputs)[0].shape[0]
        of = f"the inputs of {task}, {_shown(inputs)},"
        for key, drawn in ((None, "without a key"), (jax.random.key(0), "with a key for dropout")):
            try:
                logits = jax.eval_shape(network.logits, parameters, embeddings, inputs, key)
            except Exception as error:
                raise failure(name, f"reading {of} {drawn}", error) from error
            shape, expected = getattr(logits, "shape", None), (batch, sizes.num_classes)
            if shape != expected:
                found = f"logits of shape {shape}" if shape is not None else f"a {type(logits).__name__}"
                raise InputError(
                    f"`network`={name}: {found} for {of} expected {expected}: one for each of the {sizes.num_classes} "
                    "classes"
                )
            if not jnp.issubdtype(logits.dtype, jnp.floating):
                raise InputError(f"`network`={name}: logits are {logits.dtype}, expected real numbers")
    try:
        _trace_gradients(network, parameters, embeddings, shapes[0])
    except Exception as error:
        raise failure(name, f"its gradient, in a crowd on {task},", error) from error


def _trace_gradients(network: Network, parameters: Any, embeddings: Any, inputs: Any) -> None:
    def loss(parameters: Any, inputs: Any, key: jax.Array, embeddings: Any) -> jax.Array:
        return network.logits(parameters, embeddings, inputs, key).sum()

    def several(leaf: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((MEMBERS, *leaf.shape), leaf.dtype)

    keys = jax.random.split(jax.random.key(0), MEMBERS)
    crowd = jax.vmap(jax.grad(loss), (0, 0, 0, None))
    jax.eval_shape(crowd, *jax.tree.map(several, (parameters, inputs)), keys, embeddings)


def _shown(inputs: Any) -> str:
    return " and ".join(f"{leaf.dtype} {leaf.shape}" for leaf in jax.tree.leaves(inputs))


def follows_width(network: Network, width: int) -> bool:
    """Whether the parameters say which hidden units are masked: whether they differ with `active`."""
    init = jax.jit(network.init)
    some, all_units = (jax.tree.leaves(init(jax.random.key(0), jnp.int32(active))) for active in (1, width))
    return any(not np.array_equal(one, other) for one, other in zip(some, all_units, strict=True))
