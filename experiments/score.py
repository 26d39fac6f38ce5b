r"""Scores subjects on items of known parameters.

Reads items.csv as experiments.fit_irt writes it, and a file of responses to some or all of its items; writes
subjects.csv with ability, standard error and percentile.

  python -m experiments.score --items=runs/fit/items.csv --responses=new.csv --method=eap --output_dir=runs/score
  python -m experiments.score --items=runs/scale/items.csv --responses=network.csv \
    --population=runs/scale/subjects.csv --output_dir=runs/score

The second gives percentiles among the people that the scale was built from: the percentage with a lower ability, plus
half of those with the same ability.

On 2 CPU cores, a few seconds.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from absl import flags

import irtjax
from experiments.common import app
from irtjax import InputError
from irtjax.kernels.models import ItemParameters, from_table
from irtjax.kernels.scoring import Ability, Population, ability_eap, ability_mode, percentile
from irtjax.responses.matrix import counts, percent_correct
from irtjax.storage.files import writable_directory, write_csv
from irtjax.storage.tables import read_table

SAME = 1e-4  # logits within which abilities are equal: files round, and the same answers must have the same ability

_ITEMS = flags.DEFINE_string("items", None, "items.csv with known parameters", required=True)
_RESPONSES = flags.DEFINE_string("responses", None, "file of graded responses", required=True)
_METHOD = flags.DEFINE_enum("method", "eap", ["ml", "map", "eap"], "maximum likelihood, posterior mode or mean")
_OUTPUT_DIR = flags.DEFINE_string("output_dir", None, "folder for subjects.csv; made if missing", required=True)
_MEAN = flags.DEFINE_float("population_mean", 0.0, "mean of the population that map, eap and the percentile refer to")
_PEOPLE = flags.DEFINE_string(
    "population",
    None,
    "subjects.csv of the sample that percentiles refer to; without it, they refer to the normal population",
)
_SD = flags.DEFINE_float("population_sd", 1.0, "standard deviation of that population", lower_bound=1e-6)


def main() -> None:
    """Reads, scores, writes."""
    app.finite(["population_mean", "population_sd"])
    responses = irtjax.read_responses(_RESPONSES.value)
    table = irtjax.read_items(_ITEMS.value).set_index("item_id")
    unknown = [item for item in responses.item_ids if item not in table.index]
    if unknown:
        raise InputError(
            f"{_RESPONSES.value}: item '{unknown[0]}' (1 of {len(unknown)} such) is not in {_ITEMS.value}: "
            "remove its column, or give the items.csv that has it"
        )
    with app.naming(_ITEMS.value):
        items = from_table(table.loc[responses.item_ids])
    directory = writable_directory(_OUTPUT_DIR.value)
    population = Population(_MEAN.value, _SD.value)
    scores = score(responses.values, items, _METHOD.value, population)
    result = table_of(scores, responses, population)
    write_csv(result, directory / "subjects.csv")
    print(f"Done: {Path(directory, 'subjects.csv')} ({responses.num_subjects:,} subjects)")


def table_of(scores: Ability, responses: irtjax.ResponseMatrix, population: Population) -> pd.DataFrame:
    """The rows of subjects.csv: one per subject."""
    several = scores.ability.ndim > 1
    abilities, errors = np.atleast_2d(scores.ability.T), np.atleast_2d(scores.standard_error.T)
    columns = {}
    for number, (ability, error) in enumerate(zip(abilities, errors, strict=True), start=1):
        dimension = f"_{number}" if several else ""
        columns[f"ability{dimension}"] = ability
        columns[f"ability{dimension}_se"] = error
        columns[f"percentile{dimension}"] = percentiles(ability, f"ability{dimension}", population)
    return pd.DataFrame(
        {
            "subject_id": responses.subject_ids,
            **columns,
            "num_responses": counts(responses.values, axis=1)[1],
            "percent_correct": percent_correct(responses.values, axis=1),
        }
    )


def percentiles(ability: np.ndarray, column: str, population: Population) -> np.ndarray:
    """Percentage of --population below each ability, ties counted half; without it, of the normal population.

    Raises:
        InputError: the file has no abilities.
    """
    if _PEOPLE.value is None:
        return percentile(ability, population)
    table = read_table(_PEOPLE.value)
    if column not in table:
        raise InputError(f"{_PEOPLE.value}: no abilities in a column {column}")
    people = pd.to_numeric(table[column], errors="coerce").to_numpy(float)
    if not np.isfinite(people).any():
        raise InputError(f"{_PEOPLE.value}: no numbers in the column {column}")
    people = np.sort(people[~np.isnan(people)])
    below, not_above = (
        np.searchsorted(people, ability + sign * SAME, side=side) for sign, side in ((-1, "left"), (1, "right"))
    )
    return 50 * (below + not_above) / people.size


def score(values: np.ndarray, items: ItemParameters, method: str, population: Population) -> Ability:
    """Abilities (J,) or (J, D) of all rows of a response matrix, in float64."""
    methods = {
        "ml": ability_mode,
        "map": lambda row, items: ability_mode(row, items, population),
        "eap": lambda row, items: ability_eap(row, items, population),
    }
    with jax.enable_x64(True):
        every = jax.jit(lambda rows, items: jax.lax.map(lambda row: methods[method](row, items), rows, batch_size=64))
        scores = every(jnp.asarray(values), jax.tree.map(jnp.asarray, items))
        return Ability(*map(np.asarray, scores))


if __name__ == "__main__":
    app.run(main)
