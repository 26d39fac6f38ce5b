"""The same networks in PyTorch, a process on each core with one thread: what a user would run instead of a crowd."""

import functools
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import jax
import numpy as np

from benchmarks.contestants import SCRIPTS, cpu_cores, interpreter
from irtjax import InputError
from irtjax.networks import usual_dropout
from irtjax.networks.layers import image_values
from irtjax.tasks import Task
from irtjax.tasks.task import PADDING, TextFormat
from irtjax.training.recipe import Recipe

REQUIREMENT = "torch==2.13.0 numpy"
WITH_ENCODERS = "torch==2.13.0 transformers==5.23.0 numpy"
NETWORKS = ("lenet", "lstm", "bert")


class TorchCrowd:
    """Processes that train one network each, as many as there are cores."""

    def __init__(self, task: Task, recipe: Recipe, environment: str, base: str) -> None:
        if recipe.network not in NETWORKS or (isinstance(task.format, TextFormat) and task.format.sentences > 1):
            raise InputError(f"--versus=torch has {' and '.join(NETWORKS)}, on images or single sentences")
        encoder = recipe.network == "bert"
        python = interpreter(
            *(("transformers", WITH_ENCODERS) if encoder else ("torch", REQUIREMENT)), environment, base
        )
        self._folder = tempfile.TemporaryDirectory()
        data = Path(self._folder.name) / "data.npz"
        arrays: dict[str, Any] = {"labels": np.asarray(task.train.labels, np.int64)}
        settings: dict[str, Any] = {"network": recipe.network, "data": str(data), "width": recipe.width}
        settings |= {
            "batch_size": recipe.batch_size,
            "learning_rate": recipe.learning_rate,
            "weight_decay": recipe.weight_decay,
            "clip": recipe.clip,
            "classes": task.num_classes,
        }
        settings["dropout"] = usual_dropout(recipe.network)
        if isinstance(task.format, TextFormat):
            (words,) = task.train.inputs
            arrays["inputs"] = np.asarray(words, np.int64)
            arrays["lengths"] = np.maximum((words != PADDING).sum(1), 1)
            arrays["vectors"] = np.asarray(task.format.embeddings, np.float32)
            if task.format.encoder is not None:
                settings["folder"] = str(task.format.encoder.folder.absolute())
        else:
            to_values = jax.jit(functools.partial(image_values, task.format))
            images = np.asarray(to_values(task.train.inputs), np.float32)
            settings["shape"] = images.shape[1:]
            arrays["inputs"] = np.ascontiguousarray(images.transpose(0, 3, 1, 2))
        np.savez(data, **arrays)
        self._workers = [
            subprocess.Popen(
                [python, SCRIPTS / "torch_crowd.py", json.dumps(settings | {"core": core})],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for core in range(cpu_cores())
        ]
        self.version = ""

    def steps_per_second(self, steps: int) -> float:
        """Of all processes together, each for so many steps at the same time."""
        for worker in self._workers:
            assert worker.stdin is not None
            worker.stdin.write(f"{steps}\n")
            worker.stdin.flush()
        rate = 0.0
        for worker in self._workers:
            assert worker.stdout is not None
            seconds, self.version = worker.stdout.readline().split()
            rate += steps / float(seconds)
        return rate

    def close(self) -> None:
        """Ends the processes."""
        for worker in self._workers:
            worker.kill()
            worker.wait()
        self._folder.cleanup()
