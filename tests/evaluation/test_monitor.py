"""Checkpoints scored by adaptive tests: against direct tests and brute force, and a digits network as it learns."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from adaptive_reference import mixed_bank
from scipy.special import expit
from simulation import draw, probability

import irtjax
from irtjax import InputError, ResponseMatrix, tasks
from irtjax.evaluation.adaptive import adaptive_test
from irtjax.evaluation.adaptive_options import Randomesque, Stop
from irtjax.evaluation.monitor import Monitor, share_of_bank
from irtjax.evaluation.replay import replay
from irtjax.item_models.tables import from_columns
from irtjax.plots.evaluation import monitor as picture
from irtjax.training.data import classify, to_device
from irtjax.training.loop import same_plan, start, train_epoch
from irtjax.training.recipe import Recipe, make_trainer

BANK = mixed_bank()
TABLE = pd.DataFrame(
    {
        "item_id": [f"i{i}" for i in range(30)],
        "difficulty": -BANK.intercept / BANK.slope[:, 0],
        "discrimination": BANK.slope[:, 0],
        "guessing": expit(BANK.lower),
        "upper": expit(BANK.upper),
    }
)
RNG = np.random.default_rng(0)
VALUES = draw(RNG, probability(BANK, np.array([-1.0, 0.2, 1.5])))


def answers_of(row):
    return lambda item_ids: [row[int(item[1:])] for item in item_ids]


@pytest.mark.slow
def test_checkpoints_are_direct_tests():
    monitor = Monitor(TABLE, max_items=12, standard_error=0.5)
    test = adaptive_test(from_columns(TABLE.set_index("item_id")), rule="variance", stop=Stop(12, standard_error=0.5))
    found = replay(test, VALUES, jax.random.key(0))
    for step, row in enumerate(VALUES):
        checkpoint = monitor(100 * step, answers_of(row))
        number = found.number[step]
        assert checkpoint.item_ids == [f"i{i}" for i in found.items[step, :number]]
        assert checkpoint.answers == found.answers[step, :number].tolist()
    table = monitor.table()
    assert list(table) == ["step", "ability", "ability_se", "score", "score_se", "low", "high", "num_items"]
    assert table.step.tolist() == [0, 100, 200]
    np.testing.assert_array_equal(table.num_items, found.number)
    np.testing.assert_allclose(table.ability, found.last()[0], atol=1e-6)
    np.testing.assert_allclose(table.ability_se, found.last()[1], atol=1e-6)
    # without a common past: in another order the same
    again = Monitor(TABLE, max_items=12, standard_error=0.5)
    assert again(0, answers_of(VALUES[2])).ability == table.ability[2]
    assert "predicted from 8 items" in str(picture(table, "a").axes[1].get_legend_handles_labels())


def test_the_share_of_the_bank_by_simulation():
    nodes = np.array([-1.0, 0.0, 1.2])
    weights, items, answers = np.array([0.2, 0.5, 0.3]), np.array([3, 7, 20, 9, -1]), np.array([1, 0, 1, -1, -1])
    right = probability(BANK, nodes).T
    found = share_of_bank(right, weights, items, answers)
    rng = np.random.default_rng(1)
    drawn = (rng.random((200_000, 30)) < right.T[rng.choice(3, 200_000, p=weights)]).astype(float)
    drawn[:, [3, 7, 20]] = [1, 0, 1]  # what is known; the item that was skipped is not
    total = drawn.mean(axis=1)
    assert found.mean == pytest.approx(total.mean(), abs=4 * total.std() / np.sqrt(200_000))
    assert found.sd == pytest.approx(total.std(), rel=0.01)
    assert ((found.low <= total) & (total <= found.high)).mean() == pytest.approx(0.9, abs=0.03)  # thirtieths
    every = share_of_bank(right, weights, np.arange(30), VALUES[0])
    assert every.mean == pytest.approx(VALUES[0].mean())
    assert every.sd < 1e-6


def test_batches_skipped_items_and_exposure():
    sizes = []

    def answer(item_ids):
        sizes.append(len(item_ids))
        return np.array([None] + [1] * (len(item_ids) - 1), object)

    monitor = Monitor(TABLE, max_items=10, at_a_time=4, exposure=Randomesque(10), seed=3)
    first = monitor(0, answer)
    assert sizes == [4, 4, 2]
    assert first.answers == [-1, 1, 1, 1] * 2 + [-1, 1]
    assert monitor(1, answer).item_ids != first.item_ids  # draws of its own
    assert Monitor(TABLE, max_items=10, at_a_time=4, exposure=Randomesque(10), seed=3)(0, answer) == first
    assert len(Monitor(TABLE, max_items=99)(0, lambda items: [1]).item_ids) == 30
    for given, message in (([1], "gave 1 answers to 4 items"), ([1, 0, 2, 1], "gave 2 to item 'i"), ("1111", "expect")):
        with pytest.raises(InputError, match=message):
            monitor(2, lambda items, given=given: given)
    # a series by item id may have any order, one of other ids is refused
    right = {item: number % 2 for number, item in enumerate(TABLE.item_id)}
    whole = pd.Series(right)
    in_order, shuffled = (
        Monitor(TABLE, max_items=10, at_a_time=4)(0, of)
        for of in (lambda items: [right[item] for item in items], lambda items: whole[whole.index.isin(items)])
    )
    assert in_order == shuffled
    with pytest.raises(InputError, match="gave a series with the index a, b, c, d, expected each of i"):
        monitor(2, lambda items: pd.Series(1, list("abcd")))
    with pytest.raises(InputError, match="in 2 dimensions, expected one"):
        Monitor(pd.DataFrame({"item_id": ["a"], "discrimination_1": 1.0, "discrimination_2": 1.0, "intercept": 0.0}))


CROWD, MONITORED, EPOCHS = 24, 4, 10


@pytest.fixture(scope="module")
def learning():
    """Answers (epoch, network, item) of networks in training to the validation examples of digits, ids, and labels."""
    task = tasks.load("digits")
    trainer, data = make_trainer(Recipe("mlp", width=16), task), to_device(task)
    size, num_networks = len(task.train.labels), CROWD + MONITORED
    keys = jax.vmap(jax.random.key)(jnp.arange(num_networks, dtype=jnp.uint32))
    order = np.arange(size, dtype=np.int32)
    plans = same_plan(keys, order, jnp.int32(size), data.train.labels, jnp.float32(5e-3))
    learners = jax.vmap(lambda plan: start(trainer, plan, data.initial))(plans)

    @jax.jit
    def epoch(learners):
        learners = train_epoch(trainer, learners, plans, data, 5)
        split = data.validation
        right = jax.vmap(lambda one: classify(trainer.network, one, data.embeddings, split) == split.labels)
        return learners, right(learners.parameters)

    answers = []
    for _ in range(EPOCHS):
        learners, right = epoch(learners)
        answers.append(np.asarray(right, np.int8))
    return np.stack(answers), task.validation.ids.astype(str), task.validation.labels


@pytest.mark.slow
def test_a_few_items_track_networks_as_they_learn(learning):
    """Items are calibrated on 24 networks, at all of their epochs; four others are monitored."""
    answers, ids, labels = learning
    crowd = answers[:, :CROWD].reshape(-1, ids.size)
    some = (crowd.mean(axis=0) > 0) & (crowd.mean(axis=0) < 1)
    fit = irtjax.fit(ResponseMatrix(crowd[:, some], np.arange(len(crowd)).astype(str), ids[some]), model="1pl")
    place = {item: at for at, item in enumerate(ids)}

    def monitored(groups):
        tables = []
        for network in range(CROWD, CROWD + MONITORED):
            monitor = Monitor(fit, max_items=30, groups=groups)
            for step, row in enumerate(answers[:, network]):
                monitor(step, lambda items, row=row: row[[place[item] for item in items]])
            tables.append(monitor.table().assign(true=answers[:, network][:, some].mean(axis=1)))
        return pd.concat(tables)

    table, without = monitored(labels[some]), monitored(None)
    error = np.abs(table.score - table.true)
    assert np.ptp(table.true) > 0.4
    assert np.corrcoef(table.score, table.true)[0, 1] > 0.95
    assert error.mean() < 0.06
    assert (error / table.score_se).max() < 3.5
    assert ((table.low <= table.true) & (table.true <= table.high)).mean() > 0.75
    # what the docs say: networks at their beginning know classes, and groups keep these apart
    assert error.mean() < np.abs(without.score - without.true).mean()
