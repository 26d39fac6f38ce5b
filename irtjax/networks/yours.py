"""Networks that users bring: found by name, and told in one line what is wrong with them.

A name is `package.module:NAME`, of something that Python can import, or the one that `from_module` and `from_functions`
give back. There are three forms:

    ==================  ==============================================================================================
    a Flax NNX class    built from (`Sizes`, `active`, `rngs`), called with (embeddings, inputs, key): as ours
    two functions       an object with `init(key)` -> parameters, any tree of arrays of real numbers, and
                        `logits(parameters, embeddings, inputs, key)`; `init` may also ask for `sizes` and `active`, by
                        these names, and `logits` for `sizes`
    a Flax Linen class  with `num_classes`, `width`, `dropout` and `sizes` filled in where it has such fields; or one of
                        its instances. Called with what it reads, images as standardised float32 values or a tuple of
                        sentences as word numbers; and with `embeddings`, and `train`, `training` or `deterministic`,
                        where it takes arguments of these names. Dropout has the collection `dropout`.
    ==================  ==============================================================================================

All give (B, C) logits, and draw their dropout from a key, where there is one; `irtjax.networks.network` says what the
arguments are. A crowd stacks the parameters of its members, so there can be no other state: no running statistics of
batches. Members of different width are masked by `active` (`irtjax.networks.layers.width_mask`).
"""

import dataclasses
import functools
import importlib
import inspect
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen, nnx

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.networks.layers import image_values
from irtjax.networks.network import Network, Parameters, of_module
from irtjax.networks.ours import KINDS
from irtjax.networks.sizes import Images, Sizes

SEPARATOR = ":"  # between the module and what is in it
WORDS = 8  # of the sentences that a Linen module is initialised on


@dataclasses.dataclass(frozen=True, eq=False)
class Yours:
    """A network of a user's own; one object as long as its source is the same, so that programs are compiled once.

    Attributes:
        name: that it goes by.
        source: the class, module or pair of functions.
        make: Sizes -> Network.
    """

    name: str
    source: Any
    make: Callable[[Sizes], Network]


_KNOWN: dict[str, Yours] = {}


@checks_types
def from_module(module: Any, name: str | None = None) -> str:
    """Makes a Flax module known, and gives back its name, for `Recipe(network=...)`, `CrowdDesign(networks=...)` etc.

        crowd = irtjax.crowd.train_crowd(task, recipe=default_recipe(task, irtjax.networks.from_module(MyNetwork)))

    Args:
        module: a class of Flax NNX, or a `functools.partial` of one; a class or an instance of Flax Linen.
        name: what to call it; None for `package.module:Class`, which another process can find where it can be imported.

    Raises:
        InputError: something else, or a name that is missing or cannot be one.
    """
    return _enter(_name_of(module, name), module).name


@checks_types
def from_functions(init: Callable[..., Parameters], logits: Callable[..., jax.Array], name: str) -> str:
    """Makes two pure functions known as a network, and gives back its name.

    Args:
        init: (key) -> parameters, a tree of arrays of real numbers. `sizes` and `active` are passed if it takes them.
        logits: (parameters, embeddings, inputs, key) -> (B, C). `sizes` is passed if it takes it.
        name: what to call it.

    Raises:
        InputError: a name that cannot be one.
    """
    return _enter(_name_of(None, name), Network(init, logits)).name


def is_name(name: str) -> bool:
    """Whether it is the name of a network of a user's own, found or not."""
    return SEPARATOR in name or name in _KNOWN


def find(name: str) -> Yours:
    """The network of a name.

    Raises:
        InputError: there is no such module, it has nothing of this name, or is not a network.
    """
    if name in _KNOWN:
        return _KNOWN[name]
    module, _, path = name.partition(SEPARATOR)
    if not re.fullmatch(r"[\w.]+:[\w.]+", name):
        raise InputError(f"`network`={name}: expected package.module:NAME, of what can be imported")
    try:
        source = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and f"{module}.".startswith(f"{error.name}."):
            raise InputError(
                f"`network`={name}: no module {error.name!r} in the current folder or among installed packages"
            ) from error
        raise failure(name, f"importing {module}", error) from error
    except Exception as error:
        raise failure(name, f"importing {module}", error) from error
    for part in path.split("."):
        if not hasattr(source, part):
            raise InputError(f"`network`={name}: module {module} has no {path!r}")
        source = getattr(source, part)
    return _enter(name, source)


def failure(name: str, when: str, error: Exception) -> InputError:
    """What a user's code raised, in one line, with the place in it."""
    lines = str(error).strip().splitlines() or [""]
    frame, trace = None, error.__traceback__
    while trace is not None:  # the last place outside of this package, of JAX and of Flax
        package = str(trace.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in ("irtjax", "jax", "flax", "importlib", "contextlib", "functools"):
            frame = f" (line {trace.tb_lineno} of {trace.tb_frame.f_code.co_filename})"
        trace = trace.tb_next
    return InputError(f"`network`={name}: {when} raises {type(error).__name__}: {lines[0]}{frame or ''}")


def _name_of(module: Any, name: str | None) -> str:
    if name is None:
        if not inspect.isclass(module):
            raise InputError("`name` is missing: only classes have one of their own")
        return f"{module.__module__}{SEPARATOR}{module.__qualname__}"
    if name in KINDS:
        raise InputError(f"`name`={name}: is one of ours, choose another")
    if not re.fullmatch(r"[\w.:<>-]+", name):
        raise InputError(f"`name`={name}: expected letters, digits and . : - _")
    return name


def _enter(name: str, source: Any) -> Yours:
    if name not in _KNOWN or _KNOWN[name].source is not source:
        _KNOWN[name] = Yours(name, source, _form(name, source))
    return _KNOWN[name]


def _form(name: str, source: Any) -> Callable[[Sizes], Network]:
    made = source.func if isinstance(source, functools.partial) else source
    if inspect.isclass(made) and issubclass(made, nnx.Module):
        return functools.partial(_of_nnx, name, source)
    if isinstance(source, linen.Module) or (inspect.isclass(source) and issubclass(source, linen.Module)):
        return functools.partial(_of_linen, name, source)
    if callable(getattr(source, "init", None)) and callable(getattr(source, "logits", None)):
        return functools.partial(_of_functions, name, source.init, source.logits)
    raise InputError(
        f"`network`={name}: is of type {type(source).__name__}: expected a class of Flax NNX, a module of Flax Linen, "
        "or an object with the functions init and logits"
    )


def _of_nnx(name: str, module: Callable[..., nnx.Module], sizes: Sizes) -> Network:
    """Refuses what `of_module` would lose: state beside the parameters, and arrays among what is constant."""

    def make(key: jax.Array, active: jax.Array) -> nnx.Module:
        return module(sizes, active, rngs=nnx.Rngs(key))

    try:
        one = nnx.eval_shape(make, jax.random.key(0), jax.ShapeDtypeStruct((), jnp.int32))
        state = nnx.to_flat_state(nnx.state(one))
    except Exception as error:
        raise failure(name, "building it from (sizes, active, rngs=rngs)", error) from error
    _must_take(name, "is called", one, ("embeddings", "inputs", "key"))
    for path, variable in state:
        if not isinstance(variable, nnx.Param):
            raise _has_state(name, type(variable).__name__, ".".join(map(str, path)))
    for path, part in nnx.iter_modules(one):
        for attribute, value in vars(part).items():
            if isinstance(value, jax.Array):
                at = ".".join(map(str, (*path, attribute)))
                raise InputError(
                    f"`network`={name}: self.{at} is an array: make it an nnx.Param, or compute it where it is used"
                )
    return of_module(module, sizes)


def _must_take(
    name: str, what: str, function: Callable[..., Any], positional: tuple[str, ...], named: tuple[str, ...] = ()
) -> None:
    """Refuses a function that cannot be called so; the last of these arguments is the key."""
    signature = inspect.signature(function)
    try:
        signature.bind(*positional, **dict.fromkeys(named))
    except TypeError as error:
        raise InputError(
            f"`network`={name}: {what} with ({', '.join(positional)}), where key is that of its dropout or None, but "
            f"it takes {signature}"
        ) from error


def _has_state(name: str, kind: str, at: str) -> InputError:
    if kind.startswith("Rng"):
        return InputError(
            f"`network`={name}: {at} ({kind}) is a stream of random numbers: draw dropout from `key` only"
        )
    return InputError(
        f"`network`={name}: {at} ({kind}) is state beside the parameters, which the members of a crowd do not keep: "
        "normalise by groups or layers, not by batches"
    )


def _of_functions(name: str, init: Callable[..., Any], logits: Callable[..., Any], sizes: Sizes) -> Network:
    of_init, of_logits = _taken(init, ("sizes", "active")), _taken(logits, ("sizes",))
    _must_take(name, "logits is called", logits, ("parameters", "embeddings", "inputs", "key"), of_logits)

    def begin(key: jax.Array, active: jax.Array | int, weights: Any = None) -> Parameters:
        offered = {"sizes": sizes, "active": active}
        return init(key, **{name: offered[name] for name in of_init})

    def answer(
        parameters: Parameters, embeddings: jax.Array | None, inputs: Any, key: jax.Array | None = None
    ) -> jax.Array:
        return logits(parameters, embeddings, inputs, key, **dict.fromkeys(of_logits, sizes))

    return Network(begin, answer)


def _taken(function: Callable[..., Any], names: tuple[str, ...]) -> tuple[str, ...]:
    """Which of these arguments a function takes."""
    return tuple(name for name in names if name in inspect.signature(function).parameters)


def _of_linen(name: str, source: Any, sizes: Sizes) -> Network:
    module: Any = source
    if inspect.isclass(source):
        known = {"num_classes": sizes.num_classes, "width": sizes.width, "dropout": sizes.dropout, "sizes": sizes}
        fields = set(inspect.signature(source).parameters)
        try:
            module = source(**{field: value for field, value in known.items() if field in fields})
        except Exception as error:
            raise failure(name, "building it", error) from error
    takes = list(inspect.signature(module.__call__).parameters)
    flags = {"train": False, "training": False, "deterministic": True}  # without dropout
    first = next((one for one in takes if one not in ("embeddings", *flags)), None)
    if first is None:
        raise InputError(f"`network`={name}: __call__ takes no inputs")

    def arguments(embeddings: jax.Array | None, inputs: Any, key: jax.Array | None) -> dict[str, Any]:
        read = image_values(sizes.inputs.format, inputs) if isinstance(sizes.inputs, Images) else inputs
        offered = {"embeddings": embeddings, first: read}
        offered |= {flag: value if key is None else not value for flag, value in flags.items()}
        return {one: value for one, value in offered.items() if one in takes}

    def variables(key: jax.Array) -> dict[str, Any]:
        if isinstance(sizes.inputs, Images):
            example: tuple[Any, Any] = None, jnp.zeros((1, *sizes.inputs.shape))
        else:
            words = jnp.ones((1, WORDS), jnp.int32)
            example = jnp.zeros((2, sizes.inputs.dimension)), (words,) * sizes.inputs.per_example
        return module.init({"params": key}, **arguments(*example, None))

    try:
        shapes = jax.eval_shape(variables, jax.random.key(0))
    except Exception as error:
        raise failure(name, "building it", error) from error
    for kind in shapes:
        if kind != "params":
            at, _ = jax.tree_util.tree_leaves_with_path(shapes[kind])[0]
            raise _has_state(name, kind, ".".join(str(getattr(key, "key", key)) for key in at))

    def init(key: jax.Array, active: jax.Array | int, weights: Any = None) -> Parameters:
        return variables(key).get("params", {})

    def logits(
        parameters: Parameters, embeddings: jax.Array | None, inputs: Any, key: jax.Array | None = None
    ) -> jax.Array:
        rngs = {} if key is None else {"dropout": key}
        return module.apply({"params": parameters}, **arguments(embeddings, inputs, key), rngs=rngs)

    return Network(init, logits)
