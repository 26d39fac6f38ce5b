"""The members of a crowd: how they differ, drawn at random or read from a table; and what each is trained on."""

import dataclasses
import functools
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from irtjax.arguments import checks_types
from irtjax.crowd.choices import DESIGNS, CrowdDesign
from irtjax.errors import InputError
from irtjax.storage.sources import LONGEST, shown
from irtjax.storage.tables import read_table
from irtjax.tasks import Task
from irtjax.training.loop import Plan
from irtjax.training.recipe import Recipe, for_convolutions
from irtjax.types import AnyArray, Bool, Float, Int, Shaped


@checks_types
def default_design(task: Task) -> CrowdDesign:
    """The design for a task, which has been tried on it; for other tasks, one that goes by their sizes.

    The smallest subset of N examples of C classes is a twentieth, from 2 to 50, or two examples of each class where
    that is more, but no more than a quarter. Images for convolutions are harder: of few of them, or with most labels
    wrong, networks learn little. There it is a twentieth up to 200, and at most half of
    the labels are wrong.
    """
    if task.name in DESIGNS and len(task.train.labels) >= DESIGNS[task.name].min_subset:
        return DESIGNS[task.name]
    number, classes, hard = len(task.train.labels), task.num_classes, for_convolutions(task)
    smallest = max(2, min(200 if hard else 50, number // 20), min(2 * classes, number // 4))
    return CrowdDesign(min(smallest, number), min(0.5 if hard else 0.8, 1 - 1 / classes))


@dataclasses.dataclass(frozen=True, eq=False)
class Members:
    """J members of a crowd; everything random about a member follows from its row.

    Attributes:
        number: (J,) the member's number in the crowd that it was drawn for, which names it.
        seed: (J,) of subset membership, corrupted labels, initial weights and minibatches.
        subset_size: (J,) training examples.
        corruption_rate: (J,) share of those whose label is replaced by a wrong one.
        learning_rate: (J,) of its optimizer.
        width: (J,) hidden units of a layer that are not masked.
        network: (J,) name of its architecture.
    """

    number: Int[AnyArray, " J"]
    seed: Int[AnyArray, " J"]
    subset_size: Int[AnyArray, " J"]
    corruption_rate: Float[AnyArray, " J"]
    learning_rate: Float[AnyArray, " J"]
    width: Int[AnyArray, " J"]
    network: Shaped[np.ndarray, " J"]

    def __len__(self) -> int:
        """J."""
        return len(self.number)

    @checks_types
    def choose(self, rows: np.ndarray | slice) -> "Members":
        """Some of the members, by a mask, positions or a slice."""
        return Members(**{name: column[rows] for name, column in self.columns.items()})

    @property
    def columns(self) -> dict[str, Any]:
        """The columns by name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @property
    def subject_ids(self) -> np.ndarray:
        """(J,) names in response matrices."""
        return np.array([f"model_{number:04d}" for number in self.number])


COLUMNS = tuple(field.name for field in dataclasses.fields(Members) if field.name != "number")


@checks_types
def sample_members(num_models: int, num_examples: int, seed: int, recipe: Recipe, design: CrowdDesign) -> Members:
    """Draws a crowd, each column independently of the others.

    Args:
        num_models: J, at least 2.
        num_examples: of the training split; the largest subset.
        seed: of the draws.
        recipe: gives the largest width, the middle of the learning rates and, without `networks`, the architecture.
        design: how members differ.

    Raises:
        InputError: fewer than two models, or a range that is empty.
    """
    min_width = recipe.width if design.min_width is None else design.min_width
    if num_models < 2:
        raise InputError(f"a crowd of {num_models}, expected at least 2 models")
    if not 1 <= design.min_subset <= num_examples:
        raise InputError(f"smallest subset {design.min_subset}, expected 1 to {num_examples} (the training examples)")
    if not 1 <= min_width <= recipe.width:
        raise InputError(f"smallest width {min_width}, expected 1 to {recipe.width}")
    rng = np.random.default_rng(seed)
    log_size = rng.uniform(np.log(design.min_subset), np.log(num_examples), num_models)
    seeds = rng.choice(2**31, size=num_models, replace=False)
    corruption = rng.uniform(0, design.max_corruption, num_models)
    rates = recipe.learning_rate * design.learning_rate_factor ** rng.uniform(-1, 1, num_models)
    return Members(
        number=np.arange(num_models),
        seed=seeds,
        subset_size=np.round(np.exp(log_size)).astype(np.int32),
        corruption_rate=_as_written(corruption),
        learning_rate=_as_written(rates),
        width=rng.integers(min_width, recipe.width + 1, num_models).astype(np.int32),
        network=rng.permutation(np.resize(np.array(design.networks or (recipe.network,)), num_models)),
    )


def _as_written(values: np.ndarray) -> np.ndarray:
    """Rounded to the six digits that tables are written with, so that a crowd read back is the same crowd."""
    return np.array([f"{value:.6g}" for value in values], np.float32)


@checks_types
def read_members(source: str | Path | pd.DataFrame) -> Members:
    """The members of a crowd from its `members.csv`, or from a table with the same columns.

    Args:
        source: a CSV file, or a table such as `Crowd.members`. Further columns are ignored.

    Raises:
        InputError: names the file, and the column or row that is missing or wrong.
    """
    if isinstance(source, pd.DataFrame):
        return _members_of(source.reset_index(drop=True), "table of members")
    return _members_of(read_table(source, text=True), str(source))


def _members_of(table: pd.DataFrame, name: str) -> Members:
    if table.columns.has_duplicates:
        raise InputError(f"{name}: two columns are called {table.columns[table.columns.duplicated()][0]!r}")
    missing = [column for column in ("subject_id", *COLUMNS) if column not in table]
    if missing:
        raise InputError(f"{name}: no column {missing[0]!r}; members.csv of a crowd has it")
    if table.empty:
        raise InputError(f"{name}: no members")

    def refuse(bad: pd.Series, column: str, expected: str) -> None:
        """Names the first bad row, as an editor counts them."""
        if bad.any():
            row = bad.idxmax()
            raise InputError(f"{name}: row {row + 2}: {column} {_plain(table[column][row])}, expected {expected}")

    names = table.subject_id.astype(str)
    refuse(~names.str.fullmatch("model_[0-9]{1,9}"), "subject_id", "model_ and a number of at most nine digits")
    numbers = names.str.removeprefix("model_").astype(int)
    refuse(numbers.duplicated(), "subject_id", "each number once")
    largest = 2**31 - 1
    values = {column: _numbers(table[column]) for column in COLUMNS if column != "network"}
    for column, least in (("seed", 0), ("subset_size", 1), ("width", 1)):
        bad = ~values[column].between(least, largest) | (values[column] % 1 != 0)
        refuse(bad, column, f"a whole number from {least} to {largest}")
    for column, low, high in (("corruption_rate", 0.0, 1.0), ("learning_rate", float(np.finfo(np.float32).tiny), 1e6)):
        refuse(~values[column].between(low, high), column, f"a number from {low:g} to {high:g}")
    refuse(table.network.isna(), "network", "the name of an architecture")
    return Members(
        number=numbers.to_numpy(),
        seed=values["seed"].to_numpy(np.int64),
        subset_size=values["subset_size"].to_numpy(np.int32),
        corruption_rate=values["corruption_rate"].to_numpy(np.float32),
        learning_rate=values["learning_rate"].to_numpy(np.float32),
        width=values["width"].to_numpy(np.int32),
        network=table.network.astype(str).to_numpy(str),
    )


def _numbers(column: pd.Series) -> pd.Series:
    """A column as numbers; NaN where a cell is none. Dates and truth values are none, once they are text."""
    return pd.to_numeric(column.astype(str), errors="coerce").astype(float)


def _plain(value: object) -> str:
    """A cell as people wrote it: texts without quotes as long as they are short and on one line."""
    text = str(value)
    return text if text.isprintable() and len(text) <= LONGEST else shown(text)


class MemberRow(NamedTuple):
    """What one member's plan is made of: its row of `Members` without names."""

    seed: AnyArray
    subset_size: AnyArray
    corruption_rate: AnyArray
    learning_rate: AnyArray
    width: AnyArray


class Gold(NamedTuple):
    """What all plans have in common: (N,) gold labels, as small integers, and the number of classes."""

    labels: AnyArray
    num_classes: AnyArray


def rows_of(members: Members) -> MemberRow:
    """The columns that plans are made of."""
    columns = {name: getattr(members, name) for name in MemberRow._fields}
    return MemberRow(**columns | {"seed": members.seed.astype(np.uint32)})


def gold_of(task: Task) -> Gold:
    """The gold labels of the training split."""
    small = np.uint8 if task.num_classes <= 256 else np.int32
    return Gold(task.train.labels.astype(small), np.asarray(task.num_classes, np.int32))


def plan_member(row: MemberRow, gold: Gold) -> Plan:
    """What one member is trained on: a random subset of the N training examples, some of its labels corrupted.

    A corrupted label is uniform over the C - 1 wrong ones.
    """
    num_examples = gold.labels.shape[0]
    key, order = _order(row, num_examples)
    wrong_key, key = jax.random.split(key)
    shift = jax.random.randint(wrong_key, (num_examples,), 1, gold.num_classes)
    right = jnp.asarray(gold.labels)[order].astype(jnp.int32)
    corrupted = jnp.arange(num_examples) < jnp.round(row.corruption_rate * row.subset_size)
    shown = jnp.where(corrupted, (right + shift) % gold.num_classes, right).astype(gold.labels.dtype)
    labels = jnp.zeros_like(gold.labels).at[order].set(shown)
    return Plan(key, order, row.subset_size, labels, row.learning_rate, row.width)


def _order(row: MemberRow, num_examples: int) -> tuple[jax.Array, jax.Array]:
    """The member's order of all training examples, whose first `subset_size` are its own, and a key for the rest."""
    order_key, key = jax.random.split(jax.random.key(row.seed))
    return key, jax.random.permutation(order_key, num_examples)


def in_subset(members: Members, num_examples: int) -> Bool[np.ndarray, "J N"]:
    """Which of the training examples each member is trained on."""
    rows = rows_of(members)
    return np.stack([np.asarray(_in_subset(row, num_examples)) for row in map(MemberRow, *rows)])


@functools.partial(jax.jit, static_argnums=1)
def _in_subset(row: MemberRow, num_examples: int) -> jax.Array:
    _, order = _order(row, num_examples)
    return jnp.zeros(num_examples, bool).at[order].set(jnp.arange(num_examples) < row.subset_size)


def in_every_subset(members: Members, num_examples: int) -> Bool[np.ndarray, " N"]:
    """The training examples that all members are trained on: out of bag, nobody answers them."""
    everyone = np.ones(num_examples, bool)
    for at in range(len(members)):
        everyone &= in_subset(members.choose(slice(at, at + 1)), num_examples)[0]
        if not everyone.any():
            break
    return everyone
