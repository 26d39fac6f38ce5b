"""From Python: fits from tables, scores by name, fits saved and restored, and what they say of themselves."""

import ast
import contextlib
import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from simulation import simulate

import irtjax
from irtjax import InputError
from irtjax.populations.normal import Population

RESPONSES, _, _ = simulate(300, 12, missing=0.1)
TABLE = pd.DataFrame(
    np.where(RESPONSES.values < 0, np.nan, RESPONSES.values), RESPONSES.subject_ids, RESPONSES.item_ids
)


IMPORT_NOTHING = """
import sys, irtjax
assert {"joint", "soft_labels", "plots", "fit", "__version__"} <= set(dir(irtjax))
print(*{"jax", "pandas", "scipy"} & sys.modules.keys())
import experiments.fit_irt
heavy = {"flax", "matplotlib", "numpyro", "optax", "scipy.stats", "sklearn", "tensorflow_datasets", "irtjax.networks"}
print(*heavy & sys.modules.keys())
"""


def test_every_room_is_an_attribute():
    """Of those that speak to callers; the others are found by the names that they lend to the top."""
    for room in ("crowd", "evaluation", "joint", "networks", "plots", "scale", "soft_labels", "tasks", "training"):
        assert getattr(irtjax, room).__name__ == f"irtjax.{room}"
        assert room in dir(irtjax)
    assert set(irtjax.__all__) <= set(dir(irtjax))
    with pytest.raises(AttributeError, match="module 'irtjax' has no attribute 'room'"):
        _ = irtjax.room


@pytest.mark.parametrize("room", [irtjax, irtjax.crowd, irtjax.selection, irtjax.tasks], ids=lambda room: room.__name__)
def test_type_checkers_see_the_names_where_they_are_loaded_from(room):
    """The names stand three times: for type checkers, for the import on first use, and in `__all__`."""
    tree = ast.parse(Path(room.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name: line.module for line in block.body for alias in line.names}
    assert seen == room._PLACE_OF
    assert set(room.__all__) == seen.keys() | ({"InputError", "versions"} if room is irtjax else set())
    assert set(room.__all__) <= set(dir(room))


def test_a_module_does_not_hide_what_is_called_like_it():
    """Python enters a module in its package when it is imported, whoever does so."""
    irtjax.tasks.from_arrays = sys
    assert irtjax.tasks.from_arrays.__name__ == "from_arrays"
    with pytest.raises(AttributeError, match="module 'irtjax\\.tasks' has no attribute 'from_nothing'"):
        _ = irtjax.tasks.from_nothing


def test_importing_the_package_imports_little_else():
    """Nor does the command of a fit load what only other fits need."""
    done = subprocess.run([sys.executable, "-c", IMPORT_NOTHING], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("", "")


@pytest.fixture(scope="module")
def fit():
    return irtjax.fit(TABLE)


@pytest.fixture(scope="module")
def by_svi():
    return irtjax.fit(RESPONSES, estimator="svi")


def test_a_fit_to_a_table_is_that_to_its_matrix(fit):
    other = irtjax.fit(RESPONSES)
    assert fit.responses == RESPONSES
    np.testing.assert_array_equal(fit.difficulty, other.difficulty)
    assert fit != other  # it took another time
    assert fit == fit
    assert len({fit, other, fit}) == 2
    assert fit != 1


def test_a_fit_says_what_it_is_in_five_lines(fit, by_svi):
    for one in (fit, by_svi):
        lines = repr(one).splitlines()
        lines, notes = lines[:5], lines[5:]
        assert notes == [f"note: {note}" for note in one.notes()]
        assert lines[0].startswith(f"2pl by {one.estimator}: 300 subjects × 12 items, converged after")
        assert f"{one.log_likelihood:,.2f}" in lines[1]
        assert f"{one.difficulty.min():.2f} to {one.difficulty.max():.2f}" in lines[2]
        assert max(map(len, lines)) < 120
    assert fit.notes()[0].startswith("1 of 12 items has a discrimination that cannot be told from 0")
    summary = fit.summary()
    assert repr(summary) == str(summary) == summary
    hardest = fit.items().sort_values("difficulty").item_id.iloc[-1]
    assert f"hardest items    {hardest} (" in summary


@pytest.mark.parametrize("which", ["fit", "by_svi"])
def test_a_saved_fit_is_restored_to_the_last_bit(which, tmp_path, request):
    fit = request.getfixturevalue(which)
    fit.save(tmp_path / "new" / "fit")
    restored = irtjax.load_fit(tmp_path / "new" / "fit")
    assert restored == fit
    assert hash(restored) == hash(fit)
    assert {path.name for path in (tmp_path / "new" / "fit").iterdir()} == {
        "items.csv", "subjects.csv", "fit.json", "fit.npz",
    }  # fmt: skip
    pd.testing.assert_frame_equal(restored.items(), fit.items())
    json.loads((tmp_path / "new" / "fit" / "fit.json").read_text(), parse_constant=pytest.fail)


def test_no_one_can_write_to_a_fit(fit, tmp_path):
    fit.save(tmp_path)
    for one in (fit, irtjax.load_fit(tmp_path)):
        arrays = [one.difficulty, one.ability, one.ability_se, one.unbounded, one.responses.values]
        arrays += [leaf for leaf in one.parameters if leaf is not None]
        for array in arrays:
            with pytest.raises(ValueError, match="read-only"):
                array[:] = 99
    items = fit.items()
    items["difficulty"] += 1  # a table is the caller's own
    assert (items.difficulty > fit.items().difficulty).all()


def test_what_a_fit_has_not_is_said(fit, tmp_path):
    of_two = dataclasses.replace(fit, item_columns={"intercept": fit.difficulty})
    with pytest.raises(InputError, match="items of this fit have no difficulty, but intercept: see `items"):
        _ = of_two.difficulty
    with pytest.raises(InputError, match=r"xxx: no such path is possible \(File name too long\)"):
        fit.save("x" * 300)


def test_damaged_archives_are_one_error(fit, tmp_path):
    fit.save(tmp_path)
    whole = (tmp_path / "fit.npz").read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(150):
        damaged = bytearray(whole)
        for at in rng.integers(0, len(whole), 1 + rng.integers(3)):
            damaged[at] ^= 1 << rng.integers(8)
        (tmp_path / "fit.npz").write_bytes(damaged[: rng.integers(1, len(whole))] if rng.random() < 0.3 else damaged)
        with contextlib.suppress(InputError):
            assert irtjax.load_fit(tmp_path) == fit
    np.savez(tmp_path / "fit.npz", a=np.ones(2))
    with pytest.raises(InputError, match="not a fit, or damaged"):
        irtjax.load_fit(tmp_path)
    with pytest.raises(InputError, match=r"absent/fit.npz: no such file: expected the folder"):
        irtjax.load_fit(tmp_path / "absent")


def test_scores_match_items_by_name(fit, tmp_path):
    fit.save(tmp_path)
    whole = irtjax.score(fit, TABLE)
    np.testing.assert_allclose(whole.ability, fit.ability, atol=2e-3)
    shuffled = TABLE.iloc[:, ::-1]
    for items, rtol in ((fit.items(), 1e-12), (tmp_path, 1e-12), (tmp_path / "items.csv", 1e-4)):
        again = irtjax.score(items, shuffled)
        np.testing.assert_allclose(again.ability, whole.ability, rtol=rtol, atol=1e-4 if rtol > 1e-6 else 1e-10)
    some = irtjax.score(fit, TABLE.iloc[:, [3, 7]])
    assert list(some.num_responses) == list(TABLE.iloc[:, [3, 7]].notna().sum(axis=1))
    by_place = irtjax.score(fit, TABLE.to_numpy())
    np.testing.assert_array_equal(by_place.ability, whole.ability)
    assert by_place.subject_id.iloc[0] == "subject_1"


def test_scores_use_the_population_they_are_given(fit):
    wide = irtjax.score(fit, TABLE, "map", Population(0.0, 10.0))
    ml = irtjax.score(fit, TABLE, "ml")
    finite = np.isfinite(ml.ability)
    assert finite.mean() > 0.9
    np.testing.assert_allclose(wide.ability[finite], ml.ability[finite], atol=0.15)
    rasch = irtjax.fit(RESPONSES, "rasch")
    own = irtjax.score(rasch, TABLE)  # its population is not the standard normal
    np.testing.assert_allclose(own.ability, rasch.ability, atol=2e-3)


def test_what_cannot_be_scored_is_one_error(fit):
    items = fit.items()
    for arguments, message in (
        ((fit, TABLE.rename(columns={"i3": "other"})), "item 'other' .1 of 1 such. has responses and no parameters"),
        ((fit, TABLE.to_numpy()[:, :5]), "responses to 5 items, expected all 12"),
        ((fit, TABLE, "best"), "unknown method 'best'"),
        ((items.drop(columns="item_id"), TABLE), "no column item_id"),
        ((pd.concat([items, items.head(1)]), TABLE), "item 'i0' is there twice"),
        ((items.assign(difficulty=np.inf), TABLE), "column difficulty: an infinite number for item 'i0'"),
        ((items.assign(discrimination=np.nan), TABLE), "column discrimination: no number for item 'i0'"),
        ((items.rename(columns={"discrimination": "Discrimination"}), TABLE), "column 'Discrimination' is not read"),
        ((items.rename(columns={"discrimination": "discriminaton"}), TABLE), "call it discrimination"),
        ((items.assign(lower_asymptote=0.2), TABLE), "column 'lower_asymptote' is not read: call it guessing"),
        ((items.assign(guessing=1.2), TABLE), "item 'i0': asymptotes are expected to satisfy"),
        ((items.assign(difficulty=1e300), TABLE), "item 'i0': a slope and an intercept below"),
        ((pd.concat([items, items[["difficulty"]]], axis=1), TABLE), "column 'difficulty' is there twice"),
        (("absent.csv", TABLE), "absent.csv: cannot be read"),
        ((3, TABLE), "items of type int"),
        ((fit, TABLE, "eap", Population(np.nan, 1.0)), "population of mean nan"),
        ((fit, TABLE, "eap", (0.0, 0.0)), "sd above 0"),
        ((fit, TABLE, "eap", ("a", 1)), "`population` .'a', 1., expected its mean and standard deviation"),
        ((fit, TABLE, "eap", fit.subjects()), "`population` of type DataFrame, expected its mean"),
        ((fit, TABLE, "eap", fit), "`population` of type Fit"),
    ):
        with pytest.raises(InputError, match=message):
            irtjax.score(*arguments)


def test_other_columns_are_left_alone(fit):
    noted = fit.items().assign(topic="x", discriminations_note=1, discrimination_note=2)
    pd.testing.assert_frame_equal(irtjax.score(noted, TABLE), irtjax.score(fit.items(), TABLE))


def test_scores_do_not_depend_on_the_scale(fit):
    """Items of a scale of mean 50 and sd 10, by all methods; many subjects have all items right."""
    moved = fit.items().assign(
        difficulty=50 + 10 * fit.difficulty, discrimination=fit.item_columns["discrimination"] / 10
    )
    for method in ("eap", "map", "ml"):
        one = irtjax.score(fit.items(), TABLE, method)
        other = irtjax.score(moved, TABLE, method, (50, 10))
        np.testing.assert_allclose(50 + 10 * one.ability, other.ability, atol=1e-4)
        np.testing.assert_allclose(one.percentile, other.percentile, atol=1e-3)


def test_saved_fits_are_found_by_folder_and_by_archive(fit, tmp_path):
    fit.save(tmp_path)
    expected = irtjax.score(fit, TABLE)
    for path in (tmp_path, tmp_path / "fit.npz", str(tmp_path / "fit.npz")):
        pd.testing.assert_frame_equal(irtjax.score(path, TABLE), expected)
    assert irtjax.load_fit(tmp_path / "fit.npz") == fit


def test_anchors_are_a_path_a_table_or_a_fit(fit, tmp_path):
    fit.save(tmp_path)
    found = [
        irtjax.fit(TABLE.iloc[:150], anchors=anchors)
        for anchors in (fit, fit.items(), tmp_path / "items.csv", str(tmp_path / "items.csv"))
    ]
    for one in found:
        np.testing.assert_allclose(one.ability, found[0].ability, atol=1e-3)
        np.testing.assert_allclose(one.difficulty, fit.difficulty, rtol=1e-5)


def test_draws_of_svi_have_its_moments(by_svi, fit):
    draws = by_svi.draws(4000)
    assert {name: array.shape for name, array in draws.items()} == {
        "ability": (4000, 300), "difficulty": (4000, 12), "discrimination": (4000, 12),
    }  # fmt: skip
    for name, mean, sd in (
        ("ability", by_svi.ability, by_svi.ability_se),
        ("difficulty", by_svi.difficulty, by_svi.difficulty_se),
        ("discrimination", by_svi.item_columns["discrimination"], by_svi.item_columns["discrimination_se"]),
    ):
        error = (draws[name].mean(axis=0) - mean) / (sd / np.sqrt(4000))
        if name != "difficulty":  # which is reported at the mean logit, see svi.guide.item_moments
            assert np.abs(error).max() < 5, name
        np.testing.assert_allclose(draws[name].std(axis=0), sd, rtol=0.12)
    with pytest.raises(InputError, match="a fit by mml has standard errors, and no posterior"):
        fit.draws()


@pytest.mark.filterwarnings("ignore::FutureWarning")  # ArviZ speaks of its own next version
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_arviz_has_ids_as_coordinates(by_svi):
    pytest.importorskip("arviz")
    posterior = by_svi.to_arviz(20)["posterior"]
    assert posterior["difficulty"].shape == (1, 20, 12)
    assert posterior["ability"].dims == ("chain", "draw", "subject")
    assert posterior["item"].values.tolist() == RESPONSES.item_ids.tolist()
    np.testing.assert_array_equal(posterior["ability"].values[0], by_svi.draws(20)["ability"])


def test_what_cannot_be_fitted_is_one_error():
    for options, message in (
        ({"seed": 1}, "estimator mml has no option `seed`, but dims, groups, covariates, anchors"),
        ({"estimator": "svi", "anchors": "items.csv"}, "items.csv: cannot be read"),
        ({"estimator": "svi", "dims": 2}, "estimator svi has no option `dims`, but priors, start"),
        ({"max_iteration": 3}, "no option `max_iteration`"),
        ({"model": ["1pl"]}, "1 item types for 12 items"),
        ({"estimator": "mcmc"}, "unknown estimator 'mcmc'"),
        ({"anchors": 3}, "items of type int"),
    ):
        with pytest.raises(InputError, match=message):
            irtjax.fit(TABLE, **options)
