"""Fits of grades, categories, counts and shares by single answers: what fits of the matrix are."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import irtjax
from irtjax.errors import InputError
from irtjax.estimation.families import fit_families
from irtjax.responses.scaled import Scale, ScaledResponses
from irtjax.responses.sparse import SparseResponses, of_matrix

NUM_SUBJECTS, NUM_ITEMS = 300, 8
GRADES, RIGHT_WRONG, NUMBER = Scale((1, 2, 3, 4)), Scale((0, 1)), Scale()
MIXED = ("graded", "graded", "nominal", "pcm", "pcm", *("ordered_beta",) * 3)
FAST = (("gpcm", {"covariates": True}), ("binomial_3pl", {}))
SLOW = (
    ("nominal", {"groups": True}),
    ("beta_binomial", {}),
    (MIXED, {}),
    ("graded", {}),
    ("graded", {"priors": None}),
    ("graded", {"missing": 0.0}),
    ("gpcm", {}),
    ("pcm", {}),
    ("rsm", {}),
    ("nominal", {}),
    ("binomial", {"anchors": True}),
    ("binomial_1pl", {}),
    ("binomial_4pl", {}),
    ("ordered_beta", {}),
    ("ordered_beta", {"covariates": True}),
    ("beta", {}),
    ("beta", {"priors": None}),
    (("gpcm",) * 4 + ("binomial",) * 4, {}),
    ("nominal", {"dims": 2}),
    ("binomial", {"dims": 2}),
    ("graded", {"dims": 3}),
    ("graded", {"groups": True, "anchors": True}),
    ("beta_binomial", {"anchors": True}),
    ("binomial_3pl", {"anchors": True}),
    (MIXED[:2] + ("pcm",) * 3 + MIXED[5:], {"anchors": True}),
    ("graded", {"num_subjects": 3000, "num_items": 40, "missing": 0.9}),
    ("binomial", {"num_subjects": 3000, "num_items": 40, "missing": 0.9}),
)


def simulated(models, num_subjects=NUM_SUBJECTS, num_items=NUM_ITEMS, missing=0.3, seed=0):
    """Responses on the scales that the models take, and the abilities."""
    rng, models = np.random.default_rng(seed), [models] * num_items if isinstance(models, str) else list(models)
    theta, slope, place = rng.normal(size=num_subjects), rng.uniform(0.7, 2, num_items), rng.normal(size=num_items)
    x = slope * (theta[:, None] - place)
    latent = x + rng.logistic(size=x.shape)
    share = rng.beta(5 * expit(x), 5 * expit(-x))
    trials = rng.integers(1, 6, x.shape).astype(np.int32)
    several = np.array(["binomial" in name for name in models])
    counts = rng.binomial(trials, share if "beta_binomial" in models else expit(x))
    values, scales = np.empty(x.shape), []
    for i, name in enumerate(models):
        right_wrong = name == "pcm" and len(set(models)) > 1
        if several[i]:
            values[:, i], scale = counts[:, i], NUMBER
        elif name in ("ordered_beta", "beta"):
            inner = np.clip(share[:, i], 1e-3, 1 - 1e-3)
            rounded = np.where(inner < 0.05, 0, np.where(inner > 0.95, 1, inner))
            values[:, i], scale = inner if name == "beta" else rounded, NUMBER
        else:
            cuts = np.zeros(1) if right_wrong else np.array([-1.5, 0, 1.2])
            values[:, i] = (latent[:, i, None] > cuts).sum(axis=1)
            scale = RIGHT_WRONG if right_wrong else GRADES
        scales.append(scale)
    gone = rng.random(x.shape) < missing
    gone[np.arange(num_subjects), rng.integers(0, num_items, num_subjects)] = False
    values[gone] = -1
    ids = (np.array([f"{kind}{n}" for n in range(size)]) for kind, size in zip("si", x.shape, strict=True))
    whole = not any(name in ("ordered_beta", "beta") for name in models)
    trials = np.where(several, trials, 1).astype(np.int32) if several.any() else None
    return ScaledResponses(values.astype(np.int32) if whole else values, *ids, tuple(scales), trials), theta


def same(one, other, tolerance=1e-8):
    """Whether all that two fits say is the same."""
    assert (one.status, one.model, one.num_parameters) == (other.status, other.model, other.num_parameters)
    assert other.log_likelihood == pytest.approx(one.log_likelihood, abs=tolerance)
    assert one.item_columns.keys() == other.item_columns.keys()
    for tables in ((one.items(), other.items()), (one.subjects(), other.subjects())):
        pd.testing.assert_frame_equal(*tables, check_exact=False, rtol=tolerance, atol=tolerance, check_dtype=False)
    assert one.notes() == other.notes()


@pytest.mark.parametrize(("model", "options"), [*FAST, *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)])
def test_fits_by_the_answer_are_those_of_the_matrix(model, options):
    options = dict(options)
    sizes = {name: options.pop(name) for name in ("num_subjects", "num_items", "missing") if name in options}
    responses, theta = simulated(model, **sizes)
    rng = np.random.default_rng(1)
    if options.pop("covariates", False):
        options["covariates"] = pd.DataFrame({"z": theta + rng.normal(size=len(theta))})
    if options.pop("groups", False):
        options["groups"] = np.where(rng.random(len(theta)) < 0.5, "a", "b")
    if options.pop("anchors", False):
        options["anchors"] = fit_families(responses, model).items().iloc[[0, 5]]
    same(fit_families(responses, model, **options), fit_families(of_matrix(responses), model, **options))


@pytest.fixture(scope="module")
def grades():
    return of_matrix(simulated("graded", missing=0.5)[0])


@pytest.fixture(scope="module")
def fit(grades):
    return fit_families(grades, "graded")


def test_the_order_of_subjects_and_of_answers_does_not_matter(grades, fit):
    rng = np.random.default_rng(0)
    order = rng.permutation(grades.num_subjects)
    other = fit_families(grades.choose_subjects(order), "graded")
    assert other.log_likelihood == pytest.approx(fit.log_likelihood, abs=1e-9)
    np.testing.assert_allclose(other.ability, fit.ability[order], atol=1e-9)
    rows = pd.DataFrame(
        {
            "subject_id": grades.subject_ids[grades.subjects],
            "item_id": grades.item_ids[grades.items],
            "response": np.array([1, 2, 3, 4])[grades.answers],
        }
    )
    for some in (rows, rows.sample(frac=1, random_state=0)):
        found = irtjax.fit(some, "graded", sparse=True)
        assert isinstance(found.responses, SparseResponses)
        assert found.log_likelihood == pytest.approx(fit.log_likelihood, abs=1e-9)
        items = found.items().set_index("item_id").loc[grades.item_ids]
        np.testing.assert_allclose(items["discrimination"], fit.item_columns["discrimination"], atol=1e-9)
    assert "answers in" in str(found.summary())


def test_a_fit_is_saved_with_its_answers(fit, tmp_path):
    fit.save(tmp_path)
    assert irtjax.load_fit(tmp_path) == fit


def test_a_matrix_that_was_given_stays_one(grades):
    matrix = grades.read()
    by_answer, whole = (irtjax.fit(matrix, "graded", sparse=sparse) for sparse in (True, False))
    assert by_answer.responses == whole.responses == matrix
    assert by_answer.details["num_answers"] == grades.num_answers
    same(by_answer, whole)


@pytest.mark.parametrize("sparse", [True, False])
def test_items_and_subjects_without_responses_are_refused(grades, sparse):
    values = np.array(grades.read().values)
    for at, named in ((np.s_[:, 3], "item 'i3'"), (np.s_[5], "subject 's5'")):
        without = values.copy()
        without[at] = -1
        responses = ScaledResponses(without, grades.subject_ids, grades.item_ids, grades.scales)
        with pytest.raises(InputError, match=f"{named} has no responses"):
            irtjax.fit(responses, "graded", sparse=sparse)


def test_other_ways_of_integration_need_the_matrix(grades):
    with pytest.raises(InputError, match=r"shared nodes .* whole matrix"):
        fit_families(grades, "graded", integration="normal")
    with pytest.raises(InputError, match="`integration` goes through the whole matrix"):
        irtjax.fit(grades.read(), "graded", integration="normal", sparse=True)


def test_answers_that_a_model_cannot_have_are_refused_as_in_the_matrix(grades):
    counts, shares = (of_matrix(simulated(model, missing=0.5)[0]) for model in ("binomial", "ordered_beta"))
    for responses, model in ((grades, "binomial"), (counts, "graded"), (shares, "beta"), (shares, "binomial")):
        said = []
        for one in (responses, responses.read()):
            with pytest.raises(InputError) as error:
                fit_families(one, model)
            said.append(str(error.value))
        assert said[0] == said[1]


def test_an_anchor_that_lacks_a_category_is_named_with_the_subject(grades, fit):
    anchors = fit.items().iloc[[0]].assign(grades="1|2|3", threshold_4=np.nan)
    anchors.loc[:, "threshold_3"] = np.nan
    said = []
    for one in (grades, grades.read()):
        with pytest.raises(InputError, match=r"subject 's\d+', item 'i0': '4', expected one of 1, 2, 3") as error:
            fit_families(one, "graded", anchors=anchors)
        said.append(str(error.value))
    assert said[0] == said[1]
