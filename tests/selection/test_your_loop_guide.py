"""The code of docs/guide/your_loop.md, as printed there. What needs PyTorch, Grain or TensorFlow is skipped without."""

import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from irtjax.selection import Curriculum

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "your_loop.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
EPOCHS = 6


def run(block, names):
    (code,) = [text for text in BLOCKS if re.search(rf"^import {block}( as \w+)?$|^from {block}", text, re.MULTILINE)]
    exec(compile(code, str(PAGE), "exec"), names)
    return names


@pytest.fixture(scope="module")
def page():
    """Names after the blocks that all others need."""
    return run("irtjax.selection", run("sklearn", {"print": lambda *_: None}))


@pytest.fixture
def names(page):
    curriculum = Curriculum(page["found"].difficulty, "DDaCLAE", batch_size=32)
    return {**page, "curriculum": curriculum}


def require_learned(curriculum, right):
    table = curriculum.table()
    assert table.ability.is_monotonic_increasing or table.ability.diff().min() > -0.5
    assert table.ability.iloc[-1] > table.ability.iloc[0] + 1
    assert table.share.iloc[0] < 0.5
    assert right > 0.85


def test_difficulties(page):
    table = page["found"].table
    assert len(table) == len(page["y"])
    assert np.corrcoef(table.difficulty, table.mean_confidence)[0, 1] < -0.8


def test_jax(names):
    run("jax", names)
    assert len(names["curriculum"].table()) == 10
    require_learned(names["curriculum"], ((names["x"] @ names["weights"]).argmax(1) == names["y"]).mean())


def test_torch(names):
    torch = pytest.importorskip("torch")
    run("torch", names)
    torch.manual_seed(0)
    x, y = torch.from_numpy(names["x"]), torch.from_numpy(names["y"])
    model = names["train_torch"](torch.nn.Linear(64, 10), x, y, names["curriculum"], EPOCHS)
    require_learned(names["curriculum"], (model(x).argmax(1) == y).float().mean())


def test_grain(names):
    pytest.importorskip("grain")
    run("grain", names)
    curriculum = names["curriculum"]
    curriculum.indices(0, np.arange(len(names["y"])) % 2)
    found = list(names["batches"](curriculum, names["x"], names["y"]))
    order = np.reshape(list(names["Sampler"](curriculum)), (-1, 32))
    np.testing.assert_array_equal(np.stack([labels for _, labels in found]), names["y"][order])
    np.testing.assert_array_equal(found[0][0], names["x"][order[0]])


def test_tensorflow(names):
    pytest.importorskip("tensorflow")
    run("tensorflow", names)
    curriculum = names["curriculum"]
    curriculum.indices(0, np.arange(len(names["y"])) % 2)
    found = list(names["tensorflow_batches"](curriculum, names["x"], names["y"]).as_numpy_iterator())
    order = np.reshape(list(names["Sampler"](curriculum)), (-1, 32))
    np.testing.assert_array_equal(np.stack([inputs for inputs, _ in found]), names["x"][order])
    np.testing.assert_array_equal(np.stack([labels for _, labels in found]), names["y"][order])


class Trainer:
    """The order in which transformers' Trainer calls: the length of an epoch, its begin, its batches, its end."""

    def __init__(self, model, args, callbacks):
        self.model, self.args, self.callbacks, self.trained = model, args, callbacks, []

    def call(self, event):
        for callback in self.callbacks:
            getattr(callback, event, lambda *_, **__: None)(self.args, None, None, model=self.model)

    def train(self):
        sampler = self._get_train_sampler(None)
        most = len(sampler)
        self.call("on_train_begin")
        for _ in range(self.args.num_train_epochs):
            length = len(sampler)
            assert length <= most
            self.call("on_epoch_begin")
            self.trained.append(list(sampler)[:length])
            self.model += 1
            self.call("on_epoch_end")


def test_trainer_of_hugging_face(names, monkeypatch):
    fake = types.ModuleType("transformers")
    fake.Trainer, fake.TrainerCallback = Trainer, object
    monkeypatch.setitem(sys.modules, "transformers", fake)
    run("transformers", names)
    curriculum, by_difficulty = names["curriculum"], np.argsort(np.argsort(names["found"].difficulty))
    args = types.SimpleNamespace(num_train_epochs=4, seed=0)
    trainer = names["CurriculumTrainer"](
        0, args, curriculum=curriculum, answers=lambda model: by_difficulty < 400 * (model + 1)
    )
    trainer.train()
    table = curriculum.table()
    assert table.epoch.tolist() == [0, 1, 2, 3]
    assert (table.num_examples.diff()[1:] > 0).all()
    assert [len(epoch) for epoch in trainer.trained] == (table.num_examples // 32 * 32).tolist()
