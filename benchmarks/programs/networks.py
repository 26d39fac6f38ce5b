"""Epochs of crowds, curricula and other trainings, and the toy tasks whose sizes they have."""

import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from benchmarks.programs import Program, array, nbytes
from irtjax.crowd.members import MemberRow, gold_of, plan_member
from irtjax.evaluation.adaptive import adaptive_test
from irtjax.evaluation.adaptive_options import Stop
from irtjax.joint.model import class_head, joint_loss, two_heads
from irtjax.joint.own_answers import LearnsFromItself
from irtjax.kernels.models import ItemParameters
from irtjax.networks.bert import Encoder
from irtjax.populations.normal import Population
from irtjax.pretrained.folder import BertConfig, Pretrained
from irtjax.selection import ddaclae
from irtjax.selection.probe import rank_items
from irtjax.tasks.task import ImageFormat, Split, Task, TextFormat
from irtjax.training import loop, mixture, slots
from irtjax.training.data import evaluation_split, to_device
from irtjax.training.recipe import Recipe, make_trainer
from irtjax.training.step import Place

NETWORKS = {  # what they read; what they multiply
    "mlp": ("images", "bfloat16"),
    "lenet": ("images", "bfloat16"),
    "vgg16": ("large images", "bfloat16"),
    "resnet": ("large images", "bfloat16"),
    "lstm": ("sentences", "bfloat16"),
    "cnn": ("pairs", "bfloat16"),
    "nse": ("sentences", "mixed"),
    "esim": ("pairs", "mixed"),
    "bert": ("word pieces", "mixed"),
    "lenet_study": ("images", "bfloat16"),
    "lstm_study": ("sentences", "bfloat16"),
    "cnn_study": ("pairs", "bfloat16"),
}
STEP = "a minibatch"
BY_NETWORK, EVERYWHERE = jax.P("network"), jax.P()
TINY = BertConfig(layers=2, width=4, heads=2, inner=6, words=5, positions=8, kinds=2, epsilon=1e-12)


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Of a task and of the networks that are trained on it; the defaults are as small as programs can be.

    Attributes:
        examples: N, in each split.
        side: of images, and `large_side` of those for deep networks.
        channels: of images.
        words: L, of a sentence at most; `buckets` are the lengths that they are cut to.
        vocabulary: V, `vector` numbers each.
        encoder: the sizes of an encoder.
        width: of networks, trained on minibatches of `batch`.
        epochs: at most.
    """

    examples: int = 4
    side: int = 4
    large_side: int = 32
    channels: int = 1
    words: int = 4
    buckets: tuple[int, ...] = (2, 4)
    vocabulary: int = 5
    vector: int = 3
    encoder: BertConfig = TINY
    width: int = 2
    batch: int = 2
    epochs: int = 3


SMALL = Sizes()


def task_of(kind: str, sizes: Sizes = SMALL) -> Task:
    """A task of two classes whose examples are all alike."""
    if "images" in kind:
        side = sizes.large_side if kind == "large images" else sizes.side
        pixels = np.zeros((sizes.examples, side, side, sizes.channels), np.uint8)
        numbers = (0.0,) * sizes.channels, (1.0,) * sizes.channels
        return _task_from(pixels, ImageFormat(255.0, *numbers, flips=kind == "large images"))
    sentences = 2 if kind == "pairs" else 1
    encoder = an_encoder(sizes.encoder) if kind == "word pieces" else None
    vectors = np.ones((sizes.vocabulary, sizes.vector), np.float32) if encoder is None else encoder.vectors
    kind_of_words = np.min_scalar_type(len(vectors))
    inputs = tuple(np.ones((sizes.examples, sizes.words), kind_of_words) for _ in range(sentences))
    buckets = tuple((length,) * sentences for length in sizes.buckets)
    return _task_from(inputs, TextFormat(("",) * len(vectors), vectors, buckets, encoder))


def an_encoder(config: BertConfig = TINY) -> Pretrained:
    """One with random weights."""
    weights = nnx.to_pure_dict(nnx.state(Encoder(config, rngs=nnx.Rngs(0))))
    vectors = np.ones((config.words, config.width), np.float32)
    return Pretrained(config, vectors, jax.tree.map(np.asarray, weights), Path())


def _task_from(inputs: Any, format: ImageFormat | TextFormat) -> Task:
    num_examples = len(inputs[0] if isinstance(inputs, tuple) else inputs)
    split = Split(inputs, np.zeros(num_examples, np.int32), np.arange(num_examples).astype(str))
    return Task("toy", split, split, split, ("a", "b"), format)


def an_epoch_of_a_crowd(
    network: str, members: int, mesh: jax.sharding.Mesh, sizes: Sizes = SMALL, *, training_alone: bool = False
) -> list[Program]:
    """Networks of a crowd begin, are trained, validated and asked; or are trained only.

    Args:
        network: one of `NETWORKS`.
        members: on all devices together.
        mesh: of these, with an axis "network".
        sizes: of task and networks.
        training_alone: whether only the steps are among the programs, in which no member waits for others.
    """
    kind, products = NETWORKS[network]
    task = task_of(kind, sizes)
    # encoders bring their word vectors along
    recipe = Recipe(network, width=sizes.width, batch_size=sizes.batch, train_embeddings=kind == "sentences")
    trainer, data, gold = make_trainer(recipe, task), to_device(task), gold_of(task)
    types = {"seed": jnp.uint32, "subset_size": jnp.int32, "width": jnp.int32}
    rows = MemberRow(**{name: np.ones(members, types.get(name, jnp.float32)) for name in MemberRow._fields})
    one = slots.shapes(trainer, plan_member, rows, gold, data.initial)
    plans, learners = begun = jax.tree.map(lambda leaf: array(members, *leaf.shape, dtype=leaf.dtype), one)
    live, counts, parameters = array(members, dtype=bool), array(members, dtype=jnp.int32), learners.best_parameters
    train = trainer, mesh, learners, plans, live, Place(counts, counts)
    of_train = (*(BY_NETWORK,) * 6, EVERYWHERE, EVERYWHERE)
    # a step has to read and to write what it changes; the batch is small beside it
    least = 2 * nbytes((learners.parameters, learners.optimizer_state))
    training = Program(
        f"{network} trains", slots.train, (*train, 3, data), {}, products, mesh, of_train, STEP, least // mesh.size
    )
    if training_alone:
        return [training]
    fill = trainer, plan_member, mesh, begun, live, rows, gold, data.initial
    classify = trainer.network, mesh, parameters, data.embeddings, data.test
    unequal = dataclasses.replace(
        training,
        name=f"{network} trains, slots for unequal times",
        arguments=(*train, counts, data),
        spread=(*(BY_NETWORK,) * 7, EVERYWHERE),
    )
    return [
        Program(f"{network} begins", slots.fill, fill),
        training,
        unequal,
        Program(f"{network} is validated", slots.validate_all, (trainer, mesh, learners, live, data), {}, products),
        Program(f"{network} answers", slots.classify_all, classify, {}, products),
    ]


def a_curriculum(
    name: str,
    task: Task,
    rule: Any,
    pacing: tuple[Any, Any, Any],
    mesh: jax.sharding.Mesh,
    sizes: Sizes = SMALL,
    *,
    seeds: int = 2,
    monitored: bool = False,
) -> Program:
    """All epochs of networks of several seeds.

    Args:
        name: of the curriculum.
        task: images, for multilayer perceptrons, or text, for convolutions.
        rule: of selection; None for a schedule.
        pacing: counts of a schedule, population and error of a probe.
        mesh: of devices, with an axis "network".
        sizes: of the networks.
        seeds: how many.
        monitored: whether networks take an adaptive test after each epoch.
    """
    network = "mlp" if isinstance(task.format, ImageFormat) else "cnn"
    recipe = Recipe(network, width=sizes.width, batch_size=sizes.batch, max_epochs=sizes.epochs)
    program = ddaclae._Curriculum(make_trainer(recipe, task), rule, True, len(task.classes))
    number, monitor = len(task.train.labels), None
    if monitored:
        slope = np.ones((number, 1))
        bank = ItemParameters(slope, np.zeros(number), np.full(number, -np.inf), np.full(number, np.inf))
        monitor = adaptive_test(bank, rule="variance", stop=Stop(2), groups=task.train.labels)
    items = jax.eval_shape(rank_items, array(number))
    problem = ddaclae._Problem(to_device(task), items, items.order, array(), *pacing, monitor)
    products = "mixed" if monitored else "bfloat16"
    return _epochs(f"curriculum, {name}", program, mesh, seeds, problem, products)


def curricula(
    mesh: jax.sharding.Mesh, small: Sizes, large: Sizes, of_text: Sizes, rules: tuple[Any, Any, Any]
) -> dict[str, Any]:
    """Functions that make the program of each curriculum.

    Args:
        mesh: of devices.
        small: of tasks of which all examples are asked.
        large: of tasks of which a sample is asked.
        of_text: likewise.
        rules: up to the ability, beyond it, and a window.
    """
    up_to, beyond, window = rules
    counts, error, population = array(small.epochs, dtype=jnp.int32), array(), Population(array(), array())
    cases = {  # sizes, task, rule, what it goes by
        "a schedule": (small, "images", None, (counts, None, None)),
        "DDaCLAE, all asked": (small, "images", up_to, (None, None, None)),
        "DDaCLAE, MAP": (small, "images", up_to, (None, population, None)),
        "DDaCLAE, a sample asked": (large, "images", up_to, (None, None, error)),
        "hard examples": (small, "images", beyond, (None, None, None)),
        "a window, MAP, a sample of sentences": (of_text, "sentences", window, (None, population, error)),
    }

    def maker(name: str) -> Any:
        sizes, kind, rule, pacing = cases[name]
        return lambda **options: a_curriculum(name, task_of(kind, sizes), rule, pacing, mesh, sizes, **options)

    return {name: maker(name) for name in cases}


def training_by_passes(
    mesh: jax.sharding.Mesh, sizes: Sizes = SMALL, seeds: int = 2, *, own_answers: bool = False
) -> Program:
    """Networks with two heads, trained by passes over labels and difficulties: those of a crowd, or by own answers."""
    task = task_of("images", sizes)
    network = two_heads("mlp", task, 2)
    trainer = dataclasses.replace(
        make_trainer(Recipe("mlp", width=sizes.width, batch_size=sizes.batch, max_epochs=3), task),
        network=network,
        loss=joint_loss(2),
    )
    kind = LearnsFromItself if own_answers else mixture.Mixture
    program = kind((trainer,), class_head(network, 2), lambda logits: logits.argmax(-1))
    number = len(task.train.labels)
    targets = array(number, 2 if own_answers else 4)
    over = mixture.Stream(array(number, dtype=jnp.int32), targets, array(3, dtype=jnp.int32))
    problem = mixture.Problem(to_device(task), {"test": evaluation_split(task.test)}, (over,), array())
    if own_answers:
        return _epochs("passes, own answers", program, mesh, seeds, problem, "mixed")
    return _epochs("passes", program, mesh, seeds, problem, "bfloat16")


def _epochs(title: str, program: Any, mesh: jax.sharding.Mesh, seeds: int, problem: Any, products: str) -> Program:
    """Those of networks that begin together."""
    state = jax.eval_shape(lambda keys, problem: loop._begin(program, mesh, keys, problem), _keys(seeds), problem)
    spread = EVERYWHERE, EVERYWHERE, BY_NETWORK, EVERYWHERE, EVERYWHERE
    arguments = program, mesh, state, problem, array(dtype=jnp.int32)
    return Program(title, loop._train, arguments, {}, products, mesh, spread, "an epoch, and a minibatch of it")


def _keys(number: int) -> Any:
    return jax.eval_shape(lambda: jax.random.split(jax.random.key(0), number))
