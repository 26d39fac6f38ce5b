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

import numpy as np
import pandas as pd
from absl import flags

import irtjax
from experiments.common import app, peers, response_files, shared_flags
from experiments.common.path_flags import define_output_dir, define_path
from irtjax import Fit, InputError
from irtjax.fits.fit_files import holds_fit
from irtjax.populations.groups import FittedGroups
from irtjax.populations.normal import Population
from irtjax.populations.percentiles import percentile_among
from irtjax.responses.formats.given import Given
from irtjax.responses.values import Responses
from irtjax.scoring.abilities import METHODS, item_table
from irtjax.scoring.family_items import known_items
from irtjax.scoring.of_group import of_group, require_named
from irtjax.storage.files import write_csv
from irtjax.storage.tables import read_table

_ITEMS = define_path("items", "items.csv with known parameters, or the folder of a saved fit", required=True)
_RESPONSES = define_path("responses", "file or folder of scored responses", required=True)
_METRIC = shared_flags.define_metric()
_FILTER = shared_flags.define_filter()
_COLUMNS = shared_flags.define_columns()
_TRIALS = shared_flags.define_trials()
_TRANSPOSE = shared_flags.define_transpose()
_METHOD = flags.DEFINE_enum("method", "eap", METHODS, "posterior mean or mode, maximum or weighted likelihood")
_OUTPUT_DIR = define_output_dir("folder for subjects.csv")
_MEAN = flags.DEFINE_float(
    "population_mean",
    0.0,
    "mean of the population that map, eap and the percentile refer to; that of the fit, if --items is its folder",
)
_PEOPLE = define_path(
    "population",
    "subjects.csv of the sample that percentiles refer to; without it, they refer to the normal population",
)
_GROUP = flags.DEFINE_string(
    "group", None, "group of the fit that the subjects are of: its population, and its own items; --items is a folder"
)
shared_flags.define_guard()
_SD = flags.DEFINE_float("population_sd", 1.0, "standard deviation of that population", lower_bound=1e-6)

shared_flags.define_processes()


def main() -> None:
    """Reads, scores, writes."""
    app.keep_inputs(["items", "responses", "population"], _OUTPUT_DIR.value, ["subjects.csv"])
    response_files.require_effect([_RESPONSES.value])
    if _PEOPLE.value is not None and _METHOD.value in ("ml", "wle"):
        app.without_effect(["population_mean", "population_sd"], f"--method={_METHOD.value} and --population")
    if _GROUP.value is not None:
        app.without_effect(["population_mean", "population_sd"], "--group")
    people = None if _PEOPLE.value is None else read_table(_PEOPLE.value)
    mesh = peers.mesh()
    if holds_fit(_OUTPUT_DIR.value):
        raise InputError(f"--output_dir={_OUTPUT_DIR.value} holds a fit and its subjects.csv: choose another folder")
    items = irtjax.load_fit(_ITEMS.value) if holds_fit(_ITEMS.value) else irtjax.read_items(_ITEMS.value)
    if _GROUP.value is not None and not (isinstance(items, Fit) and isinstance(items.population, FittedGroups)):
        raise InputError(f"--group={_GROUP.value}: expected --items to be the folder of a fit of several groups")
    responses: irtjax.ResponseMatrix | Responses | Given
    if known_items(items if isinstance(items, Fit) else item_table(items)) is None:
        responses = response_files.open_or_read(_RESPONSES.value, mesh)
    else:
        responses = response_files.read_given(_RESPONSES.value)
    if isinstance(responses, irtjax.ResponseMatrix | Given):
        responses = known(responses, items)
    with peers.results_of_first(_OUTPUT_DIR.value) as directory:
        with app.naming(f"{_ITEMS.value}, for {_RESPONSES.value}"):
            scores = irtjax.score(
                items, responses, _METHOD.value, _population(items), trials=response_files.number_of_trials(), mesh=mesh
            )
        if directory is None:
            return
        if people is not None:
            scores = among(people, scores)
        write_csv(scores, directory / "subjects.csv")
    print(f"Done: {Path(_OUTPUT_DIR.value, 'subjects.csv')} ({len(scores):,} subjects)")


def known(responses: irtjax.ResponseMatrix | Given, items: Fit | pd.DataFrame) -> irtjax.ResponseMatrix | Given:
    """The responses to items of known parameters; how many others there are is said.

    Raises:
        InputError: there are none, or one is free by group, and no group was named.
    """
    ids, with_parameters = np.array(responses.item_ids, str), item_table(items).index
    if isinstance(items, Fit) and _GROUP.value is not None:
        with_parameters = of_group(items, _GROUP.value)[1]
    require_named(ids.tolist(), set(with_parameters), "group")
    chosen = np.isin(ids, with_parameters)
    if not chosen.any():
        raise InputError(
            f"{_RESPONSES.value}: none of its {len(ids):,} items, such as '{ids[0]}', has parameters in {_ITEMS.value}"
        )
    if chosen.all():
        return responses
    left_out = ids[~chosen]
    print(f"note: {left_out.size:,} of {chosen.size:,} items, such as '{left_out[0]}', have no parameters: left out")
    return responses.of_known(ids[chosen]) if isinstance(responses, Given) else responses.choose_items(chosen)


def _population(items: Fit | pd.DataFrame) -> Population | str | None:
    """The population or group that flags describe, or None for that of a fit where they do not."""
    if _GROUP.value is not None:
        return _GROUP.value
    given = any(flags.FLAGS[name].present for name in ("population_mean", "population_sd"))
    return None if isinstance(items, Fit) and not given else Population(_MEAN.value, _SD.value)


def among(people: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Scores with percentiles among the people of --population: below an ability, those with the same counted half.

    Raises:
        InputError: the file has no abilities.
    """
    percentiles = {}
    for name in scores.filter(regex=r"^percentile"):
        column = name.replace("percentile", "ability")
        if column not in people:
            raise InputError(f"{_PEOPLE.value}: no abilities in a column {column}")
        known = pd.to_numeric(people[column], errors="coerce").to_numpy(float)
        if not np.isfinite(known).any():
            raise InputError(f"{_PEOPLE.value}: no numbers in the column {column}")
        percentiles[name] = percentile_among(known, scores[column].to_numpy())
    return scores.assign(**percentiles)


if __name__ == "__main__":
    app.run(main)
