"""Images of a class and a difficulty of one's choice: a conditional variational autoencoder.

Kingma and Welling (2014), with conditions as in Sohn, Lee and Yan (2015). Lalor (2020, section 8.2.2) proposes
difficulty as a condition.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from irtjax.arguments import bounded, checks_types, require_bounds, whole_number
from irtjax.errors import InputError
from irtjax.item_models.tables import LEAST_SPREAD, MOST
from irtjax.tasks import Task
from irtjax.tasks.task import ImageFormat
from irtjax.types import AnyArray, Float, Int

MOST_SEED = 2**32 - 1
HELD_OUT = 10  # one in so many training images says when to stop
OnEpoch = Callable[[int, float], None]


@dataclasses.dataclass(frozen=True)
class Settings:
    """How a generator is made.

    Attributes:
        latent: numbers of z.
        hidden: units of the hidden layer, of encoder and decoder.
        max_epochs: passes over the training images.
        patience: epochs without a better bound on held-out images, after which training ends.
        batch_size: images in a gradient step.
        learning_rate: of Adam.
    """

    latent: int = bounded(2, 1, 1024)
    hidden: int = bounded(256, 1, 65_536)
    max_epochs: int = bounded(500, 1)
    patience: int = bounded(20, 1)
    batch_size: int = bounded(64, 1)
    learning_rate: float = bounded(1e-3, positive=True)

    def __post_init__(self) -> None:
        """Refuses fields of another type or size."""
        require_bounds(self)


class Generator(NamedTuple):
    """A conditional variational autoencoder of images with a known difficulty.

    Attributes:
        parameters: of encoder and decoder.
        settings: how it was made.
        shape: (H, W, channels) of an image.
        dtype: of a stored image.
        scale: stored values run from 0 to this.
        num_classes: C.
        mean, sd: of the training images' difficulties, in logits.
        bounds: (E,) of an image that is held out, after each epoch, in nats; the parameters are of the best.
    """

    parameters: Any
    settings: Settings
    shape: tuple[int, int, int]
    dtype: np.dtype
    scale: float
    num_classes: int
    mean: float
    sd: float
    bounds: Float[np.ndarray, " E"]


class _Autoencoder(nnx.Module):
    def __init__(self, pixels: int, conditions: int, settings: Settings, *, rngs: nnx.Rngs):
        self.into = nnx.Linear(pixels + conditions, settings.hidden, rngs=rngs)
        self.code = nnx.Linear(settings.hidden, 2 * settings.latent, rngs=rngs)
        self.out_of = nnx.Linear(settings.latent + conditions, settings.hidden, rngs=rngs)
        self.image = nnx.Linear(settings.hidden, pixels, rngs=rngs)

    def encode(self, x: jax.Array, condition: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Mean and log standard deviation (B, K) of q(z | x, condition)."""
        hidden = nnx.relu(self.into(jnp.concatenate([x, condition], axis=1)))
        mean, log_sd = jnp.split(self.code(hidden), 2, axis=1)
        return mean, log_sd

    def decode(self, z: jax.Array, condition: jax.Array) -> jax.Array:
        """Logits (B, P) of the pixels."""
        return self.image(nnx.relu(self.out_of(jnp.concatenate([z, condition], axis=1))))


@checks_types
def train_generator(
    task: Task,
    difficulty: Float[AnyArray, " N"],
    settings: Settings | None = None,
    *,
    seed: int = 0,
    on_epoch: OnEpoch | None = None,
) -> Generator:
    r"""Learns to draw the training images of a task, given their class and their difficulty.

    .. math::
        z \sim N(0, I), \qquad x_p \mid z, y, b \sim \text{Bernoulli}(\sigma(f_p(z, y, (b - \bar b)/s_b)))

    by the evidence lower bound :math:`E_q \log p(x | z, y, b) - KL(q(z | x, y, b) \| N(0, I))`, with pixels as shares
    of the scale. f and the moments of q are networks with one hidden layer. A tenth of the images is held out; training
    ends when their bound no longer rises, and the parameters of the best epoch are kept.

    Args:
        task: of images.
        difficulty: (N,) b of the training images, in logits.
        settings: how; None for the defaults.
        seed: of weights, minibatches and z.
        on_epoch: called with the number of the epoch and the bound of a held-out image, in nats.

    Raises:
        InputError: the task has no images, fewer than 20, or values out of range; not one finite difficulty for each;
            or all are equal; a seed below 0.
    """
    settings = settings or Settings()
    format, images = require_images(task)
    b, seed = require_difficulties(task, difficulty), whole_number("seed", seed, 0, MOST_SEED)
    generator = Generator(
        parameters=None, settings=settings, shape=images.shape[1:], dtype=images.dtype, scale=format.scale,
        num_classes=task.num_classes, mean=float(b.mean()), sd=float(b.std()), bounds=np.zeros(0),
    )  # fmt: skip
    x = jnp.asarray(images.reshape(len(images), -1) / format.scale, jnp.float32)
    conditions = conditions_of(generator, task.train.labels, b)
    order = np.random.default_rng(seed).permutation(len(images))
    held_out, learned = ((x[rows], conditions[rows]) for rows in np.split(order, [len(images) // HELD_OUT]))
    trainer = _trainer(x.shape[1], conditions.shape[1], settings)
    parameters, state = trainer.begin(jax.random.key(seed))
    best, bounds = parameters, []
    for epoch in range(settings.max_epochs):
        key = jax.random.fold_in(jax.random.key(seed), epoch)
        parameters, state = trainer.epoch(parameters, state, *learned, key)
        # the same z each time: what changes is the generator
        bounds.append(float(trainer.bound(parameters, *held_out, jax.random.key(seed))))
        if not np.isfinite(bounds[-1]):
            raise InputError(f"the generator diverged in epoch {epoch + 1}: give a lower learning rate")
        if on_epoch is not None:
            on_epoch(epoch, bounds[-1])
        if epoch == int(np.argmax(bounds)):
            best = parameters
        elif epoch - int(np.argmax(bounds)) >= settings.patience:
            break
    return generator._replace(parameters=best, bounds=np.array(bounds))


@checks_types
def generate(
    generator: Generator, labels: Int[AnyArray, " M"], difficulty: Float[AnyArray, " M"], *, seed: int = 0
) -> Any:
    """Images of classes and difficulties: the mean of each pixel, for a z that is drawn.

    Args:
        generator: of `train_generator`.
        labels: (M,) classes, from 0 on.
        difficulty: (M,) asked for, in logits; the generator has learned from what its training images had.
        seed: of z.

    Returns:
        (M, H, W, channels) in the dtype and on the scale of the task's images.

    Raises:
        InputError: not one finite difficulty for each label, a label that is no class, or a seed below 0.
    """
    labels, b, seed = np.asarray(labels), np.asarray(difficulty, float), whole_number("seed", seed, 0, MOST_SEED)
    if labels.shape != b.shape or labels.ndim != 1 or not (np.abs(b) < MOST).all():
        raise InputError(f"difficulties of shape {b.shape} for {labels.size} labels, expected a finite number for each")
    if labels.size and not (labels.dtype.kind in "iu" and 0 <= labels.min() <= labels.max() < generator.num_classes):
        raise InputError(f"labels {labels[:3].tolist()}, expected integers from 0 to {generator.num_classes - 1}")
    z = jax.random.normal(jax.random.key(seed), (len(labels), generator.settings.latent))
    conditions = conditions_of(generator, labels, b)
    trainer = _trainer(int(np.prod(generator.shape)), conditions.shape[1], generator.settings)
    shares = np.asarray(trainer.decode(generator.parameters, z, conditions), float)
    values = (shares * generator.scale).reshape(len(labels), *generator.shape)
    return (values.round() if np.issubdtype(generator.dtype, np.integer) else values).astype(generator.dtype)


def conditions_of(generator: Generator, labels: AnyArray, difficulty: AnyArray) -> jax.Array:
    """What encoder and decoder are told: (M, C + 1), the class as one of C, and b in standard deviations."""
    classes = jax.nn.one_hot(np.asarray(labels), generator.num_classes, dtype=jnp.float32)
    standard = (np.asarray(difficulty, float) - generator.mean) / generator.sd
    return jnp.concatenate([classes, jnp.asarray(standard, jnp.float32)[:, None]], axis=1)


class _Trainer(NamedTuple):
    begin: Callable[..., Any]
    epoch: Callable[..., Any]
    bound: Callable[..., Any]
    decode: Callable[..., Any]


@functools.cache
def _trainer(pixels: int, conditions: int, settings: Settings) -> _Trainer:
    """The jitted functions of a generator of one size and settings."""

    def make(key: jax.Array) -> _Autoencoder:
        return _Autoencoder(pixels, conditions, settings, rngs=nnx.Rngs(key))

    graph = nnx.split(nnx.eval_shape(lambda: make(jax.random.key(0))))[0]
    optimizer = optax.adam(settings.learning_rate)

    def bound(parameters: Any, x: jax.Array, condition: jax.Array, key: jax.Array) -> jax.Array:
        network = nnx.merge(graph, parameters)
        mean, log_sd = network.encode(x, condition)
        z = mean + jnp.exp(log_sd) * jax.random.normal(key, mean.shape)
        told = -optax.sigmoid_binary_cross_entropy(network.decode(z, condition), x).sum(axis=1)
        divergence = (0.5 * (mean**2 + jnp.exp(2 * log_sd) - 1) - log_sd).sum(axis=1)
        return (told - divergence).mean()

    @jax.jit
    def begin(key: jax.Array) -> tuple[Any, Any]:
        parameters = nnx.split(make(key), nnx.Param)[1]
        return parameters, optimizer.init(parameters)

    @jax.jit
    def epoch(parameters: Any, state: Any, x: jax.Array, condition: jax.Array, key: jax.Array) -> tuple[Any, Any]:
        size = min(settings.batch_size, len(x))
        steps = len(x) // size
        batches = jax.random.permutation(key, len(x))[: steps * size].reshape(steps, size)

        def step(carry: Any, batch: tuple[jax.Array, jax.Array]) -> tuple[Any, None]:
            parameters, state = carry
            at, number = batch
            gradient = jax.grad(
                lambda parameters: -bound(parameters, x[at], condition[at], jax.random.fold_in(key, number))
            )
            change, state = optimizer.update(gradient(parameters), state, parameters)
            return (optax.apply_updates(parameters, change), state), None

        return jax.lax.scan(step, (parameters, state), (batches, jnp.arange(steps)))[0]

    @jax.jit
    def decode(parameters: Any, z: jax.Array, condition: jax.Array) -> jax.Array:
        return jax.nn.sigmoid(nnx.merge(graph, parameters).decode(z, condition))

    return _Trainer(begin, epoch, jax.jit(bound), decode)


def require_images(task: Task) -> tuple[ImageFormat, np.ndarray]:
    """The format and the training images, (N, H, W, channels).

    Raises:
        InputError: see `train_generator`.
    """
    images = task.train.inputs
    if not isinstance(task.format, ImageFormat) or isinstance(images, tuple) or task.train.texts is not None:
        raise InputError(f"{task.name} has no images: a generator draws images")
    if len(images) < 2 * HELD_OUT:
        raise InputError(f"{task.name}: {len(images)} training images, expected {2 * HELD_OUT} or more")
    if not 0 <= images.min() <= images.max() <= task.format.scale:
        raise InputError(
            f"{task.name}: images with values from {images.min():g} to {images.max():g}, expected 0 to "
            f"{task.format.scale:g}: rescale them"
        )
    return task.format, images


def require_difficulties(task: Task, difficulty: Any) -> Float[np.ndarray, " N"]:
    """The difficulties of the training images.

    Raises:
        InputError: see `train_generator`.
    """
    b, number = np.asarray(difficulty, float), len(task.train.labels)
    if b.shape != (number,):
        raise InputError(f"{b.size:,} difficulties for {number:,} training images, expected one each")
    if not (np.abs(b) < MOST).all():
        at = int(np.argmax(~(np.abs(b) < MOST)))
        raise InputError(
            f"training example {str(task.train.ids[at])!r}: difficulty {b[at]:g}, expected a finite number"
        )
    if b.std() < LEAST_SPREAD:
        raise InputError("all training items are equally difficult: nothing is to be learned of that")
    return b
