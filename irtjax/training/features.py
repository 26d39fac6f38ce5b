"""Texts as vectors of a pre-trained encoder that is not trained: computed once, for heads that are trained on them."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from irtjax.errors import InputError
from irtjax.networks.bert import Encoder, mean_state
from irtjax.pretrained.folder import BertConfig, Pretrained
from irtjax.pretrained.pieces import Pieces
from irtjax.storage.cache import cached
from irtjax.tasks import Split, Task
from irtjax.tasks.sentences import by_pieces
from irtjax.tasks.task import ImageFormat, TextFormat
from irtjax.tasks.text import Examples
from irtjax.training.data import evaluation_split


def frozen(task: Task, on_progress: Callable[[str, int, int], None] = lambda *_: None) -> Task:
    """The task with vectors in place of texts: images of one pixel, whose channels are what `features` has.

    Channels are brought to mean 0 and deviation 1 over the training examples. Vectors are kept in the cache.

    Args:
        task: of text, loaded with an encoder.
        on_progress: called with a description, the number of examples done and that of all.

    Raises:
        InputError: the task has no encoder, or its pairs are packed.
    """
    if not isinstance(task.format, TextFormat) or task.format.encoder is None:
        raise InputError(f"{task.name} was loaded without an encoder: name its folder, `pretrained`")
    if task.format.packed:
        raise InputError(f"{task.name}: pairs are packed, and a frozen encoder reads their sentences apart")
    text, encoder = task.format, task.format.encoder
    vectors = {
        name: features(text, encoder, task.split(name), functools.partial(on_progress, name)) for name in task.splits
    }
    deviation = vectors["train"].std(0)
    deviation = np.where(deviation > 0, deviation, 1)  # a channel may be the same for every text
    format = ImageFormat(1.0, tuple(vectors["train"].mean(0).tolist()), tuple(deviation.tolist()))
    splits: dict[str, Any] = {
        name: task.split(name)._replace(inputs=found[:, None, None]) for name, found in vectors.items()
    }
    return dataclasses.replace(task, format=format, **splits)


def frozen_examples(
    examples: Examples, encoder: Pretrained, on_progress: Callable[[int, int], None] = lambda *_: None
) -> Split:
    """Further examples of a task that `frozen` has made, as vectors of the same encoder.

    Args:
        examples: of as many sentences as the task's own.
        encoder: of the task.
        on_progress: called with the number of examples done and that of all.
    """
    split, format = by_pieces(examples.sentences, encoder)
    vectors = features(format, encoder, split, on_progress)[:, None, None]
    return split._replace(inputs=vectors, labels=examples.labels, ids=examples.ids)


def features(
    format: TextFormat, encoder: Pretrained, split: Split, on_progress: Callable[[int, int], None] = lambda *_: None
) -> np.ndarray:
    """Vectors of examples, by an encoder whose word pieces they are in.

    A sentence has the mean u of the states of its word pieces, (N, H). A pair has those of both sentences, read apart
    from each other, their distance and their product: [u; v; |u - v|; u ∘ v], (N, 4H) (Conneau et al. 2017).

    Args:
        format: the lengths to batch at.
        encoder: whose states they are.
        split: the examples.
        on_progress: called with the number of examples done and that of all.
    """
    sentences = tuple(split.inputs)
    key = encoder.weights, encoder.vectors, sentences
    return cached("features", key, lambda: {"vectors": _features(format, encoder, split, on_progress)})["vectors"]


def _features(
    format: TextFormat, encoder: Pretrained, split: Split, on_progress: Callable[[int, int], None]
) -> np.ndarray:
    first = Pieces(encoder).first
    blocks = evaluation_split(split, format)
    weights, embeddings = jax.device_put((encoder.weights, encoder.vectors))
    done, parts, number = 0, [], len(split.labels)
    for bucket in blocks.buckets:
        for block in zip(*bucket, strict=True):
            parts.append(np.asarray(_encode(encoder.config, first, weights, embeddings, block)))
            done += len(parts[-1])
            on_progress(min(done, number), number)
    return np.concatenate(parts)[blocks.position]


@functools.partial(jax.jit, static_argnums=(0, 1))
def _encode(
    config: BertConfig, first: int, weights: dict[str, Any], embeddings: jax.Array, block: tuple[jax.Array, ...]
) -> jax.Array:
    """(B, L) word pieces of each sentence -> (B, H), or (B, 4H) of a pair."""
    graph, state = nnx.split(nnx.eval_shape(lambda: Encoder(config, rngs=nnx.Rngs(0))))
    nnx.replace_by_pure_dict(state, weights)
    encoder = nnx.merge(graph, state)

    def mean(sentence: jax.Array) -> jax.Array:
        return mean_state(*encoder(embeddings, (sentence,)))

    if len(block) == 1:
        return mean(block[0])
    begins = jnp.full((block[1].shape[0], 1), first, block[1].dtype)
    u, v = mean(block[0]), mean(jnp.concatenate([begins, block[1]], axis=1))
    return jnp.concatenate([u, v, jnp.abs(u - v), u * v], axis=1)
