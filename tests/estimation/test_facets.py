"""Severities of judges: against a likelihood in loops, the model without judges, and a simulation."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import betabinom

import irtjax
from irtjax import InputError

SEVERITY = np.array([-0.7, 0.1, 0.6])
STEPS = np.array([-0.6, 0.6])
DIFFICULTY = np.linspace(-0.8, 0.8, 4)


def simulated(num_subjects, seed, severity=SEVERITY):
    """Grades 0 to 2 of every subject by two of the judges, by the many-facet Rasch model; ability N(0, 1.2²)."""
    rng = np.random.default_rng(seed)
    theta = 1.2 * rng.normal(size=num_subjects)
    j, r, i = (axis.ravel() for axis in np.indices((num_subjects, len(severity), len(DIFFICULTY))))
    kept = rng.permuted(np.tile(np.arange(len(severity)) > 0, (num_subjects, 1)), axis=1)[j, r]
    j, r, i = j[kept], r[kept], i[kept]
    steps = (theta[j] - DIFFICULTY[i] - severity[r])[:, None] - STEPS[None, :]
    eta = np.concatenate([np.zeros((len(j), 1)), steps.cumsum(axis=1)], axis=1)
    shares = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
    grade = (rng.uniform(size=len(j))[:, None] > shares.cumsum(axis=1)).sum(axis=1)
    names = [np.char.add(letter, part.astype(str)) for letter, part in (("s", j), ("i", i), ("r", r))]
    return pd.DataFrame(dict(zip(["subject_id", "item_id", "rater"], names, strict=True)) | {"response": grade})


@pytest.fixture(scope="module")
def table():
    return simulated(80, seed=3)


@pytest.fixture(scope="module")
def fit(table):
    return irtjax.fit(table, model="pcm", facet="rater", priors=None)


def brute_force(table, items, judges, sd):
    """The marginal log-likelihood, response by response, on a fine grid."""
    nodes = np.linspace(-7, 7, 141)
    weights = np.exp(-0.5 * nodes**2)
    weights /= weights.sum()
    total = 0.0
    for _, rows in table.groupby("subject_id"):
        likelihood = np.ones(len(nodes))
        for item, judge, grade in zip(rows.item_id, rows.rater, rows.response, strict=True):
            places = items.loc[item, ["threshold_1", "threshold_2"]].to_numpy(float) + judges[judge]
            exponents = np.stack([np.zeros(len(nodes)), sd * nodes - places[0], 2 * sd * nodes - places.sum()])
            likelihood *= np.exp(exponents[grade]) / np.exp(exponents).sum(axis=0)
        total += np.log(likelihood @ weights)
    return total


def test_the_likelihood_is_that_of_the_formula_and_at_its_maximum(fit, table):
    items, judges = fit.items().set_index("item_id"), fit.facets().set_index("rater_id").severity
    sd = float(fit.population.sd[0])
    top = brute_force(table, items, judges, sd)
    np.testing.assert_allclose(fit.log_likelihood, top, atol=1e-5)
    for k, step in ((0, 0.03), (1, -0.03)):
        moved = judges + step * (np.arange(3) == k) - step / 3
        assert brute_force(table, items, moved, sd) < top
    assert fit.num_parameters == 1 + 4 * 2 + 2


def test_severities_sum_to_zero_and_are_those_of_the_simulation(fit):
    judges = fit.facets().set_index("rater_id").loc[["r0", "r1", "r2"]]
    np.testing.assert_allclose(judges.severity.sum(), 0, atol=1e-12)
    assert (np.abs(judges.severity - SEVERITY) < 3 * judges.severity_se).all()
    assert judges.severity_se.between(0.02, 0.2).all()
    assert judges.num_responses.sum() == 80 * 2 * 4
    assert fit.details["read_as"] == "grades 0 to 2 by 3 of the facet rater"


@pytest.mark.slow
def test_one_judge_is_the_plain_model(table):
    one = table[table.rater == "r0"]
    judged = irtjax.fit(one, model="pcm", facet="rater", priors=None)
    plain = irtjax.fit(one.drop(columns="rater"), model="pcm", priors=None)
    np.testing.assert_allclose(judged.log_likelihood, plain.log_likelihood, atol=1e-5)
    for name in ("difficulty", "difficulty_se", "ability", "ability_se"):
        np.testing.assert_allclose(getattr(judged, name), getattr(plain, name), atol=1e-4)
    assert judged.facets().severity.tolist() == [0]


def test_judges_are_in_files(fit, tmp_path):
    fit.save(tmp_path)
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "judges.csv"), fit.facets())
    assert irtjax.load_fit(tmp_path) == fit


def test_judges_that_cannot_be_compared_are_named(table, tmp_path):
    apart = table.assign(item_id=table.item_id + np.where(table.rater == "r2", " of r2", ""))
    easy = table.assign(response=np.where(table.rater == "r1", 2, table.response))
    for data, options, message in (
        (apart, {}, "judge 'r2' with no item in common with the others"),
        (easy, {}, "judge 'r1' with the highest response to everything"),
        (table, {"facet": "judge"}, "there is no column 'judge' for the facet"),
        (table.assign(rater=[None, *table.rater[1:]]), {}, "row 1 does not say who judged"),
        (table, {"model": "nominal"}, "categories without order have no severity"),
        (table, {"model": "3pl"}, "the 3pl has no facet: take one of graded"),
        (table, {"dims": 2}, "has no option `dims`"),
    ):
        with pytest.raises(InputError, match=message):
            irtjax.fit(data, **{"model": "pcm", "facet": "rater", **options})
    with pytest.raises(InputError, match="this fit has no `facet`"):
        irtjax.fit([[0, 1], [1, 0], [1, 1], [0, 0]], model="1pl").facets()


@pytest.mark.slow
def test_intervals_of_severities_cover_the_truth():
    """95% intervals of 3 severities in 40 data sets: of 120, 105 or more (99.9% of a binomial of 0.95)."""
    covered = 0
    for seed in range(40):
        judges = (
            irtjax.fit(simulated(150, seed), model="rsm", facet="rater").facets().set_index("rater_id").sort_index()
        )
        covered += int((np.abs(judges.severity - SEVERITY) < 1.96 * judges.severity_se).sum())
    assert 105 <= covered <= 120


@pytest.mark.slow
def test_counts_whose_trials_agree_may_have_judges():
    """Successes of 3 or 5 trials: the log-likelihood is that of SciPy's distribution, and at its maximum."""
    slope, phi, subjects = np.array([0.8, 1.2, 1.6, 1.0]), np.array([3.0, 6.0, 9.0, 5.0]), 120
    rng = np.random.default_rng(5)
    theta, (j, r, i) = rng.normal(size=subjects), (axis.ravel() for axis in np.indices((subjects, 3, 4)))
    p = expit(slope[i] * (theta[j] - DIFFICULTY[i] - SEVERITY[r]))
    n = np.where(r == 2, 5, 3)
    k = rng.binomial(n, rng.beta(p * phi[i], (1 - p) * phi[i]))
    names = [np.char.add(letter, part.astype(str)) for letter, part in (("s", j), ("i", i), ("r", r))]
    columns = dict(zip(["subject_id", "item_id", "rater"], names, strict=True))
    table = pd.DataFrame(columns | {"response": k, "trials": n})
    fit = irtjax.fit(table, model="beta_binomial", facet="rater", priors=None)
    found = fit.parameters
    nodes = np.linspace(-7, 7, 141)
    weights = np.exp(-0.5 * nodes**2) / np.exp(-0.5 * nodes**2).sum()

    def log_likelihood(severity, log_phi):
        a, d, precision = found.slope[i, 0, None], found.intercept[i, None], np.exp(log_phi)[i, None]
        p = expit(a * (nodes - severity[r, None]) + d)
        own = betabinom.logpmf(k[:, None], n[:, None], p * precision, (1 - p) * precision)
        of_subjects = own.reshape(subjects, 12, -1).sum(axis=1)
        return np.log(np.exp(of_subjects) @ weights).sum()

    severity, log_phi = fit.facets().severity.to_numpy(), found.others[:, 0]
    assert fit.converged
    assert fit.log_likelihood == pytest.approx(log_likelihood(severity, log_phi), abs=1e-4)
    for step in 1e-3 * np.eye(4):
        rise = log_likelihood(severity, log_phi + step) - log_likelihood(severity, log_phi - step)
        assert rise == pytest.approx(0, abs=1e-5)
    for step in 1e-3 * np.array([[1, -1, 0], [0, 1, -1]]):
        rise = log_likelihood(severity + step, log_phi) - log_likelihood(severity - step, log_phi)
        assert rise == pytest.approx(0, abs=1e-5)
    off = (severity - SEVERITY + SEVERITY.mean()) / fit.facets().severity_se
    assert np.abs(off).max() < 3
