"""The suspects stage: planted wrong labels come first, with the class that they should have."""

import re

import numpy as np
import pandas as pd
import pytest

from experiments.stages import suspects
from irtjax import InputError, ResponseMatrix, tasks, write_responses
from irtjax.responses.matrix import MISSING
from irtjax.tasks.task import SPLITS

EXAMPLES, MODELS, WRONG = 80, 24, 6
CLASSES = np.array(["bird", "cat", "dog"])


def crowd_of(task, true, folder):
    """Predictions of models that are right about what is true with a chance from 50 to 90%, as a crowd leaves them."""
    rng = np.random.default_rng(1)
    folder.mkdir()
    for split in SPLITS:
        truth = np.array([true[item] for item in task.split(split).ids])
        right = rng.random((MODELS, len(truth))) < np.linspace(0.5, 0.9, MODELS)[:, None]
        others = (truth + rng.integers(1, 3, right.shape)) % 3
        classes = np.where(right, truth, others).astype(np.uint8)
        np.savez(folder / f"predictions_{split}.npz", predictions=classes)
        answers = (classes == task.split(split).labels).astype(np.int8)
        answers[:20, :2] = MISSING  # as out of bag
        answers[:, 2] = MISSING
        write_responses(
            ResponseMatrix(answers, np.arange(MODELS).astype(str), task.split(split).ids),
            folder / f"responses_{split}.npz",
        )


@pytest.mark.parametrize("kind", ["texts", "images"])
def test_planted_wrong_labels_come_first(tmp_path, kind):
    rng = np.random.default_rng(0)
    true = np.arange(EXAMPLES) % 3
    wrong = rng.permutation(EXAMPLES)[:WRONG]
    shown = true.copy()
    shown[wrong] = (true[wrong] + 1) % 3
    ids = [f"example {at}" for at in range(EXAMPLES)]
    images = rng.integers(0, 256, (EXAMPLES, 4, 4)).astype(np.uint8)
    inputs = [f"text {at}" for at in range(EXAMPLES)] if kind == "texts" else images
    options = {"min_count": 1} if kind == "texts" else {}
    task = tasks.from_arrays(inputs, CLASSES[shown], ids=ids, **options)
    crowd_of(task, dict(zip(ids, true, strict=True)), tmp_path / "crowd")
    table = suspects.run(task, tmp_path / "crowd")
    nobody = [task.split(split).ids[2] for split in SPLITS]
    assert sorted(table.item_id) == sorted(set(ids) - set(nobody))
    wrong = np.array([at for at in wrong if ids[at] not in nobody])
    few = np.concatenate([task.split(split).ids[:2] for split in SPLITS])
    assert (table.num_models == np.where(table.item_id.isin(few), MODELS - 20, MODELS)).all()
    first = table.head(len(wrong))
    assert set(first.item_id) == {ids[at] for at in wrong}
    places = [ids.index(item) for item in first.item_id]
    assert first.label.tolist() == CLASSES[shown[places]].tolist()
    assert first.instead.tolist() == CLASSES[true[places]].tolist()
    assert (table.label_probability.diff().dropna() >= 0).all()
    assert all(row.item_id in task.split(row.split).ids for row in table.itertuples())
    assert ("text" in table) == (kind == "texts")
    if kind == "texts":
        assert table.text.tolist() == [item.replace("example", "text") for item in table.item_id]
    suspects.write(table, tmp_path)
    assert pd.read_csv(tmp_path / "suspects.csv").item_id.tolist() == table.item_id.tolist()
    path = tmp_path / "crowd" / f"predictions_{SPLITS[0]}.npz"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match=rf"^{re.escape(str(path))}: "):
        suspects.run(task, tmp_path / "crowd")
