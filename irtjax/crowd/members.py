"""The members of a crowd: drawn, written down, read back, and turned into what each is trained on."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.tasks import Task
from irtjax.training.trainer import Plan


class Members(NamedTuple):
    """The crowd's specification; everything random about a member follows from its row.

    Attributes:
        number: (J,) the member's place in the crowd, which names it.
        seed: (J,) of subset membership, corrupted labels, initial weights and minibatches.
        subset_size: (J,) training examples.
        corruption_rate: (J,) share of those whose label is replaced by a wrong one.
        learning_rate: (J,) of its optimizer.
        width: (J,) hidden units a layer that are not masked.
        network: (J,) name of its architecture.
    """

    number: np.ndarray
    seed: np.ndarray
    subset_size: np.ndarray
    corruption_rate: np.ndarray
    learning_rate: np.ndarray
    width: np.ndarray
    network: np.ndarray

    def __getitem__(self, rows) -> "Members":
        """Some of the members; a NamedTuple would give a column."""
        return Members(*(column[rows] for column in self))

    @property
    def subject_ids(self) -> np.ndarray:
        """Names in response matrices."""
        return np.array([f"model_{number:04d}" for number in self.number])


def sample_members(
    num_models: int,
    num_examples: int,
    seed: int,
    *,
    min_subset: int,
    max_corruption: float,
    learning_rate: float,
    learning_rate_factor: float = 1.0,
    width: int,
    min_width: int | None = None,
    networks: Sequence[str],
) -> Members:
    """Draws a crowd, each column independently of the others.

    Args:
        num_models: J, at least 2.
        num_examples: of the training split.
        seed: of the draws.
        min_subset: subset sizes are log-uniform between this and `num_examples`.
        max_corruption: corruption rates are uniform between 0 and this.
        learning_rate: middle of the learning rates.
        learning_rate_factor: they are log-uniform between rate / factor and rate × factor.
        width: largest width.
        min_width: widths are uniform between this and `width`; None for `width` only.
        networks: architectures, as equally many members of each as can be.

    Raises:
        InputError: fewer than two models, or a range that is empty.
    """
    min_width = width if min_width is None else min_width
    if num_models < 2:
        raise InputError(f"a crowd of {num_models}, expected at least 2 models")
    if not 1 <= min_subset <= num_examples:
        raise InputError(f"smallest subset {min_subset}, expected 1 to {num_examples} (the training examples)")
    if not 0 <= max_corruption <= 1:
        raise InputError(f"largest corruption rate {max_corruption}, expected 0 to 1")
    if not 1 <= min_width <= width:
        raise InputError(f"smallest width {min_width}, expected 1 to {width}")
    if not learning_rate_factor >= 1:
        raise InputError(f"learning rate factor {learning_rate_factor}, expected at least 1")
    rng = np.random.default_rng(seed)
    log_size = rng.uniform(np.log(min_subset), np.log(num_examples), num_models)
    seeds = rng.choice(2**31, size=num_models, replace=False)
    corruption = rng.uniform(0, max_corruption, num_models)
    rates = learning_rate * learning_rate_factor ** rng.uniform(-1, 1, num_models)
    return Members(
        number=np.arange(num_models),
        seed=seeds,
        subset_size=np.round(np.exp(log_size)).astype(np.int32),
        corruption_rate=_as_written(corruption),
        learning_rate=_as_written(rates),
        width=rng.integers(min_width, width + 1, num_models).astype(np.int32),
        network=rng.permutation(np.resize(np.array(networks), num_models)),
    )


def _as_written(values: np.ndarray) -> np.ndarray:
    """Rounded to the six digits that tables are written with, so that a crowd read back is the same crowd."""
    return np.array([f"{value:.6g}" for value in values], np.float32)


def read_members(path: str | Path) -> Members:
    """A crowd's specification from `members.csv`, or a table of the same columns.

    Raises:
        InputError: names the file, and the column or row that is missing or wrong.
    """
    try:
        table = pd.read_csv(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except ValueError as error:
        raise InputError(f"{path}: not a table of members ({' '.join(str(error).split())})") from error
    missing = [name for name in ("subject_id", *Members._fields[1:]) if name not in table]
    if missing:
        raise InputError(f"{path}: no column {missing[0]!r}; members.csv of a crowd has it")
    if table.empty:
        raise InputError(f"{path}: no members")

    def refuse(bad: pd.Series, name: str, expected: str) -> None:
        """Names the first bad row, as an editor counts them."""
        if bad.any():
            row = bad.idxmax()
            raise InputError(f"{path}: row {row + 2}: {name} {table[name][row]}, expected {expected}")

    names = table.subject_id.astype(str)
    refuse(~names.str.fullmatch(r"model_\d{1,9}"), "subject_id", "model_ and a number of at most nine digits")
    numbers = names.str.removeprefix("model_").astype(int)
    refuse(numbers.duplicated(), "subject_id", "each number once")
    largest, smallest = 2**31 - 1, float(np.finfo(np.float32).tiny)
    for name, low, high in (("seed", 0, largest), ("subset_size", 1, largest), ("width", 1, largest)):
        values = pd.to_numeric(table[name], errors="coerce")
        refuse(~values.between(low, high) | (values % 1 != 0), name, f"a whole number from {low} to {high}")
    for name, low, high in (("corruption_rate", 0, 1), ("learning_rate", smallest, 1e6)):
        values = pd.to_numeric(table[name], errors="coerce")
        refuse(~values.between(low, high), name, f"a number from {low:g} to {high:g}")
    refuse(table.network.isna(), "network", "the name of an architecture")
    return Members(
        number=numbers.to_numpy(),
        seed=table.seed.to_numpy(np.int64),
        subset_size=table.subset_size.to_numpy(np.int32),
        corruption_rate=table.corruption_rate.to_numpy(np.float32),
        learning_rate=table.learning_rate.to_numpy(np.float32),
        width=table.width.to_numpy(np.int32),
        network=table.network.astype(str).to_numpy(str),
    )


class Row(NamedTuple):
    """What one member's plan is made of: its row of `Members` without names."""

    seed: jax.Array
    subset_size: jax.Array
    corruption_rate: jax.Array
    learning_rate: jax.Array
    width: jax.Array


class Gold(NamedTuple):
    """What all plans have in common: (N,) gold labels, as small integers, and the number of classes."""

    labels: jax.Array
    num_classes: jax.Array


def rows_of(members: Members) -> Row:
    """The columns that plans are made of."""
    columns = {name: getattr(members, name) for name in Row._fields}
    return Row(**columns | {"seed": members.seed.astype(np.uint32)})


def gold_of(task: Task) -> Gold:
    """The gold labels of the training split."""
    return Gold(task.train.labels.astype(np.uint8 if task.num_classes <= 256 else np.int32), np.int32(task.num_classes))


def plan_member(row: Row, gold: Gold) -> Plan:
    """What one member is trained on: a random subset of the N training examples, some of its labels corrupted.

    A corrupted label is uniform over the C - 1 wrong ones.
    """
    num_examples = gold.labels.shape[0]
    key, order = _order(row, num_examples)
    wrong_key, key = jax.random.split(key)
    shift = jax.random.randint(wrong_key, (num_examples,), 1, gold.num_classes)
    right = gold.labels[order].astype(jnp.int32)
    corrupted = jnp.arange(num_examples) < jnp.round(row.corruption_rate * row.subset_size)
    shown = jnp.where(corrupted, (right + shift) % gold.num_classes, right).astype(gold.labels.dtype)
    labels = jnp.zeros_like(gold.labels).at[order].set(shown)
    return Plan(key, order, row.subset_size, labels, row.learning_rate, row.width)


def _order(row: Row, num_examples: int) -> tuple[jax.Array, jax.Array]:
    """The member's order of all training examples, whose first `subset_size` are its own, and a key for the rest."""
    order_key, key = jax.random.split(jax.random.key(row.seed))
    return key, jax.random.permutation(order_key, num_examples)


@functools.partial(jax.jit, static_argnums=1)
def in_subset(row: Row, num_examples: int) -> jax.Array:
    """(N,) bool, the training examples that a member was trained on."""
    _, order = _order(row, num_examples)
    return jnp.zeros(num_examples, bool).at[order].set(jnp.arange(num_examples) < row.subset_size)


def in_every_subset(members: Members, num_examples: int) -> np.ndarray:
    """(N,) bool, the training examples that all members were trained on: out of bag, nobody answers them."""
    rows, everyone = rows_of(members), np.ones(num_examples, bool)
    for at in range(len(members.seed)):
        everyone &= np.asarray(in_subset(Row(*(column[at] for column in rows)), num_examples))
        if not everyone.any():
            break
    return everyone
