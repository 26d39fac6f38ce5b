"""Links and equating: against plink, equateIRT and SciPy, known scales, and the errors that are told in a line."""

import numpy as np
import pandas as pd
import pytest

import irtjax
from irtjax import InputError
from irtjax.groups import equating
from irtjax.groups.choices import LINK_METHODS
from irtjax.groups.equating import equate
from irtjax.groups.linking import link
from irtjax.kernels.quadrature import gauss_hermite

NAMES = dict(
    zip(
        ("mean-mean", "mean-gmean", "mean-sigma", "Haebara", "Stocking-Lord"),
        ("mean_mean", "mean_geometric", "mean_sigma", "haebara", "stocking_lord"),
        strict=True,
    )
)
WIDE = np.linspace(-8, 8, 161)  # nodes of the references that stand for N(0, 1)
FINE = WIDE, np.exp(-(WIDE**2) / 2)
RNG = np.random.default_rng(0)
ITEMS = pd.DataFrame(
    {"discrimination": np.exp(RNG.normal(0, 0.3, 12)), "difficulty": RNG.normal(0, 1, 12)},
    index=pd.Index([f"i{k}" for k in range(12)], name="item_id"),
)
GRADED = pd.DataFrame(
    {"model": "graded", "grades": "0|1|2|3", "discrimination": ITEMS.discrimination}
    | {f"threshold_{k + 1}": ITEMS.difficulty + k - 1.0 + 0.1 * RNG.random(12) for k in range(3)}
)


def moved(table, slope, intercept):
    """The items on another scale, from which θ = slope θ' + intercept leads back."""
    found = table.copy()
    found["discrimination"] = table["discrimination"] * slope
    for name in table:
        if name == "difficulty" or name.startswith("threshold"):
            found[name] = (table[name] - intercept) / slope
    return found


def test_an_item_without_slope_spoils_no_link_by_curves():
    """Its difficulty is anywhere; means of difficulties start so far away that no curve leads back."""
    other = moved(ITEMS, 1.3, 0.4)
    other.loc["i3", ["discrimination", "difficulty"]] = -0.01, -230.0
    for method in ("stocking_lord", "haebara"):
        found = link(ITEMS, other, method)
        np.testing.assert_allclose(
            [found.slope, found.intercept], [1.3, 0.4], atol=0.35
        )  # its curve is flat all the same


@pytest.fixture(scope="module")
def reference(shared):
    folder = shared / "oracle2" / "d"
    columns = {"item": "item_id", "a": "discrimination", "b": "difficulty", "g": "guessing", "u": "upper"}
    forms = [pd.read_csv(folder / f"link_form{form}_ab.csv").rename(columns=columns) for form in "XY"]
    return folder, *forms


def test_constants_are_those_of_scipy_and_plink(reference):
    folder, x, y = reference
    for row in pd.read_csv(folder / "link2pl_own.csv").itertuples():
        weights = {"unif41": "uniform", "norm161": FINE}.get(row.weights, "normal")
        found = link(x, y, NAMES[row.method], symmetric=row.criterion != "base_only", weights=weights)
        np.testing.assert_allclose([found.slope, found.intercept], [row.A, row.B], atol=1e-8)
    for row in pd.read_csv(folder / "link2pl_plink.csv").itertuples():
        method = row.method.lower().replace("/", "_").replace("-", "_")
        weights = "uniform" if row.weights == "unif41" else "normal"
        found = link(x, y, method, symmetric=row.symmetric, weights=weights)
        np.testing.assert_allclose([found.slope, found.intercept], [row.A, row.B], atol=6e-7)  # as it prints them


def test_standard_errors_are_those_of_equate_irt(reference, monkeypatch):
    """But for A of mean-sigma, whose derivative equateIRT divides by the number of items once too often: 1 - 1/10."""
    folder, x, y = reference
    tables = {"x": x, "y": y}
    of_form = {name: pd.read_csv(folder / f"link_form{name.upper()}_vcov_mirt.csv", index_col=0) for name in "xy"}

    def errors(given, item_ids):
        name = next(name for name, table in tables.items() if table is given)
        at = 2 * pd.Index(tables[name].item_id).get_indexer(item_ids)
        own = np.stack([at, at + 1], axis=1).ravel()
        places = (4 * np.arange(len(at))[:, None] + [0, 1]).ravel()  # slope and intercept of four parameters
        found = np.zeros((4 * len(at), 4 * len(at)))
        found[np.ix_(places, places)] = of_form[name].to_numpy()[np.ix_(own, own)]
        return found

    monkeypatch.setattr("irtjax.groups.linking._errors_of", errors)
    for row in pd.read_csv(folder / "link2pl_equateIRT.csv").itertuples():
        found = link(x, y, NAMES[row.method], symmetric=False, weights=FINE)
        np.testing.assert_allclose([found.slope, found.intercept], [row.A, row.B], atol=2e-8)
        if row.method == "mean-sigma":
            np.testing.assert_allclose(found.slope_se, row.seA / 0.9, rtol=1e-6)
        else:
            np.testing.assert_allclose([found.slope_se, found.intercept_se], [row.seA, row.seB], rtol=1e-6)
            np.testing.assert_allclose(found.covariance[0, 1], row.covAB, rtol=1e-6)


def test_equating_tables_are_those_of_the_references(reference, monkeypatch):
    """Observed scores with the 30 nodes of equateIRT, which are off by 0.002 of a score: 81 equally spaced are not."""
    folder, x, y = reference
    own, true, observed = (
        pd.read_csv(folder / f"link2pl_{name}.csv") for name in ("own_TSE", "equateIRT_TSE", "equateIRT_OSE")
    )
    fine = {}
    for method in ("mean-mean", "Stocking-Lord"):
        there = link(x, y, NAMES[method], symmetric=False, weights=FINE)
        back = there.inverse()
        found = equate(x, y, there)
        np.testing.assert_allclose(found.equated, own.equated_X[own.link == method], atol=1e-6)
        found = equate(y, x, back)
        np.testing.assert_allclose(found.equated[1:], true["Y.as.X"][true.link == method], atol=1e-8)
        fine[method] = equate(y, x, back, "observed_score").equated
    monkeypatch.setattr(equating, "rectangular", lambda _: gauss_hermite(30))
    for method, by_fine_nodes in fine.items():
        back = link(x, y, NAMES[method], symmetric=False, weights=FINE).inverse()
        expected = observed["Y.as.X"][observed.link == method]
        np.testing.assert_allclose(equate(y, x, back, "observed_score").equated, expected, atol=1e-8)
        np.testing.assert_allclose(by_fine_nodes, expected, atol=3e-3)


@pytest.mark.parametrize("table", [ITEMS, GRADED], ids=["right_wrong", "graded"])
def test_a_known_scale_comes_back(table):
    other = moved(table, 1.3, -0.4)[::-1]
    for method in LINK_METHODS:
        found = link(table, other, method)
        np.testing.assert_allclose([found.slope, found.intercept], [1.3, -0.4], atol=1e-7)
        assert found.common.difference.max() < 1e-6
        assert not found.common.drifting.any()
    back = found.items(other).loc[table.index]
    numbers = [name for name in table if name not in ("model", "grades")]
    np.testing.assert_allclose(back[numbers].to_numpy(float), table[numbers].to_numpy(float), atol=1e-6)
    for method in ("true_score", "observed_score"):
        scores = equate(table, other, found, method)
        np.testing.assert_allclose(scores.equated, scores.score, atol=1e-5)


def test_a_symmetric_link_is_the_inverse_of_the_link_back():
    other = moved(ITEMS, 1.3, -0.4).assign(difficulty=lambda table: table.difficulty + 0.1 * RNG.normal(size=12))
    for method in ("haebara", "stocking_lord", "mean_sigma"):
        there, back = link(ITEMS, other, method), link(other, ITEMS, method).inverse()
        np.testing.assert_allclose([there.slope, there.intercept], [back.slope, back.intercept], atol=1e-7)


def test_drifting_items_are_told_and_left_out_where_asked():
    other = moved(ITEMS, 1.2, 0.3).assign(difficulty=lambda table: table.difficulty + 0.02 * RNG.normal(size=12))
    other.loc["i3", "difficulty"] += 1.5
    plain, robust = link(ITEMS, other), link(ITEMS, other, robust=True)
    assert plain.common.index[plain.common.drifting].tolist() == ["i3"]
    assert not robust.common.used["i3"]
    assert abs(robust.intercept - 0.3) < 0.05 < abs(plain.intercept - 0.3)
    assert "'i3'" in repr(plain)


@pytest.mark.slow
def test_fits_give_standard_errors_that_simulation_confirms():
    """Two groups of 300 people on ten common items of fifteen, forty times: A = 1.2 and B = 0.5."""
    rng, found = np.random.default_rng(1), []
    names = [f"i{k}" for k in range(20)]
    slope, b = np.exp(rng.normal(0, 0.2, 20)), rng.normal(0, 1, 20)
    for _ in range(40):
        fits = []
        for mean, sd, own in ((0.0, 1.0, slice(0, 15)), (0.5, 1.2, slice(5, 20))):
            theta = rng.normal(mean, sd, 300)
            p = 1 / (1 + np.exp(-slope[own] * (theta[:, None] - b[own])))
            table = pd.DataFrame((rng.random(p.shape) < p).astype(float), columns=names[own])
            fits.append(irtjax.fit(table, "2pl", priors=None))
        found.append(link(*fits))
    estimates = np.array([[one.slope, one.intercept] for one in found])
    errors = np.array([[one.slope_se, one.intercept_se] for one in found])
    z = (estimates - [1.2, 0.5]) / errors
    np.testing.assert_allclose(np.sqrt((z**2).mean(axis=0)), 1.0, atol=0.25)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: link(ITEMS, ITEMS, "mean"), "unknown method 'mean', expected one of haebara"),
        (lambda: link(ITEMS, ITEMS[:1]), "1 items in common, expected 2 or more"),
        (lambda: link(ITEMS, ITEMS, items=["i0", "j"]), "'j' is not an item of both tests"),
        (lambda: link(ITEMS, GRADED), "item 'i0' has another model"),
        (lambda: link(GRADED, GRADED.assign(grades="1|2|3|4")), "item 'i0' has another model, or other grades"),
        (lambda: link(ITEMS, ITEMS, weights="flat"), "unknown `weights` 'flat'"),
        (
            lambda: link(ITEMS, ITEMS.assign(discrimination=-ITEMS.discrimination), "mean_mean"),
            "mean_mean finds no A above 0",
        ),
        (lambda: equate(ITEMS, ITEMS, link(ITEMS, ITEMS), "score"), "unknown method 'score'"),
        (lambda: equate(ITEMS, ITEMS, link(ITEMS, ITEMS), weight=2), "`weight` 2: expected a share"),
        (
            lambda: equate(ITEMS, ITEMS.assign(discrimination=-1.0), link(ITEMS, ITEMS)),
            "does not rise with ability",
        ),
    ],
)
def test_what_cannot_be_linked_is_told_in_a_line(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_a_placed_item_has_no_error_that_a_link_could_use():
    rng, fits = np.random.default_rng(0), []
    for mean, everyone_right in ((0.0, False), (0.5, True)):
        theta = rng.normal(mean, 1, 200)
        y = (rng.random((200, 8)) < 1 / (1 + np.exp(-(theta[:, None] - np.linspace(-1, 1, 8))))).astype(float)
        y[:, 0] = np.where(everyone_right, 1.0, y[:, 0])
        fits.append(irtjax.fit(pd.DataFrame(y, columns=[f"i{k}" for k in range(8)]), "2pl", priors=None))
    assert np.isnan(link(*fits).slope_se)
    assert link(*fits, items=[f"i{k}" for k in range(1, 8)]).slope_se > 0


def test_slopes_of_either_sign_are_told_by_expected_scores_alone():
    turned = ITEMS.assign(discrimination=ITEMS.discrimination * np.where(np.arange(12) % 2, -1, 1))
    other = moved(turned, 1.2, 0.3)
    with pytest.warns(irtjax.FitWarning, match="6 of 12 common items have negative discriminations"):
        link(turned, other)
    found = link(turned, other, "haebara")
    np.testing.assert_allclose([found.slope, found.intercept], [1.2, 0.3], atol=1e-5)
