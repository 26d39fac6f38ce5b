"""Scores of subjects on items of known parameters, by the flags of `experiments.score`."""

from pathlib import Path

import numpy as np
import pandas as pd
from absl import flags

import irtjax
from experiments.common import app, peers, response_files
from irtjax import Fit, InputError
from irtjax.fits.fit_files import holds_fit
from irtjax.populations.groups import FittedGroups
from irtjax.populations.normal import Population
from irtjax.populations.percentiles import percentile_among
from irtjax.responses.formats.given import Given
from irtjax.responses.values import Responses
from irtjax.scoring.abilities import item_table
from irtjax.scoring.family_items import known_items
from irtjax.scoring.of_group import of_group, require_named
from irtjax.storage.files import write_csv
from irtjax.storage.tables import read_table

FLAGS = flags.FLAGS


def run() -> None:
    """Reads, scores, writes."""
    app.keep_inputs(["items", "responses", "population"], FLAGS.output_dir, ["subjects.csv"])
    response_files.require_effect([FLAGS.responses])
    if FLAGS.population is not None and FLAGS.method in ("ml", "wle"):
        app.without_effect(["population_mean", "population_sd"], f"--method={FLAGS.method} and --population")
    if FLAGS.group is not None:
        app.without_effect(["population_mean", "population_sd"], "--group")
    people = None if FLAGS.population is None else read_table(FLAGS.population)
    mesh = peers.mesh()
    if holds_fit(FLAGS.output_dir):
        raise InputError(f"--output_dir={FLAGS.output_dir} holds a fit and its subjects.csv: choose another folder")
    items = irtjax.load_fit(FLAGS.items) if holds_fit(FLAGS.items) else irtjax.read_items(FLAGS.items)
    if FLAGS.group is not None and not (isinstance(items, Fit) and isinstance(items.population, FittedGroups)):
        raise InputError(f"--group={FLAGS.group}: expected --items to be the folder of a fit of several groups")
    responses: irtjax.ResponseMatrix | Responses | Given
    if known_items(items if isinstance(items, Fit) else item_table(items)) is None:
        responses = response_files.open_or_read(FLAGS.responses, mesh)
    else:
        responses = response_files.read_given(FLAGS.responses)
    if isinstance(responses, irtjax.ResponseMatrix | Given):
        responses = known(responses, items)
    with peers.results_of_first(FLAGS.output_dir) as directory:
        with app.naming(f"{FLAGS.items}, for {FLAGS.responses}"):
            scores = irtjax.score(
                items, responses, FLAGS.method, _population(items), trials=response_files.number_of_trials(), mesh=mesh
            )
        if directory is None:
            return
        if people is not None:
            scores = among(people, scores)
        write_csv(scores, directory / "subjects.csv")
    print(f"Done: {Path(FLAGS.output_dir, 'subjects.csv')} ({len(scores):,} subjects)")


def known(responses: irtjax.ResponseMatrix | Given, items: Fit | pd.DataFrame) -> irtjax.ResponseMatrix | Given:
    """The responses to items of known parameters; how many others there are is said.

    Raises:
        InputError: there are none, or one is free by group, and no group was named.
    """
    ids, with_parameters = np.array(responses.item_ids, str), item_table(items).index
    if isinstance(items, Fit) and FLAGS.group is not None:
        with_parameters = of_group(items, FLAGS.group)[1]
    require_named(ids.tolist(), set(with_parameters), "group")
    chosen = np.isin(ids, with_parameters)
    if not chosen.any():
        raise InputError(
            f"{FLAGS.responses}: none of its {len(ids):,} items, such as '{ids[0]}', has parameters in {FLAGS.items}"
        )
    if chosen.all():
        return responses
    left_out = ids[~chosen]
    print(f"note: {left_out.size:,} of {chosen.size:,} items, such as '{left_out[0]}', have no parameters: left out")
    return responses.of_known(ids[chosen]) if isinstance(responses, Given) else responses.choose_items(chosen)


def _population(items: Fit | pd.DataFrame) -> Population | str | None:
    """The population or group that flags describe, or None for that of a fit where they do not."""
    if FLAGS.group is not None:
        return FLAGS.group
    given = any(FLAGS[name].present for name in ("population_mean", "population_sd"))
    return None if isinstance(items, Fit) and not given else Population(FLAGS.population_mean, FLAGS.population_sd)


def among(people: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Scores with percentiles among the people of --population: below an ability, those with the same counted half.

    Raises:
        InputError: the file has no abilities.
    """
    percentiles = {}
    for name in scores.filter(regex=r"^percentile"):
        column = name.replace("percentile", "ability")
        if column not in people:
            raise InputError(f"{FLAGS.population}: no abilities in a column {column}")
        known = pd.to_numeric(people[column], errors="coerce").to_numpy(float)
        if not np.isfinite(known).any():
            raise InputError(f"{FLAGS.population}: no numbers in the column {column}")
        percentiles[name] = percentile_among(known, scores[column].to_numpy())
    return scores.assign(**percentiles)
