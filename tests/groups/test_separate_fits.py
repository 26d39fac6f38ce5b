"""DIF by Lord's chi-square and Raju's areas: difR's figures, integrals, derivatives, levels, what is refused."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import chi2, kstest

import irtjax
from irtjax.errors import InputError
from irtjax.estimation.diagnostics import one_warning_of_each_kind
from irtjax.estimation.grouping import membership
from irtjax.fits.reading import AUTO, read
from irtjax.groups.areas import areas, p_of_unsigned, unsigned
from irtjax.groups.lord import lord
from irtjax.groups.separate_fits import Linked, fits_of_groups, linked


def made(num_groups=2, num_items=30, lower=0.0):
    """Estimates with covariances, as no fit has them."""
    rng = np.random.default_rng(0)
    a, b = rng.lognormal(0, 0.3, (num_groups, num_items)), rng.normal(size=(num_groups, num_items))
    half = rng.normal(size=(num_groups, num_items, 2, 2)) * 0.07
    bounds = np.tile([lower, 1.0], (num_groups, num_items, 1))
    covariances = np.zeros((num_items, num_groups, 2, num_groups, 2))
    for g in range(num_groups):
        covariances[:, g, :, g] = half[g] @ half[g].transpose(0, 2, 1)
    return Linked(np.stack([a, b], axis=2), covariances, bounds, np.zeros(num_items))


def of_each(items):
    """Covariances (G, I, 2, 2) within the groups."""
    return np.stack([items.covariances[:, g, :, g] for g in range(len(items.estimates))])


def area_of(a, b, lower, *, signed):
    """By quadrature, on either side of where the curves cross."""

    def gap(theta):
        difference = (1 - lower) * (expit(a[0] * (theta - b[0])) - expit(a[1] * (theta - b[1])))
        return difference if signed else abs(difference)

    crossing = (a[0] * b[0] - a[1] * b[1]) / (a[0] - a[1])
    ends = np.sort([-400.0, -30.0, *np.clip([crossing, *b], -399, 399), 30.0, 400.0])
    return sum(quad(gap, low, high, limit=200, epsabs=1e-12)[0] for low, high in itertools.pairwise(ends))


@pytest.mark.parametrize("lower", [0.0, 0.2])
@pytest.mark.parametrize("signed", [True, False])
def test_areas_are_integrals_and_their_errors_those_of_numerical_derivatives(signed, lower):
    items = made(num_items=8, lower=lower)
    found = areas(items, np.arange(8).astype(str), signed=signed)
    for i in range(8):
        v, step = items.estimates[:, i], 1e-4
        assert found.effect[i] == pytest.approx(area_of(*v.T, lower, signed=signed), abs=1e-8)
        gradient = np.zeros((2, 2))
        for at in np.ndindex(2, 2):
            high, low = v.copy(), v.copy()
            high[at] += step
            low[at] -= step
            gradient[at] = (area_of(*high.T, lower, signed=signed) - area_of(*low.T, lower, signed=signed)) / (2 * step)
        variance = sum(g @ s @ g for g, s in zip(gradient, of_each(items)[:, i], strict=True))
        assert found.error[i] == pytest.approx(np.sqrt(variance), rel=1e-4)
    np.testing.assert_allclose(found.statistic, (found.effect / found.error) ** 2)


def test_areas_between_curves_of_one_slope_are_distances():
    area, gradient = unsigned(np.array([0.5, -0.5, 1e-3]), np.zeros(3))
    np.testing.assert_allclose(area, [0.5, 0.5, 1e-3])
    np.testing.assert_allclose(gradient, [[1, 0], [-1, 0], [1, 0]])


def test_the_unsigned_area_has_its_own_null_distribution():
    covariance = np.array([[[0.04, 0.01], [0.01, 0.02]], [[0.04, -0.03], [-0.03, 0.09]], [[0.05, 0.0], [0.0, 0.0]]])
    for one in covariance:
        x, m = np.random.default_rng(0).multivariate_normal(np.zeros(2), one, size=4000).T
        area, gradient = unsigned(x, m)
        z = area / np.sqrt(np.einsum("ik,kl,il->i", gradient, one, gradient))
        p_value = p_of_unsigned(z, np.tile(one, (4000, 1, 1)))
        assert kstest(p_value, "uniform").pvalue > 0.01
        normal = chi2.sf(z**2, 1)
        if one[1, 1]:
            assert (normal < 0.05).mean() > 0.06  # as Raju (1990) takes it
        else:
            np.testing.assert_allclose(p_value, normal, atol=1e-3)


def test_lord_is_a_quadratic_form_and_the_order_of_groups_does_not_matter():
    items = made()
    change, total = items.estimates[0] - items.estimates[1], of_each(items).sum(axis=0)
    found = lord(items)
    np.testing.assert_allclose(found.statistic, np.einsum("ik,ikl,il->i", change, np.linalg.inv(total), change))
    assert (found.df == 2).all()
    np.testing.assert_allclose(lord(items, "uniform").statistic, change[:, 1] ** 2 / total[:, 1, 1])
    np.testing.assert_allclose(lord(items, "nonuniform").statistic, change[:, 0] ** 2 / total[:, 0, 0])
    three = made(3)
    order = [2, 0, 1]
    covariances = three.covariances[:, order][:, :, :, order]
    turned = three._replace(estimates=three.estimates[order], covariances=covariances)
    np.testing.assert_allclose(lord(three).statistic, lord(turned).statistic)
    assert (lord(three).df == 4).all()
    three.estimates[1, 4] = np.nan  # no estimate in one of three groups, and none in two
    three.estimates[:2, 5] = np.nan
    assert lord(three).df[[3, 4, 5]].tolist() == [4, 2, 0]
    assert np.isnan(lord(three).statistic[5])


def test_where_a_slope_cannot_be_told_from_zero_intercepts_are_compared_and_no_areas():
    items = made(num_items=3)
    items.estimates[1, 1, 0] = 0.01  # b is anywhere
    a, b = items.estimates[:, 1].T
    by = np.array([[[1, 0], [b[g], a[g]]] for g in range(2)])
    change = np.array([a[0] - a[1], a[0] * b[0] - a[1] * b[1]])
    total = sum(one @ errors @ one.T for one, errors in zip(by, of_each(items)[:, 1], strict=True))
    assert lord(items).statistic[1] == pytest.approx(change @ np.linalg.inv(total) @ change)
    for signed in (True, False):
        found = areas(items, np.array(list("xyz")), signed=signed)
        assert np.isnan([found.effect, found.p_value]).tolist() == [[False, True, False]] * 2


@pytest.fixture(scope="module", params=["sim_dif2pl", pytest.param("verbal_gender", marks=pytest.mark.slow)])
def reference(request, shared):
    folder = shared / "oracle2" / "c" / request.param
    if not folder.is_dir():
        pytest.skip("needs ../shared/oracle2")
    table = pd.read_csv(shared / "oracle2" / "data" / f"{request.param}.csv")
    given, _ = read(table.drop(columns="group"), AUTO, None)
    fits = fits_of_groups(given, membership(table["group"].tolist(), given.subject_ids), {"model": "2pl"})
    items = linked(fits, np.ones(given.num_items, bool), "mean_sigma", known=True)
    return items, given.item_ids, lambda name: pd.read_csv(folder / f"{name}.csv")


def test_figures_are_those_of_difr(reference):
    """With difR's link by means and standard deviations; `dif` takes Stocking and Lord's, which extreme items spare."""
    items, ids, read_reference = reference
    same = items.discriminates.all(axis=0)  # of other items difR has figures of difficulties that mean nothing
    assert same.sum() >= len(ids) - 2
    own, size = read_reference("own_lord_raju_meansigma")[same], areas(items, ids, signed=False)
    np.testing.assert_allclose(lord(items).statistic[same], own["lord_chi2"], rtol=1e-3)
    signed = areas(items, ids, signed=True)
    np.testing.assert_allclose(signed.effect[same], -own["signed_area_foc_minus_ref"], atol=1e-3)
    known = read_reference("difR_Raju_mirtcal_signed")["res.Z"][same]
    np.testing.assert_allclose((signed.effect / signed.error)[same], known, atol=1e-3)
    known = read_reference("difR_Raju_mirtcal_unsigned")["res.Z.new.a"][same].abs()  # whose sign means nothing
    np.testing.assert_allclose(np.sqrt(size.statistic)[same], known, atol=1e-3)
    np.testing.assert_allclose(size.effect[same], own["unsigned_area_numeric"], atol=1e-3)


def simulated(seed, sizes=(300, 300), num_items=12, shift=0.0, mean=-0.5, top=1):
    rng = np.random.default_rng(seed)
    member = np.repeat(np.arange(len(sizes)), sizes)
    theta = (rng.normal(size=member.size) * (1 + 0.3 * member) + mean * member)[:, None]
    slope, difficulty = rng.lognormal(0.2, 0.3, num_items), rng.normal(size=num_items)
    moved = difficulty + np.outer(shift * (member == 1), np.arange(num_items) < 2)
    steps = np.linspace(-0.6, 0.6, top) if top > 1 else np.zeros(1)
    uniform = rng.random(moved.shape)
    grades = sum((uniform < expit(slope * (theta - moved - step))).astype(int) for step in steps)
    return pd.DataFrame(grades, columns=[f"i{k}" for k in range(num_items)]), np.array(list("abc"))[member].tolist()


@pytest.fixture(scope="module")
def tables():
    answers, groups = simulated(2, shift=1.2)
    cases = {
        "lord": {"method": "lord"},
        "raju": {"method": "raju"},
        "signed": {"method": "raju", "test": "uniform"},
        "lord rasch": {"method": "lord", "model": "rasch"},
        "raju 1pl": {"method": "raju", "model": "1pl"},
    }
    return {name: irtjax.dif(answers, groups, **case).set_index("item_id") for name, case in cases.items()}


def test_groups_of_other_mean_and_spread_are_linked_and_dif_is_found(tables):
    for name in ("lord", "raju", "signed"):
        table = tables[name]
        assert (table["p_adjusted"][["i0", "i1"]] < 0.05).all()
        assert not table["anchor"][["i0", "i1"]].any()
        assert table["anchor"][2:].sum() >= 8
    assert (tables["lord"]["df"] == 2).all()
    assert tables["lord"]["effect"][["i0", "i1"]].between(-0.35, -0.1).all()  # of expected responses
    assert tables["signed"]["effect"][["i0", "i1"]].between(0.6, 1.8).all()  # of difficulties


def test_the_rasch_model_has_one_figure_and_the_1pl_is_the_same(tables):
    lords, rajus = tables["lord rasch"], tables["raju 1pl"]
    assert (lords["df"] == 1).all()
    np.testing.assert_allclose(rajus["statistic"], lords["statistic"], rtol=1e-6)
    np.testing.assert_allclose(rajus["p_value"], lords["p_value"], atol=1e-3)


@pytest.mark.slow
def test_graded_items_of_three_groups():
    answers, groups = simulated(1, (300, 300, 300), 6, shift=0.9, mean=0.3, top=3)
    table = irtjax.dif(answers, groups, "lord", anchors=["i2", "i3", "i4", "i5"])
    assert (table["df"] == 2 * 4).all()
    assert (table["p_value"][:2] < 0.01).all()
    assert (table["p_value"][2:] > 0.01).all()


def test_grades_have_no_area():
    answers, groups = simulated(1, (20, 20), 4, top=3)
    with pytest.raises(InputError, match="`method` raju: item 'i0' has grades, and not one curve: take lord"):
        irtjax.dif(answers, groups, "raju")


def test_items_that_a_group_answered_alike_have_no_test():
    answers, groups = simulated(0, shift=0.8)
    answers.loc[300:, "i3"] = 1
    table = irtjax.dif(answers, groups, "lord").set_index("item_id")
    assert table.index[table["statistic"].isna()].tolist() == ["i3"]
    assert table["df"]["i3"] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "logistic", "model": "1pl"}, "wald, lord and raju, and not of logistic: leave it out"),
        ({"method": "logistic", "guessing": 0.2}, "`guessing` is of methods lord and raju, and not of logistic"),
        ({"method": "raju", "test": "nonuniform"}, "raju has the signed area .uniform. and the unsigned .both."),
        ({"method": "lord", "test": "nonuniform", "model": "rasch"}, "items of the rasch have no slope of their own"),
        ({"method": "raju", "groups": list("abc") * 4}, "areas are between curves of two groups, not of 3: take lord"),
        ({"method": "lord"}, "the answers of the 6 subjects of 'a' do not determine a fit of this group alone"),
    ],
)
def test_what_is_not_defined_is_told_in_a_line(options, message):
    answers = np.tile([[0, 1, 0, 1], [1, 0, 1, 0]], (6, 1))
    groups = options.pop("groups", list("ab") * 6)
    with pytest.raises(InputError, match=message):
        irtjax.dif(answers, groups, **options)


def test_areas_between_curves_of_other_guessing_have_no_end():
    items = made(num_items=3)
    items.bounds[1, 1, 0] = 0.25
    with pytest.raises(InputError, match=r"item 'y' has guessing 0\.000 in one group and 0\.250 in the other"):
        areas(items, np.array(["x", "y", "z"]), signed=False)


def test_items_worded_either_way_are_linked_by_each_curve_and_not_by_their_sum():
    rng = np.random.default_rng(3)
    second, slope = np.repeat([0, 1], 400), np.tile([1.5, -1.5], 6)
    theta = rng.normal(size=800) - 0.6 * second
    right = rng.random((800, 12)) < expit(slope * theta[:, None] - np.linspace(-1, 1, 12))
    table = pd.DataFrame(right.astype(float), columns=[f"i{k}" for k in range(12)])
    with pytest.warns(irtjax.FitWarning, match="correlate negatively with the rest"):
        found = irtjax.dif(table, second, "lord", purify=False)
    assert (found["p_adjusted"] > 0.01).all()
    assert found["effect"].abs().max() < 0.12


def test_items_of_partial_credit_are_linked_by_moments():
    grades = pd.read_csv("docs/guide/grades.csv", index_col=0).iloc[:, :4]
    groups = np.where(np.arange(len(grades)) % 2, "a", "b")
    found = irtjax.dif(grades, groups, "lord", model="pcm", purify=False)
    assert found["statistic"].between(0, chi2.ppf(1 - 1e-3, 4)).all()


def test_many_warnings_of_one_kind_are_one():
    def fits():
        with one_warning_of_each_kind():
            for count in range(3):
                warnings.warn(f"not converged after {count} iterations: of 'i{count}'", irtjax.FitWarning, stacklevel=1)
            warnings.warn("abilities have no variance", irtjax.FitWarning, stacklevel=1)

    with pytest.warns(irtjax.FitWarning) as caught:
        fits()
    assert all(one.filename == __file__ for one in caught)
    assert [str(one.message) for one in caught] == [
        "not converged after 0 iterations: of 'i0' (and 2 fits more that warned of the same)",
        "abilities have no variance",
    ]


@pytest.mark.slow
def test_the_level_holds():
    p_values = {"lord": [], "raju": [], "signed": []}
    for seed in range(30):
        answers, groups = simulated(100 + seed, (600, 600))
        for name in p_values:
            method, test = ("raju", "uniform") if name == "signed" else (name, "both")
            p_values[name].append(irtjax.dif(answers, groups, method, test=test, purify=False)["p_value"])
    for name, found in p_values.items():
        share = (np.concatenate(found) < 0.05).mean()
        assert abs(share - 0.05) < 2.5 * np.sqrt(0.05 * 0.95 / 360), (name, share)
