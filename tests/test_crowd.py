"""Crowds: members as specified, graded answers, and the two figures that the digits crowd must reach."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from irtjax import InputError, crowd, networks, tasks, training

TASK = tasks.load("digits")


def test_members_are_as_asked():
    members = crowd.sample_members(2000, 1000, seed=0, min_subset=10, max_corruption=0.5)
    assert len(np.unique(members.seed)) == 2000
    assert members.subset_size.min() >= 10
    assert members.subset_size.max() <= 1000
    # log-uniform: as many below 100 as above, out of 10..1000
    assert abs((members.subset_size < 100).mean() - 0.5) < 0.04
    assert abs(members.corruption_rate.mean() - 0.25) < 0.02
    assert members.corruption_rate.max() <= 0.5
    again = crowd.sample_members(2000, 1000, seed=0, min_subset=10, max_corruption=0.5)
    np.testing.assert_array_equal(again.subset_size, members.subset_size)


def test_plans_hold_subsets_and_corrupt_only_those():
    members = crowd.Members(np.array([5, 6]), np.array([100, 300]), np.array([0.3, 0.0], np.float32))
    plans = crowd.plan_members(members, TASK.train.labels, TASK.num_classes)
    for at, num_wrong in ((0, 30), (1, 0)):
        order, labels = np.asarray(plans.order[at]), np.asarray(plans.labels[at])
        assert sorted(order) == list(range(1197))
        wrong = labels != TASK.train.labels
        assert wrong.sum() == num_wrong
        assert not wrong[order[plans.size[at] :]].any()
        assert labels.max() < 10
    assert (plans.order[0][:100] != plans.order[1][:100]).any()


def test_a_plan_depends_on_its_own_row_alone():
    members = crowd.sample_members(5, 1197, seed=1, min_subset=10, max_corruption=0.9)
    together = crowd.plan_members(members, TASK.train.labels, 10)
    alone = crowd.plan_members(crowd.Members(*(column[3:4] for column in members)), TASK.train.labels, 10)
    np.testing.assert_array_equal(together.order[3], alone.order[0])
    np.testing.assert_array_equal(together.labels[3], alone.labels[0])
    assert jnp.array_equal(jax.random.key_data(together.key[3]), jax.random.key_data(alone.key[0]))


def test_answers_are_graded_against_gold_labels():
    trainer = training.Trainer(networks.build("mlp", TASK, 8), optax.adam(2e-2), 32, patience=2, max_epochs=15)
    members = crowd.sample_members(6, 1197, seed=0, min_subset=20, max_corruption=0.8)
    trained = crowd.train_crowd(TASK, members, trainer, 20)
    assert (trained.members.best_epoch < trained.members.epochs).any(), "all ended at their best: the test sees nothing"
    plans = crowd.plan_members(members, TASK.train.labels, 10)
    learners = training.train_networks(trainer, plans, training.to_device(TASK), 20)
    for name, responses in trained.responses.items():
        split = TASK.split(name)
        predicted = np.asarray(
            training.predict_all(trainer.network, learners.best_parameters, jnp.asarray(split.inputs))
        )
        np.testing.assert_array_equal(responses.values, predicted == split.labels)
        np.testing.assert_array_equal(responses.item_ids, split.ids)
        np.testing.assert_allclose(trained.members[f"accuracy_{name}"], responses.values.mean(1))
    assert list(trained.members.seed) == list(members.seed)
    # the answers are those of the best epoch, by the accuracy that chose it
    np.testing.assert_allclose(trained.members.accuracy_validation, learners.best_accuracy, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_models": 1}, "a crowd of 1"),
        ({"min_subset": 0}, "smallest subset 0"),
        ({"min_subset": 101}, "smallest subset 101, expected 1 to 100"),
        ({"max_corruption": 1.5}, "largest corruption rate 1.5"),
    ],
)
def test_bad_crowds_are_named(change, message):
    arguments = {"num_models": 5, "num_examples": 100, "seed": 0, "min_subset": 10, "max_corruption": 0.5} | change
    with pytest.raises(InputError, match=message):
        crowd.sample_members(**arguments)
