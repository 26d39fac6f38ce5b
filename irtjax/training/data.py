"""A task's examples as arrays on devices: whole for training, in buckets of equal length for evaluation."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.networks import Network
from irtjax.tasks.task import Split, Task, TextFormat
from irtjax.tasks.text import bucket_of
from irtjax.types import AnyArray

ANSWER_BLOCK = 128  # examples answered at once: more would not fit into a processor's cache, fewer would not fill it

ALIGNMENT = 64  # bytes; XLA would copy an array that begins elsewhere, once for each device


Placed = TypeVar("Placed")


class EvaluationSplit(NamedTuple):
    """A split in the order in which it is answered: examples cut to one length together, in blocks.

    Attributes:
        buckets: inputs (num_blocks, ANSWER_BLOCK, ...), one entry per length: one for images, several for text. The
            last block of all is filled up with copies.
        position: (N,) int32 where, in all buckets one after the other, an example lies.
        labels: (N,) gold labels.
    """

    buckets: tuple[Any, ...]
    position: AnyArray
    labels: AnyArray


class Data(NamedTuple):
    """A task on the device, once for all networks.

    Attributes:
        inputs: of the training examples, as in `Split.inputs`; what minibatches are drawn from.
        bucket: (N,) uint8 which of the task's lengths holds a training example; None for images.
        embeddings: (V, D) word vectors; None for images.
        train, validation, test, extra: the splits, to be answered; extra None where the task has none.
        stop_on: what early stopping of crowds looks at; None for the validation split, by which all others stop.
        weights: of the encoder that networks begin from, without its word vectors; None for random ones.
    """

    inputs: Any
    bucket: AnyArray | None
    embeddings: AnyArray | None
    train: EvaluationSplit
    validation: EvaluationSplit
    test: EvaluationSplit
    extra: EvaluationSplit | None = None
    stop_on: EvaluationSplit | None = None
    weights: Any = None

    @property
    def initial(self) -> tuple[AnyArray | None, Any]:
        """Word vectors and weights, what networks begin from: an argument of `irtjax.training.loop.start`."""
        return self.embeddings, self.weights


class Owned(NamedTuple):
    """Parameters of a network with word vectors of its own: `embeddings` (V, D)."""

    network: Any
    embeddings: jax.Array


def split_embeddings(parameters: Any, shared: AnyArray | None) -> tuple[Any, Any]:
    """A network's parameters without word vectors, and its vectors: its own, or else the shared ones."""
    return tuple(parameters) if isinstance(parameters, Owned) else (parameters, shared)


def to_device(task: Task, mesh: jax.sharding.Mesh | None = None, stop_on: Split | None = None) -> Data:
    """Puts a task on the default device, or on every device of a mesh; inputs keep their dtype.

    Where devices are cores of one processor, they share one copy.
    """
    text = task.format if isinstance(task.format, TextFormat) else None
    data = Data(
        inputs=task.train.inputs,
        bucket=None if text is None else bucket_of(tuple(task.train.inputs), text.buckets),
        embeddings=None if text is None else text.embeddings,
        train=evaluation_split(task.train, text),
        validation=evaluation_split(task.validation, text),
        test=evaluation_split(task.test, text),
        extra=None if task.extra is None else evaluation_split(task.extra, text),
        stop_on=None if stop_on is None else evaluation_split(stop_on, text),
        weights=None if text is None or text.encoder is None else text.encoder.weights,
    )
    return place(data, mesh)


def place(arrays: Placed, mesh: jax.sharding.Mesh | None) -> Placed:
    """Puts arrays on the default device, or on every device of a mesh, which share one copy on a processor."""
    if jax.default_backend() == "cpu":
        arrays = jax.tree.map(_aligned, arrays)
    return jax.device_put(arrays, None if mesh is None else jax.NamedSharding(mesh, jax.P()))


def _aligned(array: np.ndarray) -> np.ndarray:
    """A copy that begins at a multiple of `ALIGNMENT` bytes: CPU devices read it in place."""
    array = np.asarray(array)
    memory = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def evaluation_split(split: Split, text: TextFormat | None = None) -> EvaluationSplit:
    """A split in its buckets, still on the host.

    Examples that do not fill a block of their length are answered with those of the next longer one, so that no block
    but the last is filled up with copies.
    """
    num_examples = len(split.labels)
    bucket = np.zeros(num_examples, np.uint8) if text is None else bucket_of(tuple(split.inputs), text.buckets)
    buckets, position, start = [], np.empty(num_examples, np.int32), 0
    levels, waiting = np.unique(bucket), np.empty(0, int)
    for level in levels:
        members = np.concatenate([waiting, np.flatnonzero(bucket == level)])
        whole = members.size // ANSWER_BLOCK * ANSWER_BLOCK
        if level == levels[-1]:
            filled = np.resize(members, -(-members.size // ANSWER_BLOCK) * ANSWER_BLOCK)
        else:
            filled, waiting = members[:whole], members[whole:]
        if not filled.size:
            continue
        answered = members[: filled.size]
        position[answered] = start + np.arange(answered.size)
        start += filled.size
        cut = (None,) if text is None else text.buckets[level]
        buckets.append(_map_inputs(functools.partial(_block, filled), split.inputs, cut))
    return EvaluationSplit(tuple(buckets), position, split.labels)


def _block(at: np.ndarray, array: np.ndarray, length: int | None) -> np.ndarray:
    rows = array[at] if length is None else array[at, :length]
    return rows.reshape(-1, ANSWER_BLOCK, *rows.shape[1:])


def _map_inputs(function: Callable[[Any, int | None], Any], inputs: Any, cut: tuple[int | None, ...]) -> Any:
    """`function(array, length)` of an array of images, or of each sentence with its length."""
    if isinstance(inputs, tuple):
        return tuple(map(function, inputs, cut))
    return function(inputs, *cut)


def take(inputs: Any, chosen: jax.Array, cut: tuple[int, ...] | None) -> Any:
    """Rows `chosen` (B,) of the inputs, sentences cut to the lengths `cut`; reads no more than it returns."""
    return _map_inputs(functools.partial(_take, chosen), inputs, (None,) if cut is None else cut)


def _take(chosen: jax.Array, array: jax.Array, length: int | None) -> jax.Array:
    if length is None:
        return array[chosen]
    # a gather of short rows: array[:, :length][chosen] would copy the whole array first
    return jax.vmap(lambda row: jax.lax.dynamic_slice(array, (row, 0), (1, length))[0])(chosen)


def outputs(
    network: Network,
    parameters: Any,
    embeddings: AnyArray | None,
    split: EvaluationSplit,
    of: Callable[[jax.Array], Any] = lambda logits: logits,
) -> Any:
    """What a network says of each example of a split, in blocks of bounded memory.

    Args:
        network: that is asked.
        parameters: its own.
        embeddings: (V, D) word vectors; None for images.
        split: N examples.
        of: logits (B, K) of a block -> arrays with a leading axis of B, what is kept of them.

    Returns:
        These arrays with a leading axis of N.
    """
    own, vectors = split_embeddings(parameters, embeddings)

    def answer(block: Any) -> Any:
        return of(network.logits(own, vectors, block, None))

    blocks = [
        jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), jax.lax.map(answer, inputs))
        for inputs in split.buckets
    ]
    return jax.tree.map(lambda *parts: jnp.concatenate(parts)[split.position], *blocks)


def classify(network: Network, parameters: Any, embeddings: AnyArray | None, split: EvaluationSplit) -> jax.Array:
    """Most probable class of each example of a split: (N,) int32."""
    return outputs(network, parameters, embeddings, split, lambda logits: logits.argmax(-1).astype(jnp.int32))


def accuracy(network: Network, parameters: Any, embeddings: AnyArray | None, split: EvaluationSplit) -> jax.Array:
    """Share of a split's examples whose most probable class is the gold label."""
    return (classify(network, parameters, embeddings, split) == split.labels).mean()


def default_mesh(num_networks: int, mesh: jax.sharding.Mesh | None = None) -> jax.sharding.Mesh:
    """Local devices in a row, at most as many as there are networks; of `mesh`, or all."""
    devices = jax.local_devices() if mesh is None else mesh.local_devices
    devices = list(devices)[: max(1, num_networks)]
    return jax.make_mesh((len(devices),), ("network",), axis_types=(jax.sharding.AxisType.Auto,), devices=devices)


def on_devices(function: Callable, mesh: jax.sharding.Mesh, spread: Sequence[bool]) -> Callable:
    """The function on each device, with its part of some arguments and the whole of the others.

    Args:
        function: of arguments with a leading axis of networks, and of others.
        mesh: devices in a row.
        spread: for each argument, whether its leading axis is spread over the devices.

    Results are spread. check_vma=False: with it, gradients of parameters that start equal on all devices would be
    summed over the devices.
    """
    by_network, everywhere = jax.P(*mesh.axis_names), jax.P()
    specs = tuple(by_network if one else everywhere for one in spread)
    return jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=by_network, check_vma=False)
