"""Tasks of random examples, and parameters of networks as plain arrays."""

import jax
import numpy as np
from flax import nnx

from irtjax.tasks.task import ImageFormat, Split, Task, TextFormat

NUM_WORDS, DIMENSION = 30, 6


def text(num_sentences: int, *lengths: int, num_examples: int = 5) -> Task:
    """Sentences of random words, of all lengths up to the given one, the longest and the shortest included."""
    rng = np.random.default_rng(num_sentences)

    def sentence(length):
        words = rng.integers(1, NUM_WORDS, (num_examples, length)).astype(np.uint8)
        ends = np.r_[length, 1, rng.integers(1, length + 1, num_examples - 2)]
        return np.where(np.arange(length)[None] < ends[:, None], words, 0).astype(np.uint8)

    lengths = lengths or (7, 4)[:num_sentences]
    embeddings = rng.normal(size=(NUM_WORDS, DIMENSION)).astype(np.float32)
    embeddings[0] = 0
    vocabulary = tuple(f"w{number}" for number in range(NUM_WORDS))
    inputs = tuple(sentence(length) for length in lengths)
    return _task("text", inputs, num_examples, TextFormat(vocabulary, embeddings, (lengths,)))


def images(*shape: int, num_examples: int = 3) -> Task:
    """Random images."""
    pixels = np.random.default_rng(0).integers(0, 256, (num_examples, *shape)).astype(np.uint8)
    mean, deviation = tuple(np.linspace(0.4, 0.6, shape[-1])), tuple(np.linspace(0.2, 0.3, shape[-1]))
    return _task("images", pixels, num_examples, ImageFormat(255.0, mean, deviation))


def _task(name, inputs, num_examples, format):
    split = Split(inputs, np.arange(num_examples, dtype=np.int32) % 3, np.arange(num_examples).astype(str))
    return Task(name, split, split, split, ("a", "b", "c"), format)


def embeddings(task: Task) -> np.ndarray | None:
    return task.format.embeddings if isinstance(task.format, TextFormat) else None


def words_of(sentence: np.ndarray) -> np.ndarray:
    """The vectors of a sentence without its padding, as `text` makes them."""
    return sentence[sentence != 0]


def arrays(parameters) -> dict:
    """Parameters as nested dictionaries of float64 arrays."""
    return jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), nnx.to_pure_dict(parameters))


def dense(layer: dict, x: np.ndarray) -> np.ndarray:
    return x @ layer["kernel"] + layer["bias"]
