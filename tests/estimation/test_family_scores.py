"""Abilities on grades and categories: against R's mirt, brute force, and the fits that they come from."""

import jax
import numpy as np
import pandas as pd
import pytest

import irtjax
from irtjax.estimation.families import fit_families
from irtjax.responses.scaled import of_grades

POPULATION_SD = {"science__Rasch": 1.00253300209118**0.5}


@pytest.fixture(autouse=True)
def ranks():
    """Families still promote ranks."""
    with jax.numpy_rank_promotion("allow"):
        yield


def table_of(folder, model):
    """Items as `items.csv` has them, out of mirt's parameters."""
    table = pd.read_csv(folder / "par_irt.csv")
    wide = table[table.item != "GroupPars"].pivot_table(index="item", columns="par", values="est", sort=False)
    if model == "nominal":
        wide.columns = [f"{'slope' if name[0] == 'a' else 'intercept'}_{int(name[1:]) - 1}" for name in wide.columns]
    else:
        wide.columns = ["discrimination" if name == "a" else f"threshold_{name[1:]}" for name in wide.columns]
    return wide.rename_axis("item_id").assign(model=model, grades="0|1|2|3")


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("sim_grm__graded", "graded"),
        ("science__graded", "graded"),
        ("sim_gpcm__gpcm", "gpcm"),
        ("science__Rasch", "pcm"),
        ("sim_nominal__nominal", "nominal"),
    ],
)
def test_scores_are_those_of_mirt(shared, name, model):
    folder = shared / "oracle2" / "a" / name
    responses = pd.read_csv(shared / "oracle2" / "data" / f"{name.split('__')[0]}.csv")
    population = (0.0, POPULATION_SD.get(name, 1.0))
    for method in ("EAP", "MAP", "ML", "WLE"):
        expected = pd.read_csv(folder / f"scores_{method}.csv")
        found = irtjax.score(table_of(folder, model), responses.iloc[: len(expected)], method.lower(), population)
        finite = np.isfinite(expected.theta)
        np.testing.assert_array_equal(np.isfinite(found.ability), finite)
        np.testing.assert_allclose(found.ability[finite], expected.theta[finite], atol=1e-4, err_msg=method)
