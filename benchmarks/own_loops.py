r"""Do loops of PyTorch, Grain and Hugging Face select what the library does, given the same answers?

  python -m benchmarks.own_loops --data_dir=DIR

Installs PyTorch, transformers, accelerate, Grain and what irtjax needs into an environment of its own (3 GB, minutes),
and runs there the code of docs/guide/your_loop.md on phrases of SST-2, as it is printed. Every network's answers before
each epoch are handed to the library's own training, and the two selections are compared: abilities, shares, and each
example that was trained on. Prints a line for each loop. Expected duration on 2 CPU cores: a few minutes after the
installation.
"""

import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from absl import flags

from benchmarks.contestants import interpreter, run
from experiments.common import app
from experiments.common.path_flags import define_path
from irtjax import InputError, tasks
from irtjax.networks import Network
from irtjax.selection.ddaclae import train_curriculum
from irtjax.selection.rules import up_to_ability
from irtjax.tasks.task import Split, sample_split
from irtjax.training.data import Data, evaluation_split
from irtjax.training.step import Trainer
from irtjax.types import AnyArray, Float, Int

_DATA = define_path("data_dir", "folder of prepared data sets", required=True)
_EXAMPLES = flags.DEFINE_integer("train_examples", 10_000, "phrases of SST-2", lower_bound=100)
_SEEDS = flags.DEFINE_integer("seeds", 5, "of the crowd; two networks each", lower_bound=1)
_EPOCHS = flags.DEFINE_integer("epochs", 6, "of a curriculum", lower_bound=1)
_ENVIRONMENT = flags.DEFINE_string("environment", ".own_loops", "folder of the virtual environment")
_PYTHON = flags.DEFINE_string("python", sys.executable, "interpreter to make that environment with")

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = REPOSITORY / "docs" / "guide" / "your_loop.md"
PACKAGES = "torch==2.13.0 transformers==5.24.0 accelerate==1.15.0 grain==0.2.18"
BATCH = 32
CROWD_EPOCHS = 3

# An example is right where its only number is above a half; nothing is learned.
RECORDED = Network(
    init=lambda key, width, weights: jnp.zeros(1),
    logits=lambda parameters, embeddings, inputs, key: jnp.stack([inputs[:, 0], 0.5 + 0 * inputs[:, 0]], axis=1),
)
TRAINER = Trainer(RECORDED, optax.sgd(0.0), batch_size=BATCH, patience=1, max_epochs=1)


def of_library(difficulty: Float[np.ndarray, " N"], right: Int[AnyArray, " N"]) -> tuple[float, Int[np.ndarray, " K"]]:
    """Ability and selected examples of an epoch of `train_curriculum` whose network has these answers."""
    split = Split(
        np.asarray(right, np.float32)[:, None], np.zeros(right.size, np.int32), np.arange(right.size).astype(str)
    )
    evaluated = evaluation_split(split)
    data = jax.device_put(Data(split.inputs, None, None, evaluated, evaluated, evaluated))
    history = train_curriculum(TRAINER, jax.random.key(0)[None], data, difficulty, up_to_ability, learning_rate=0.0)
    number = round(float(history.share[0, 0]) * difficulty.size)
    return float(history.ability[0, 0]), np.argsort(difficulty.astype(np.float32), kind="stable")[:number]


def compare(recorded: dict[str, Any], loop: str) -> str:
    """One line: epochs with the same ability and selection."""
    same, sizes, drawn_right = 0, [], 0
    answers = recorded[f"{loop}_answers"]
    for epoch, right in enumerate(answers):
        ability, selected = of_library(recorded["difficulty"], right)
        drawn = recorded[f"{loop}_drawn_{epoch}"]
        whole = max(len(selected) // BATCH, 1) * BATCH
        drawn_right += len(drawn) == whole == len(set(drawn.tolist())) and set(drawn.tolist()) <= set(selected.tolist())
        same += bool(np.float32(recorded[f"{loop}_ability"][epoch]) == np.float32(ability))
        sizes.append(f"{len(selected) / len(right):.1%}")
    return (
        f"{loop}: same ability in {same} of {len(answers)} epochs; whole minibatches of what the library selects, "
        f"without repeats, in {drawn_right}; selected {', '.join(sizes)}; right before an epoch "
        + ", ".join(f"{row.mean():.1%}" for row in answers)
    )


def main() -> None:
    """Trains, compares, prints."""
    task = sample_split(tasks.load("sst2", data_dir=_DATA.value), "train", _EXAMPLES.value, 0)
    needed = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    python = interpreter("loops", " ".join([PACKAGES, *needed]), _ENVIRONMENT.value, _PYTHON.value)
    with tempfile.TemporaryDirectory() as folder:
        data, recorded = Path(folder, "data.npz"), Path(folder, "recorded.npz")
        (words,) = task.train.inputs
        np.savez(data, words=np.asarray(words, np.int64), labels=np.asarray(task.train.labels, np.int64))
        settings: dict[str, Any] = {"data": str(data), "recorded": str(recorded), "page": str(PAGE), "rule": "DDaCLAE"}
        settings |= {"batch_size": BATCH, "epochs": _EPOCHS.value, "seeds": _SEEDS.value, "crowd_epochs": CROWD_EPOCHS}
        result = run("irtjaxloops", python, settings)
        if "error" in result:
            raise InputError(f"loops: {result['error']}")
        with np.load(recorded) as arrays:
            found = dict(arrays)
    print(", ".join(f"{name} {version}" for name, version in result["versions"].items()))
    for loop in ("torch", "trainer"):
        print(compare(found, loop))
    steps = sum(len(found[f"trainer_drawn_{epoch}"]) for epoch in range(_EPOCHS.value)) // BATCH
    print(f"trainer: {int(found['trainer_steps'])} steps, {steps} minibatches drawn")
    same = np.array_equal(found["grain_words"], np.asarray(words, np.int64)[found["grain_drawn"]])
    print(f"grain: the batches of the last epoch are {'' if same else 'not '}those of the sampler")
    times = result["runs"][0]
    print("seconds: " + ", ".join(f"{name} {times[name]:.0f}" for name in ("crowd", "torch", "trainer")))


if __name__ == "__main__":
    app.run(main)
