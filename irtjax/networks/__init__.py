"""The networks, as pure functions of their parameters: ours by name, and those that users bring."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from irtjax.arguments import checks_types
from irtjax.choices import NETWORKS
from irtjax.errors import InputError
from irtjax.networks import checks, yours
from irtjax.networks.network import Network, Parameters, of_module
from irtjax.networks.ours import KINDS, Kind
from irtjax.networks.sizes import Encoded, Images, Sentences, Sizes
from irtjax.networks.yours import from_functions, from_module
from irtjax.storage.digests import digest
from irtjax.tasks import Task
from irtjax.tasks.task import ImageFormat, TextFormat

__all__ = [
    "NETWORKS",
    "Network",
    "Parameters",
    "Sizes",
    "build",
    "choices",
    "from_functions",
    "from_module",
    "require",
    "usual_dropout",
]


@checks_types
def choices(task: Task) -> tuple[str, ...]:
    """Names of the networks of this package that can read the inputs of `task`."""
    return tuple(name for name, kind in KINDS.items() if _reads(kind, task))


def _reads(kind: Kind, task: Task) -> bool:
    if isinstance(task.format, ImageFormat):
        return not kind.sentences and (kind.tables or not is_table(task))
    encoder = task.format.encoder is not None
    return len(task.train.inputs) in kind.sentences and task.format.packed <= kind.encoder <= encoder


def is_table(task: Task) -> bool:
    """Whether inputs are a table of features: images of one pixel, whose channels they are."""
    return isinstance(task.format, ImageFormat) and np.shape(task.train.inputs)[1:3] == (1, 1)


@checks_types
def usual_dropout(name: str) -> float:
    """The rate of a network unless another one is asked for; 0 for those that users bring."""
    return 0.0 if yours.is_name(name) else KINDS[name].dropout


def is_yours(name: str) -> bool:
    """Whether it is the name of a network that a user brings."""
    return yours.is_name(name)


@checks_types
def require(name: str) -> None:
    """Refuses a name that no network has; imports one of `package.module:NAME`.

    Raises:
        InputError: no network of this package, and nothing that can be imported or is known by `from_module`.
    """
    if yours.is_name(name):
        yours.find(name)
    elif name not in KINDS:
        raise InputError(
            f"unknown network {name!r}, expected one of {', '.join(NETWORKS)}, or package.module:Class of your own"
        )


@checks_types
def build(name: str, task: Task, width: int, *, dropout: float | None = None) -> Network:
    """The network called `name`, sized for the inputs and classes of `task`.

    Equal arguments give the same object. One that a user brings is checked on the inputs of the task.

    Args:
        name: one of `choices(task)`; or `package.module:NAME`, or what `from_module` or `from_functions` returned.
        task: gives the shape and format of inputs and the number of classes.
        width: hidden units of a layer; in an image network with convolutions, channels of the first.
        dropout: rate, in [0, 1); None for the default of the network.

    Raises:
        InputError: unknown name, a network that cannot read the inputs of `task`, a width that is not positive, or a
            rate out of range; of a user's network, what is wrong with it.
    """
    require(name)
    if width < 1:
        raise InputError(f"network width {width}, expected at least 1")
    rate = usual_dropout(name) if dropout is None else dropout
    if not 0 <= rate < 1:
        raise InputError(f"dropout {rate}, expected at least 0 and less than 1")
    if yours.is_name(name):
        return _build_yours(yours.find(name), task, width, rate)
    kind = KINDS[name]
    if kind.encoder and isinstance(task.format, TextFormat) and task.format.encoder is None:
        raise InputError(
            f"network {name!r} begins from weights that others have trained: name their folder, `pretrained`"
        )
    if not _reads(kind, task):
        raise InputError(f"network {name!r} reads {_what(kind)}; for {_of(task)}, choose {', '.join(choices(task))}")
    return _network(kind.module, Sizes(_inputs(kind.encoder, task), width, task.num_classes, rate))


def _what(kind: Kind) -> str:
    """What a network reads, in words."""
    if not kind.sentences:
        return "images"
    return "pairs of sentences" if kind.sentences == (2,) else "text"


def _of(task: Task) -> str:
    if is_table(task):
        return f"task {task.name!r}, a table of {np.shape(task.train.inputs)[-1]} features"
    return f"task {task.name!r}"


def _build_yours(of: yours.Yours, task: Task, width: int, rate: float) -> Network:
    if isinstance(task.format, TextFormat) and task.format.packed:
        raise InputError(f"`network`={of.name}: pairs of {task.name} are packed, which bert alone reads")
    sizes: Sizes = Sizes(_inputs(False, task), width, task.num_classes, rate)
    network = _of_user(of, sizes)
    checks.check(of, network, sizes, task)
    return network


def follows_width(name: str, task: Task, width: int) -> bool:
    """Whether a network masks hidden units, so that members of a crowd can differ in width; ours do."""
    return not yours.is_name(name) or width == 1 or checks.follows_width(build(name, task, width), width)


def signature(name: str, task: Task, width: int) -> str:
    """A text that tells a network from others, by its name and the shapes of its parameters; not by its code."""
    network = build(name, task, width)
    parameters = jax.eval_shape(network.init, jax.random.key(0), jax.ShapeDtypeStruct((), jnp.int32))
    leaves = jax.tree_util.tree_leaves_with_path(parameters)
    return digest(name, [(jax.tree_util.keystr(path), leaf.shape, str(leaf.dtype)) for path, leaf in leaves])


def _inputs(encoded: bool, task: Task) -> Images | Sentences | Encoded:
    """What a network for the task reads; word pieces by an encoder, if it is `encoded`."""
    if isinstance(task.format, ImageFormat):
        return Images(np.shape(task.train.inputs)[1:], task.format)
    if encoded and task.format.encoder is not None:
        return Encoded(task.format.encoder.config)
    return Sentences(task.format.embeddings.shape[1], len(task.train.inputs))


@functools.cache
def _network(module: Callable[..., nnx.Module], sizes: Sizes) -> Network:
    """The network of these sizes, always the same object: as a static argument of jit, another would compile anew."""
    return of_module(module, sizes)


@functools.cache
def _of_user(of: yours.Yours, sizes: Sizes) -> Network:
    """Likewise, of a network that a user brings."""
    return of.make(sizes)
