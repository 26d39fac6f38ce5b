"""Public functions refuse arguments of other types than their annotations say, in one line that names the argument."""

import dataclasses
import functools
import importlib
import inspect
import os
import pickle
import re
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from conftest import REPOSITORY
from jaxtyping import Float
from simulation import simulate

import irtjax
from irtjax import InputError, annotations, arguments
from irtjax.annotations import MOST_LOOKED_AT
from irtjax.arguments import checks_types
from irtjax.crowd import CrowdDesign
from irtjax.evaluation.adaptive_options import Band, Randomesque, Stop
from irtjax.populations.normal import Population
from irtjax.selection import CurriculumOptions
from irtjax.tasks import Split, Task, TaskOptions
from irtjax.training.recipe import Recipe

# what JAX traces, whose arguments are of no type yet
TRACED = (
    "irtjax.kernels.",
    *(f"irtjax.networks.{name}." for name in ("layers", "hashing", "resnet")),
    "irtjax.selection.probe.",
)
INNER = {  # methods that fits call for each part of their work, with what they have made themselves
    f"irtjax.responses.{owner}.{method}"
    for owner in ("matrix.ResponseMatrix", "sparse.SparseResponses", "stored.StoredResponses")
    for method in ("counts", "choose_items", "choose_subjects", "choose_answers")
} | {"irtjax.tasks.options.TaskOptions.check"}


SPLIT = Split(np.zeros((1, 2)), np.zeros(1, int), np.array(["a"]))


class Nothing:
    """Of no kind: no number, no list, nothing that can be called."""

    def __repr__(self):
        return "two\nlines"


class Folder(os.PathLike):
    def __init__(self, path="folder"):
        self.path = path

    def __fspath__(self):
        return str(self.path)


def taking(annotation):
    def function(value):
        return value

    function.__annotations__ = {"value": annotation}
    return checks_types(function)


TEXTS = (["a"], ("a",), [], np.array(["a"]), np.array(["a"], object), pd.Index(["a"]), pd.Series(["a"]))
NUMBERS = (2, np.int8(2), np.array(2), jnp.array(2))
NO_NUMBERS = (True, np.True_, "2", b"2", None, 1j, [2], np.array([2]), {})
KINDS = [
    (bool, (True, np.True_, np.array(True)), (1, 0, 1.0, "x", None, [])),
    (int, NUMBERS, (*NO_NUMBERS, 2.0, float("nan"))),
    (float, (*NUMBERS, 0.5, np.float32(0.5), jnp.array(0.5), Fraction(1, 2), float("nan")), NO_NUMBERS),
    (str, ("x", np.str_("x")), (3, b"x", None, ["x"], Path("x"))),
    (None, (None,), (0, "", False)),
    (int | None, (*NUMBERS, None), (2.0, "x", True)),
    (Literal["a", 1], ("a", np.str_("a"), 1), ("b", 2, None, ["a"], np.array(["a", "b"]))),
    (str | Path, ("x", Path("x"), Folder()), (b"x", 3, None, ["x"])),
    (str | os.PathLike, ("x", Path("x"), Folder()), (b"x", 3, None, ["x"])),
    (Callable[[int], None], (print, functools.partial(print), Nothing), (3, "x", None)),
    (
        Sequence[str],
        TEXTS,
        ("a", b"a", {"a"}, {"a": 1}, 3, None, ["a", 3], np.array([1]), np.array("a"), pd.DataFrame({"a": [1]})),
    ),
    (list[str], TEXTS, ("a", [3], None)),
    (tuple[str, ...], TEXTS, ("a", (3,), None)),
    (str | Sequence[str], ("a", *TEXTS), (3, [3], None, {"a": "b"})),
    (Sequence[Any], ([1, "a"], np.ones((2, 2))), ("a", 3, np.array(1), {})),
    (Collection[int], ({1}, {1: 2}.keys(), range(3), [np.int8(1)]), ({1: 2}, "1", ["1"], 3)),
    (Iterable[int], (iter([1]), [1]), ("x", 3)),
    (tuple[int, int], ((1, 2), [1, 2], np.array([1, 2])), ((1,), (1, 2, 3), ("a", 1), 3, "ab")),
    (Mapping[str, int], ({"a": 1}, {}, types.MappingProxyType({"a": 1})), ([("a", 1)], {"a": "b"}, {1: 1}, "a", None)),
    (dict, ({"a": 1}, {}), ([], None)),
    (
        Float[np.ndarray, " N"],
        (np.ones(3), [1, 2], (), 2.0, jnp.ones(2), pd.Series([1.0])),
        ("x", b"x", {}, None, print),
    ),
    (np.ndarray | None, (np.ones(3), None), ("x", Nothing())),
    (Population, (Population(),), (Population, (0.0, 1.0), "x", None)),
    (Any, ("x", 3, None, Nothing()), ()),
    (str | Any, ("x", 3, None, Nothing()), ()),
    (Mapping[Any, str] | Sequence[Any], ({1: "a"}, [1]), ({1: 1}, "a")),
]


@pytest.mark.parametrize(("annotation", "right", "wrong"), KINDS, ids=[str(kind) for kind, _, _ in KINDS])
def test_what_annotations_allow(annotation, right, wrong):
    function = taking(annotation)
    for value in right:
        assert function(value) is function(value=value) is value
    for value in wrong:
        with pytest.raises(InputError, match=r"^`value` .+, expected .+$"):
            function(value)


@pytest.mark.parametrize(
    ("annotation", "value", "message"),
    [
        (str, 3, "`value` 3, expected a name"),
        (int, 10**6 + 0.5, "`value` 1000000.5, expected a whole number"),
        (float | None, "a\nb", r"`value` 'a\nb', expected a number or None"),
        (bool | None, "yes", "`value` 'yes', expected True, False or None"),
        (str | Path | None, 3, "`value` 3, expected a path or None"),
        (None | pd.DataFrame | str | Path, 1234, "`value` 1,234, expected a DataFrame, a path or None"),
        (int | float, "x", "`value` 'x', expected a number"),
        (str | Sequence[str], [3], "`value` [3], expected a name or a list of names"),
        (Sequence[int | str], 3, "`value` 3, expected a list of whole numbers or names"),
        (Sequence[Population], [1], "`value` [1], expected a list of Populations"),
        (Sequence[bool | None], 3, "`value` 3, expected a list of True, False or None"),
        (tuple[int, int] | tuple[int, int, int], (), "`value` (), expected a pair or a list of 3"),
        (Literal["a", "b"], "c", "`value` 'c', expected 'a' or 'b'"),
        (Callable[..., Any], np.ones((2, 2)), "`value` of type ndarray, expected a function"),
        (np.ndarray, Nothing(), "`value` of type Nothing, expected an array"),
        (Mapping[str, Any], pd.DataFrame(), "`value` of type DataFrame, expected a dictionary"),
    ],
)
def test_messages_say_what_was_given_and_what_is_expected(annotation, value, message):
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        taking(annotation)(value)


def test_of_long_lists_the_first_entries_are_looked_at():
    function = taking(Sequence[str])
    with pytest.raises(InputError, match=r"^`value` \['a', .{90,100}, expected a list of names$"):
        function(["a"] * (MOST_LOOKED_AT - 1) + [3])
    assert len(function(["a"] * MOST_LOOKED_AT + [3])) == MOST_LOOKED_AT + 1


@checks_types
def described(first: int, /, second: str = "b", *rest: int, third: float, **others: int) -> tuple[Any, ...]:
    """What it is."""
    return first, second, rest, third, others


def test_a_function_remains_what_it_is():
    assert (described.__name__, described.__doc__, described.__module__) == ("described", "What it is.", __name__)
    assert inspect.signature(described) == inspect.signature(inspect.unwrap(described))
    assert pickle.loads(pickle.dumps(described)) is described
    assert described(1, "b", "c", third=0.5, first="d") == (1, "b", ("c",), 0.5, {"first": "d"})
    with pytest.raises(TypeError, match="missing 1 required positional"):
        described(third=0.5)
    with pytest.raises(TypeError, match="unexpected keyword"):
        irtjax.load_fit(directory="x", model="2pl")
    with pytest.raises(TypeError, match="positional argument"):
        irtjax.load_fit("x", "y")


def named_in_guide():
    """Names of functions, classes and modules that the documentation imports, or has with all their dots."""
    texts = [path.read_text(encoding="utf-8") for path in (*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md"))]
    for text in texts:
        yield from re.findall(r"irtjax(?:\.\w+)+", text)
        for module, names in re.findall(r"from (irtjax[\w.]*) import ([\w, ]+)", text):
            yield from (f"{module}.{name.strip()}" for name in names.split(","))


def found(name):
    """What a name with dots is of; None where it is of nothing, such as the column of a file."""
    module, _, attribute = name.rpartition(".")
    try:
        return getattr(importlib.import_module(module), attribute, None)
    except ImportError:
        return None


def public():
    """Public functions and methods by name: of the top, of what rooms export, and of what the guide names."""
    rooms = [irtjax, *(importlib.import_module(f"irtjax.{room}") for room in irtjax._ROOMS)]
    names = {f"{room.__name__}.{name}" for room in rooms for name in getattr(room, "__all__", ())}
    names |= {name for name in named_in_guide() if not name.rpartition(".")[2].startswith("_")}
    for name in sorted(names):
        one = found(name)
        if inspect.isfunction(one):
            yield of(one), one, ()
        elif inspect.isclass(one) and not issubclass(one, Exception):
            generated = dataclasses.is_dataclass(one) and one.__dataclass_params__.init
            for method, member in vars(one).items():
                function = getattr(member, "__func__", member)
                shown = method[0] != "_" or method == "__call__" or (method == "__init__" and not generated)
                if shown and inspect.isfunction(function):
                    yield of(function), function, (None,)


def of(function):
    return f"{function.__module__}.{function.__qualname__}"


PUBLIC = {name: rest for name, *rest in public() if not name.startswith(TRACED) and name not in INNER}


def test_public_functions_are_found():
    assert {"irtjax.fitting.fit", "irtjax.fits.result.Fit.save", "irtjax.tasks.from_table.from_table"} <= {*PUBLIC}
    assert {"irtjax.evaluation.monitor.Monitor.__init__", "irtjax.soft_labels.train.train_method"} <= {*PUBLIC}
    assert len(PUBLIC) > 90


def may_be_anything(annotation):
    return Any in (annotation, *get_args(annotation)) or getattr(annotation, "_is_protocol", False)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_function_refuses_other_types(name):
    """An argument of no kind is refused before others are missed; so no function does without the check."""
    function, before = PUBLIC[name]
    hints = get_type_hints(inspect.unwrap(function))
    # in tests another check is around that of `__init__` of arrays
    function = inspect.unwrap(function, stop=lambda layer: layer.__code__.co_filename == arguments.__file__)
    for argument in inspect.signature(function).parameters.values():
        annotation = hints.get(argument.name, Any)
        if argument.kind in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD) or may_be_anything(annotation):
            continue
        with pytest.raises(InputError, match=rf"^`{argument.name}` of type Nothing, expected .+$"):
            function(*before, **{argument.name: Nothing()})


def parts(annotation):
    """An annotation, and those within it."""
    yield annotation
    for part in get_args(annotation):
        yield from parts(part)


def dataclasses_in(annotations):
    """Dataclasses with fields of the user in annotations, and in those of their fields."""
    for one in (one for annotation in annotations for one in parts(annotation)):
        if dataclasses.is_dataclass(one) and inspect.isclass(one) and one.__dataclass_params__.init:
            yield one
            yield from dataclasses_in(get_type_hints(one).values())


def public_dataclasses():
    """What public functions take, by name, and what the documentation or a room names."""
    taken = (get_type_hints(inspect.unwrap(function)) for function, _ in PUBLIC.values())
    taken = [annotation for hints in taken for name, annotation in hints.items() if name != "return"]
    rooms = [irtjax, *(importlib.import_module(f"irtjax.{room}") for room in irtjax._ROOMS)]
    names = {f"{room.__name__}.{name}" for room in rooms for name in getattr(room, "__all__", ())}
    return {of(one): one for one in dataclasses_in([*taken, *map(found, {*names, *named_in_guide()})])}


MADE = {  # dataclasses that functions of the library make, from what they have checked
    *("irtjax.fits.result.Fit", "irtjax.populations.groups.FittedGroups", "irtjax.item_models.families.Families"),
    *("irtjax.populations.latent_regression.FittedLatentRegression", "irtjax.pretrained.folder.Pretrained"),
    *("irtjax.groups.linking.Link", "irtjax.responses.scaled.ScaledResponses", "irtjax.evaluation.bank.Bank"),
    *("irtjax.evaluation.prediction.Crossed", "irtjax.evaluation.binary_adaptive.AdaptiveTest"),
    *("irtjax.evaluation.scaled_adaptive.ScaledAdaptiveTest", "irtjax.crowd.members.Members"),
    *("irtjax.networks.sizes.Sizes", "irtjax.tasks.loading.Loader"),
}
OPTIONS = {name: owner for name, owner in public_dataclasses().items() if name not in MADE}


def test_public_dataclasses_are_found():
    adaptive = {f"irtjax.evaluation.adaptive_options.{name}" for name in ("Stop", "Randomesque", "Progressive", "Band")}
    assert adaptive <= {*OPTIONS}
    assert {of(owner) for owner in (Recipe, CrowdDesign, CurriculumOptions, TaskOptions, Task)} <= {*OPTIONS}
    assert {*public_dataclasses()} >= MADE


def checked(owner, **fields):
    """Options with these fields, checked by themselves alone: the types of some rooms are checked in tests anyway."""
    options = object.__new__(owner)
    for field in dataclasses.fields(owner):
        value = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        object.__setattr__(options, field.name, fields.get(field.name, value))
    if owner is TaskOptions:
        options.check("digits", ())
    else:
        options.__post_init__()
    return options


@pytest.mark.parametrize("name", OPTIONS)
def test_options_refuse_other_types(name):
    """A field of no kind is refused; those before it, which need not have a default, hold what they may."""
    owner, before = OPTIONS[name], {}
    for field in dataclasses.fields(owner):
        annotation = get_type_hints(owner)[field.name]
        assert not may_be_anything(annotation)
        with pytest.raises(InputError, match=rf"^`{field.name}` of type Nothing, expected .+$"):
            checked(owner, **before, **{field.name: Nothing()})
        if field.default is field.default_factory is dataclasses.MISSING:
            before[field.name] = value_of(annotation)


def value_of(annotation):
    """A value that an annotation allows, made without its constructor where it is a class of ours."""
    values = (*(value for _, right, _ in KINDS for value in right), *map(object.__new__, OPTIONS.values()), SPLIT)
    kind = annotations._kind(annotation)
    return next(value for value in values if kind.allows(value))


@pytest.mark.parametrize(
    ("owner", "fields", "said"),
    [
        (Stop, {"max_items": "3"}, "`max_items` '3', expected a whole number"),
        (Stop, {"max_items": float("nan")}, "`max_items` nan, expected a whole number"),
        (Stop, {"max_items": 3, "change": True}, "`change` True, expected a number or None"),
        (Randomesque, {"best": True}, "`best` True, expected a whole number"),
        (Band, {"low": "0", "high": 1.0}, "`low` '0', expected a number"),
    ],
)
def test_options_that_are_nearly_right(owner, fields, said):
    with pytest.raises(InputError, match=f"^{re.escape(said)}$"):
        checked(owner, **fields)


def test_options_of_every_usual_type_are_taken():
    assert checked(Recipe, width=np.int64(8), learning_rate=1, train_embeddings=np.True_, warmup=None)
    assert checked(CrowdDesign, networks=["mlp"], min_width=None, max_corruption=np.float32(0.5))
    assert checked(TaskOptions, data_dir=Path("data"), on_note=print)


def test_arguments_of_every_usual_type_are_taken(tmp_path):
    responses, _, _ = simulate(60, 8)
    fit_it = checks_types(inspect.unwrap(irtjax.fit))  # without the stricter check of types in tests
    fit = fit_it(responses, np.array(["1pl"] * 8), standard_errors=False)
    assert fit.difficulty.tolist() == irtjax.fit(responses, ["1pl"] * 8, standard_errors=False).difficulty.tolist()
    fit.save(Folder(tmp_path / "fit"))
    assert irtjax.load_fit(Folder(tmp_path / "fit")) == fit
    first = responses.subject_ids[:2].tolist()
    for subjects in (first, tuple(first), np.array(first), pd.Index(first), pd.Series(first)):
        assert irtjax.beats(fit, subjects).index.tolist() == first
    assert irtjax.plausible_values(fit, responses, num_draws=np.int8(3), seed=np.int64(1)).shape == (3, 60)
    pd.testing.assert_frame_equal(irtjax.ranking(fit, np.float64(0.9)), irtjax.ranking(fit, 0.9))


def test_warnings_point_at_the_caller():
    answers = simulate(80, 10)[0].values.copy()
    answers[:3] = -1
    with pytest.warns(irtjax.FitWarning, match="3 of 80 subjects answered no anchor") as caught:
        irtjax.dif(answers, np.arange(80) % 2, "mantel_haenszel", anchors=["item_1", "item_2"], purify=False)
    assert [one.filename for one in caught] == [__file__]
