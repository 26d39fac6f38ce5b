"""Strategies side by side: the same networks under each of several curricula."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from irtjax import networks, processes
from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.evaluation.binary_adaptive import AdaptiveTest
from irtjax.populations.normal import Population
from irtjax.selection.choices import BASELINE, PROBE_ERROR, CurriculumOptions
from irtjax.selection.ddaclae import train_curriculum
from irtjax.selection.history import History
from irtjax.selection.strategies import Strategy, find, scale_of
from irtjax.storage.digests import digest
from irtjax.tasks import Task
from irtjax.training.data import default_mesh, to_device
from irtjax.training.loop import OnEpoch
from irtjax.training.pool_size import choose_slots
from irtjax.training.recipe import Recipe, default_recipe, fingerprint, make_trainer
from irtjax.training.resume import Folder, open_folder
from irtjax.types import AnyArray, Shaped

COLUMNS = ["strategy", "seed", "epoch", *History._fields]


@checks_types
@processes.collective
def compare_curricula(
    task: Task,
    difficulty: Shaped[AnyArray, " N"] | pd.Series,
    strategies: Sequence[str] = (BASELINE, "DDaCLAE"),
    *,
    recipe: Recipe | None = None,
    options: CurriculumOptions = CurriculumOptions(),  # noqa: B008 (frozen)
    num_seeds: int = 5,
    first_seed: int = 0,
    population: Population | None = None,
    probe_error: float | None = PROBE_ERROR,
    by_class: bool = False,
    monitor: AdaptiveTest | None = None,
    slots: int | None = None,
    checkpoints: str | Path | None = None,
    on_strategy: Callable[[str], contextlib.AbstractContextManager] = contextlib.nullcontext,
    on_epoch: OnEpoch | None = None,
    mesh: jax.sharding.Mesh | None = None,
) -> pd.DataFrame:
    """Trains networks under each strategy, from the same initial weights for the same seed.

    The strategy `no-effect` is the baseline with other seeds: the null control.

    `irtjax.selection.summarise` compares the results:

        table = compare_curricula(task, difficulty)
        summarise(table)

    Args:
        task: its training split is what the strategies choose from.
        difficulty: (N,) of the training examples in their order, logits; or a series with their ids as index.
        strategies: names, of `strategies.choices(task)`.
        recipe: how networks are trained, see `irtjax.training.recipe.default_recipe`, the default. Its steps per epoch
            have no use here: an epoch is a pass over what is selected.
        options: what the strategies leave open.
        num_seeds: networks trained under each strategy.
        first_seed: of initial weights, minibatches and samples; the others are the numbers after it.
        population: for strategies by ability, None for maximum likelihood, else the prior of a MAP estimate.
        probe_error: for strategies by ability, standard error of the selected share for which a sample of the training
            examples gives the ability, see `train_curriculum`; None to have all of them answered.
        by_class: whether classes have their shares in what is trained on, see `train_curriculum`.
        monitor: an adaptive test on the training examples, which networks take after each epoch, without an effect on
            their training (`irtjax.selection.tracking`).
        slots: networks that train at once on a device, group after group; None for what is fastest, by a measurement
            that is kept in the cache.
        checkpoints: a folder for the groups that have finished, which processes share: the same call goes on after
            them. None for none.
        on_strategy: name -> a context in which a strategy is trained, such as that of a progress bar; where there are
            several groups, the name has their numbers: `DDaCLAE 2/5`.
        on_epoch: called after each epoch, see `train_curriculum`.
        mesh: devices to train on; None for all of this process. If they are of several processes, seeds are assigned
            to them round-robin; all call this function, and return the same table.

    Returns:
        One row per strategy, seed and epoch that took place. Columns: `strategy`, `seed`, `epoch` (from 0), and those
        of `History`: `share`, `ability`, `examples_used`, `dev_accuracy`, `test_accuracy`, `test_geometric_mean`,
        `ability_se`, `items_asked`, and, NaN without a monitor, `monitor_ability`, `monitor_ability_se`,
        `monitor_score`, `monitor_score_se` and `train_accuracy`.

    Raises:
        InputError: a strategy that the task does not allow, no strategies or seeds, not one finite difficulty per
            training example; or checkpoints that are damaged, or of other trainings.
    """
    difficulty = _in_order(difficulty, task)
    found = _found(strategies, task, num_seeds)
    recipe = default_recipe(task) if recipe is None else recipe
    trainer = make_trainer(recipe, task)
    folder = None
    if checkpoints is not None:
        network = networks.signature(recipe.network, task, recipe.width)
        settings = difficulty, options, num_seeds, population, probe_error, by_class, monitor
        folder = open_folder(checkpoints, digest(fingerprint(recipe, task), network, *settings, History._fields))
    before = processes.agreed(lambda: _finished(folder))
    seeds = np.arange(first_seed, first_seed + num_seeds)
    pending = {name: np.setdiff1d(seeds, before.seed[before.strategy == name]) for name in found}
    own = {name: left[processes.index() :: processes.number()] for name, left in pending.items()}
    most = max(left.size for left in own.values())
    own_mesh = default_mesh(most, mesh)
    data = to_device(task, own_mesh)
    at_once = own_mesh.size * (choose_slots(task, recipe, data, most, own_mesh, slots) if most else 1)

    def train(strategy: Strategy, group: np.ndarray) -> History:
        return train_curriculum(
            trainer,
            jax.vmap(jax.random.key)(jnp.asarray(group + num_seeds * strategy.other_seeds, jnp.uint32)),
            data,
            scale_of(strategy.order, task, difficulty),
            strategy.selection(trainer.max_epochs, options),
            learning_rate=recipe.learning_rate,
            population=population,
            probe_error=probe_error,
            on_epoch=on_epoch,
            monitor=monitor,
            floor=options.floor,
            by_class=by_class,
            mesh=own_mesh,
        )

    fresh = []
    for name, title, group in _groups(own, at_once):
        with on_strategy(title):
            rows = _rows(name, group, train(found[name], group))
        fresh.append(rows)
        if folder is not None:
            folder.write_finished(f"{name}_{group[0]}_{group.size}", _arrays(rows))
    table = _joined(before, fresh, any(left.size for left in pending.values()))
    return _ordered(table, list(found), seeds)


def _found(names: Sequence[str], task: Task, num_seeds: int) -> dict[str, Strategy]:
    """The strategies by their names; refuses to compare nothing."""
    if num_seeds < 1:
        raise InputError(f"{num_seeds} seeds, expected at least 1")
    if not names:
        raise InputError("no strategies to compare")
    return {name: find(name, task) for name in names}


def _groups(own: Mapping[str, np.ndarray], at_once: int) -> Iterator[tuple[str, str, np.ndarray]]:
    """Each strategy, with a title and the seeds of networks that train together; several times if they are many."""
    for name, seeds in own.items():
        groups = [seeds[at : at + at_once] for at in range(0, seeds.size, at_once)]
        for number, group in enumerate(groups, 1):
            yield name, name if len(groups) == 1 else f"{name} {number}/{len(groups)}", group


def _finished(folder: Folder | None) -> pd.DataFrame:
    """The rows of trainings that have finished in earlier runs."""
    tables = [] if folder is None else [pd.DataFrame(arrays)[COLUMNS] for arrays in folder.finished(COLUMNS)]
    return pd.concat(tables or [pd.DataFrame(columns=COLUMNS)], ignore_index=True)


def _arrays(rows: pd.DataFrame) -> dict[str, np.ndarray]:
    """Rows as arrays for a file, without objects."""
    arrays = {column: rows[column].to_numpy() for column in COLUMNS}
    return arrays | {"strategy": arrays["strategy"].astype(str)}


def _joined(before: pd.DataFrame, fresh: list[pd.DataFrame], any_fresh: bool) -> pd.DataFrame:
    """The rows of earlier runs, and those of all processes; `any_fresh` tells whether one of them has trained."""
    processes.barrier()
    tables = [before] if len(before) else []
    if any_fresh:
        tables.append(processes.rows(pd.concat(fresh, ignore_index=True) if fresh else None))
    return pd.concat(tables, ignore_index=True)


def _ordered(table: pd.DataFrame, strategies: list[str], seeds: np.ndarray) -> pd.DataFrame:
    """The rows of these strategies, in their order, and seeds: a folder may hold those of others too."""
    table = table[table.strategy.isin(strategies) & table.seed.isin(seeds)]
    places = table.strategy.map(strategies.index)
    return table.iloc[np.lexsort((table.epoch, table.seed, places))].reset_index(drop=True)


def _in_order(difficulty: AnyArray | pd.Series, task: Task) -> np.ndarray:
    """Difficulties as an array, in the order of the training examples, one finite number each."""
    if isinstance(difficulty, pd.Series) and not difficulty.index.equals(pd.RangeIndex(difficulty.size)):
        ids = pd.Index(task.train.ids)
        if not difficulty.index.is_unique or len(ids.difference(difficulty.index)):
            raise InputError(
                f"the index of the difficulties is neither that of the training examples of {task.name!r} in their "
                "order nor their ids: give an array, or a series by item id"
            )
        difficulty = difficulty.loc[ids]
    found, number = np.asarray(difficulty), len(task.train.labels)
    if found.shape != (number,):
        raise InputError(
            f"{found.size} difficulties for {number} training examples of {task.name!r}, expected one each"
        )
    if not np.isfinite(found).all():
        raise InputError(f"difficulty {np.flatnonzero(~np.isfinite(found))[0]} is not a finite number")
    return found


def _rows(strategy: str, seeds: np.ndarray, history: History) -> pd.DataFrame:
    """One row per seed and epoch that took place."""
    columns = {name: np.asarray(values) for name, values in history._asdict().items()}
    seed_index, epoch = np.nonzero(~np.isnan(columns["dev_accuracy"]))
    rows = {name: values[seed_index, epoch] for name, values in columns.items()}
    rows |= {name: rows[name].astype(int) for name in ("examples_used", "items_asked")}
    return pd.DataFrame({"strategy": strategy, "seed": seeds[seed_index], "epoch": epoch, **rows})
