"""Adaptive tests and banks of counts whose trials agree: posteriors, scores and choices, against SciPy."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import betabinom, norm

import irtjax
from irtjax.errors import InputError
from irtjax.evaluation.adaptive import adaptive_test
from irtjax.evaluation.adaptive_options import Stop
from irtjax.evaluation.bank import calibrate
from irtjax.evaluation.scaled_replay import replay_scaled
from irtjax.evaluation.scaled_study import compare_scaled
from irtjax.populations.normal import STANDARD
from irtjax.responses.from_arrays import of_counts
from irtjax.scoring.family_items import matched

ITEMS, TRIALS = 8, np.array([4, 4, 9, 9, 9, 2, 9, 4])
SLOPE, DIFFICULTY = np.linspace(0.8, 2.2, ITEMS), np.array([-1.0, 0.3, 0.0, 1.2, -0.4, 0.1, 0.8, -1.6])
PHI = np.array([1.5, 40.0, 20.0, 8.0, 3.0, 5.0, 2.0, 6.0])
TABLE = pd.DataFrame(
    {
        "item_id": [f"q{i}" for i in range(ITEMS)],
        "model": "beta_binomial",
        "discrimination": SLOPE,
        "difficulty": DIFFICULTY,
        "precision": PHI,
    }
)
THETA = np.linspace(-7, 7, 4001)


def p_of(theta):
    return expit(SLOPE * (np.asarray(theta)[..., None] - DIFFICULTY))


def probability(k, n, p, phi):
    return betabinom.pmf(k, n, p * phi, (1 - p) * phi)


@pytest.fixture(scope="module")
def test():
    return adaptive_test(TABLE, stop=Stop(max_items=5), trials=TRIALS)


def test_ability_and_score_are_those_of_the_posterior(test):
    state, answers = test.init(), {}
    for share in (0.5, 1.0, 0.0):
        item = test.next_item(state)
        answers[item] = int(share * TRIALS[item])
        state = test.update(state, item, answers[item])
    p, density, rest, noise = p_of(THETA), norm.pdf(THETA), 0.0, 0.0
    for i in range(ITEMS):
        n, shape = TRIALS[i], (p[:, i] * PHI[i], (1 - p[:, i]) * PHI[i])
        if i in answers:
            density = density * probability(answers[i], n, p[:, i], PHI[i])
        else:
            rest, noise = rest + betabinom.mean(n, *shape) / n, noise + betabinom.var(n, *shape) / n**2
    density /= density.sum()
    ability = density @ THETA
    assert state.ability == pytest.approx(ability, abs=1e-6)
    assert state.standard_error == pytest.approx(np.sqrt(density @ (THETA - ability) ** 2), abs=1e-6)
    seen = sum(k / TRIALS[i] for i, k in answers.items())
    assert state.score == pytest.approx((seen + density @ rest) / ITEMS, abs=1e-6)
    variance = density @ rest**2 - (density @ rest) ** 2 + density @ noise
    assert state.score_error == pytest.approx(np.sqrt(variance) / ITEMS, abs=1e-6)


def test_the_first_item_has_the_most_information(test):
    """The mean square of the score of a count, by differences; of independent trials another would have most."""
    told, h = [], 1e-5
    for i in range(ITEMS):
        k = np.arange(TRIALS[i] + 1)
        low, at, high = (probability(k, TRIALS[i], p_of(step)[i], PHI[i]) for step in (-h, 0.0, h))
        told.append(((high - low) ** 2 / (4 * h**2) / at).sum())
    found = test.gains(np.zeros(1), np.arange(ITEMS)[None])[0]
    np.testing.assert_allclose(found, told, rtol=1e-3)  # linear between nodes
    assert test.next_item(test.init()) == np.argmax(told)
    assert np.argmax(told) != np.argmax(TRIALS * SLOPE**2 * p_of(0.0) * (1 - p_of(0.0)))


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(0)
    n = rng.choice([4, 9], size=(60, ITEMS))
    p = p_of(rng.normal(size=60))
    k = rng.binomial(n, rng.beta(p * PHI, (1 - p) * PHI)).astype(float)
    k[rng.random(k.shape) < 0.05] = np.nan
    return of_counts(k, n, [f"s{j}" for j in range(60)], TABLE["item_id"].tolist())


def test_recorded_counts_of_different_trials_lead_to_the_score_of_all(counts):
    trials = np.where(counts.observed, counts.trials, 0)
    test = adaptive_test(TABLE, stop=Stop(max_items=ITEMS), trials=trials)
    last = replay_scaled(test, counts).groupby("subject_id").last()
    expected = irtjax.score(TABLE.set_index("item_id"), counts)
    np.testing.assert_allclose(last.ability[list(counts.subject_ids)], expected.ability, atol=1e-6)
    np.testing.assert_allclose(last.ability_se[list(counts.subject_ids)], expected.ability_se, atol=1e-6)
    np.testing.assert_allclose(expected.mean_response, counts.mean(axis=1), atol=1e-12)
    study = compare_scaled(test, matched(counts, test.known)[0], STANDARD)
    at_end = study.errors[study.errors.num_items == ITEMS]
    np.testing.assert_allclose(at_end.ability_mae, 0, atol=1e-5)


def test_what_the_test_does_not_know_is_refused(test, counts):
    with pytest.raises(InputError, match=r"a response of 5 trials, where there are responses of 2, 4, 9: say by"):
        replay_scaled(test, of_counts(counts.values * 0 + 1, 5, counts.subject_ids, counts.item_ids))
    with pytest.raises(InputError, match=r"1\.5 successes: expected a whole number"):
        test.update(test.init(), 0, 1.5)
    with pytest.raises(InputError, match=r"2\.5 trials of a response: expected a whole number"):
        adaptive_test(TABLE, stop=Stop(max_items=5), trials=2.5)


@pytest.mark.filterwarnings("ignore::irtjax.FitWarning")
def test_a_bank_predicts_scores_with_the_spread_of_trials_that_agree(counts):
    """Variances of shares are the mean of those of the numbers of trials that an item was given."""
    bank = calibrate(counts, model="beta_binomial", quiet=True)
    theta = np.array([-1.0, 0.4])
    found, parameters = bank.at(theta), bank.fit.parameters
    p = expit(parameters.slope[:, 0] * theta[:, None] + parameters.intercept)
    phi = np.exp(parameters.others[:, 0])
    np.testing.assert_allclose(found.mean, p, rtol=1e-10)
    for i in range(ITEMS):
        n = counts.trials[counts.observed[:, i], i][:, None]
        spread = (betabinom.var(n, p[:, i] * phi[i], (1 - p[:, i]) * phi[i]) / n**2).mean(axis=0)
        np.testing.assert_allclose(found.variance[:, i], spread, rtol=1e-8)
    every = bank.scaled.score_posterior(counts, np.arange(ITEMS))
    np.testing.assert_allclose(every.ability, bank.fit.ability, atol=1e-4)
