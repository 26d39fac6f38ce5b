"""t of infit and outfit is about standard normal under the model, whatever was estimated of items, and under priors."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from simulation import by_difficulty, draw

import irtjax
from irtjax.estimation.priors import GUESSING_PRIOR
from irtjax.scale import tested

ITEMS = 100
CHANCE = 0.09  # share of 500 standard normal numbers beyond 1.96, that is exceeded with a chance of 0.0001
FEW = {"missing": 0.9, "num_subjects": 4000}  # 400 responses to an item, 10 of a subject


def simulated(seed, spread, num_subjects=500, missing=0.0, guessing=False):
    """Responses by the 2PL, logarithms of slopes from N(0, spread²); or by the 3PL, asymptotes from their prior."""
    rng = np.random.default_rng(seed)
    theta, b, a = rng.normal(size=num_subjects), rng.normal(size=ITEMS), rng.lognormal(0, spread, ITEMS)
    c = expit(rng.normal(*GUESSING_PRIOR, ITEMS)) if guessing else 0.0
    p = by_difficulty(theta, a, b, c)
    values = np.concatenate([draw(rng, p[:, :1]), draw(rng, p[:, 1:], missing)], axis=1)  # none is without responses
    return values, pd.DataFrame({"item_id": [f"i{i}" for i in range(ITEMS)], "discrimination": a, "difficulty": b})


@pytest.fixture(scope="module")
def rasch():
    return irtjax.fit(simulated(1, 0.0)[0], "rasch", standard_errors=False)


def spread_of_t(items):
    """Standard deviations of t, between which those of `ITEMS` standard normal numbers are with a chance of 0.9998."""
    t = items[["infit_t", "outfit_t"]]
    assert t.notna().all(axis=None)
    return t.std()


def test_slopes_that_items_share_are_not_their_own(rasch):
    """Else the residuals of an item are regressed on a score by which nothing of its own was estimated."""
    own = tested.own_parameters(tested.of_fit(rasch))
    assert own.free.sum(axis=1).tolist() == [1] * ITEMS
    assert not own.prior.any()
    assert spread_of_t(irtjax.item_fit(rasch)).between(0.74, 1.28).all()


def test_of_anchors_nothing_is_estimated():
    values, items = simulated(2, 0.3)
    matrix = irtjax.ResponseMatrix(values, np.array([f"s{j}" for j in range(len(values))]), items.item_id.to_numpy())
    fit = irtjax.fit(matrix, "2pl", anchors=items, standard_errors=False)
    assert not tested.own_parameters(tested.of_fit(fit)).free.any()
    assert not tested.num_free(tested.of_fit(fit)).any()
    assert spread_of_t(irtjax.item_fit(fit)).between(0.74, 1.28).all()


def test_own_parameters_are_saved_and_unknown_ones_have_no_t(rasch, tmp_path):
    rasch.save(tmp_path)
    found = irtjax.load_fit(tmp_path)
    assert found == rasch
    fit = dataclasses.replace(rasch, model="2pl", estimator="svi", own_parameters=None)
    items = irtjax.item_fit(fit)
    assert items[["infit", "outfit"]].notna().all(axis=None)
    assert items[["infit_t", "outfit_t"]].isna().all(axis=None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "spread", "design", "options", "most"),
    [
        ("rasch", 0.0, {}, {}, CHANCE),
        ("1pl", 0.0, FEW, {}, CHANCE),
        ("2pl", 0.3, {}, {}, CHANCE),
        ("2pl", 0.3, FEW, {}, CHANCE),
        ("2pl", 0.3, FEW, {"priors": None}, CHANCE),
        ("3pl", 0.3, FEW | {"guessing": True}, {}, 0.15),  # three times the level: few answers hardly tell asymptotes
    ],
)
def test_t_is_about_standard_normal(model, spread, design, options, most):
    """Over five sets; what is printed is in the guide."""
    fits = [irtjax.fit(simulated(s, spread, **design)[0], model, standard_errors=False, **options) for s in range(5)]
    t = pd.concat(map(irtjax.item_fit, fits))[["infit_t", "outfit_t"]]
    print(
        model, design, options, t.mean().round(2).tolist(), t.std().round(2).tolist(), (t.abs() > 1.96).mean().tolist()
    )
    assert (t.abs() > 1.96).mean().lt(most).all()
