"""Fit of items, subjects and tests with categories against R's mirt and PerFit, and our own M2* and C2.

S-X2 is that of mirt wherever its table of cells is ours: of all sets here. The degrees of freedom of its rating scale
model are one less for all items but the first, as it counts a place for each item beside the steps in common, and ours
counts the place that all but one of these are. Infit and outfit are compared where mirt has no floor of variances.
"""

import numpy as np
import pandas as pd
import pytest

import irtjax
from irtjax.responses.from_arrays import of_grades

NAMES = {"pcm": "Rasch", "2pl": "2PL"}


class References:
    """The sets of the reference folder, their fits, and what other programs say of these."""

    def __init__(self, folder):
        self.folder, self.fits = folder / "oracle2", {}

    def fit(self, data, model):
        if (data, model) not in self.fits:
            table = pd.read_csv(self.folder / "data" / f"{data}.csv")
            options = {"priors": None, "standard_errors": False, "tolerance": 1e-8}
            if model == "2pl":
                found = irtjax.fit(table[table.group == "ref"].drop(columns="group"), model, **options)
            else:
                subjects = [f"s{j}" for j in range(len(table))]
                found = irtjax.fit(of_grades(table.to_numpy(float), subjects, list(table)), model, **options)
            self.fits[data, model] = found
        return self.fits[data, model]

    def table(self, data, model, name):
        data = f"{data}_refgroup" if model == "2pl" else data
        return pd.read_csv(self.folder / "a" / f"{data}__{NAMES.get(model, model)}" / f"{name}.csv")


@pytest.fixture(scope="module")
def references(shared):
    return References(shared)


SLOW = [("science", "gpcm"), ("science", "pcm"), ("science", "nominal"), ("science", "rsm"), ("sim_grm", "graded"),
        ("sim_gpcm", "gpcm"), ("sim_gpcm", "pcm"), ("sim_dif2pl", "2pl")]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "model"), [("science", "graded"), *(pytest.param(*one, marks=pytest.mark.slow) for one in SLOW)]
)
def test_s_x2_is_that_of_mirt(references, data, model):
    found, expected = irtjax.item_fit(references.fit(data, model)), references.table(data, model, "sx2")
    np.testing.assert_allclose(found.s_x2, expected["S_X2"], rtol=1e-3)
    counted = np.where((model == "rsm") & (np.arange(len(expected)) > 0), 1, 0)
    np.testing.assert_array_equal(found.degrees_of_freedom - counted, expected["df.S_X2"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "model"),
    [("science", "graded"), ("science", "gpcm"), ("science", "pcm"), ("sim_grm", "graded"), ("sim_gpcm", "gpcm"),
     ("sim_gpcm", "pcm"), ("sst00_19", "graded")],
)  # fmt: skip
def test_m2_of_categories_is_that_of_the_matrices(references, data, model):
    own = pd.read_csv(references.folder / "m2_own.csv")
    own = own[own.name == f"{data}__{NAMES.get(model, model)}"].set_index("type")
    fit = references.fit(data, model)
    for name, row in own.iterrows():
        if row.sv_ratio < 1e-5:
            with pytest.raises(irtjax.InputError, match="margins do not tell the"):
                irtjax.overall_fit(fit, statistic=name.lower())
            continue
        found = irtjax.overall_fit(fit, statistic=name.lower())
        assert found.degrees_of_freedom == row.df
        assert found.m2 == pytest.approx(row.stat_own, rel=3e-5)
        assert found.rmsea == pytest.approx(row.RMSEA_own, rel=1e-4)


def test_m2_of_categories_is_that_of_mirt_for_graded_items(references):
    found, expected = (
        irtjax.overall_fit(references.fit("science", "graded")),
        references.table("science", "graded", "C2"),
    )
    for ours, theirs in (("m2", "M2"), ("rmsea", "RMSEA"), ("srmsr", "SRMSR"), ("tli", "TLI")):
        assert getattr(found, ours) == pytest.approx(expected[theirs][0], rel=1e-5)
    # the null model of mirt has converged less far, and its interval divides by J
    assert found.cfi == pytest.approx(expected["CFI"][0], abs=1e-4)
    assert found.rmsea_high == pytest.approx(expected["RMSEA_95"][0], rel=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("data", "model"), [("science", "graded"), ("sim_grm", "graded"), ("sim_dif2pl", "2pl")])
def test_mean_squares_residuals_and_person_fit_are_those_of_mirt(references, data, model):
    fit = references.fit(data, model)
    items, expected = irtjax.item_fit(fit, method="eap"), references.table(data, model, "item_infit_eap")
    loose = {"rtol": 1e-3, "atol": 2e-2} if data != "science" else {"rtol": 1e-4, "atol": 1e-4}  # floors
    for ours, theirs in (("infit", "infit"), ("outfit", "outfit"), ("infit_t", "z.infit"), ("outfit_t", "z.outfit")):
        np.testing.assert_allclose(items[ours], expected[theirs], **loose)
    subjects, expected = irtjax.person_fit(fit, method="eap"), references.table(data, model, "personfit_eap")
    np.testing.assert_allclose(subjects.lz[expected.row - 1], expected.Zh, atol=2e-5)
    pairs, expected = irtjax.local_dependence(fit), references.table(data, model, "q3").set_index("item")
    for first, second, value in zip(pairs["first"], pairs["second"], pairs.q3, strict=True):
        assert value == pytest.approx(expected.loc[first, second], abs=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ml", "wle", "map"])
def test_lz_is_that_of_perfit(references, method):
    found = irtjax.person_fit(references.fit("sim_dif2pl", "2pl"), method=method)
    for ours, theirs in (("lz", "lz"), ("lz_star", "lzstar")):
        expected = pd.read_csv(references.folder / "e" / f"PerFit_{theirs}_sim2pl_{method.upper()}.csv")
        np.testing.assert_allclose(found[ours][expected.row - 1], expected.stat, atol=6e-5)  # rounded to 4 digits
