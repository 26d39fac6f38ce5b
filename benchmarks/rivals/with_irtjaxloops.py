"""The code of docs/guide/your_loop.md in PyTorch, in Grain and in the Trainer of Hugging Face, on bags of words.

A crowd of small networks, each trained on half of the examples, gives the difficulties. Then one more is trained by a
curriculum. Everything that is selected and drawn is recorded.
"""

import importlib.metadata
import re
import tempfile
from pathlib import Path
from typing import Any

from measure import Stopwatch, main, peak_mb

WIDTH = 16


def blocks(page: str) -> dict[str, str]:
    """The code of the page, by what it imports first."""
    code = re.findall(r"```python\n(.*?)```", Path(page).read_text(encoding="utf-8"), re.DOTALL)
    first = re.compile(r"(?:import|from) ([\w.]+)")
    return {match[1]: block for block in code if (match := first.match(block))}


def contestant(settings: dict) -> dict:
    """Words and labels in `data` (NPZ), the page in `page`; what was recorded goes to `recorded` (NPZ)."""
    import numpy as np
    import torch

    import irtjax
    from irtjax.selection import Curriculum, Sampler

    with np.load(settings["data"]) as arrays:
        words, labels = torch.from_numpy(arrays["words"]), torch.from_numpy(arrays["labels"])
    number, epochs, seeds = len(labels), settings["epochs"], settings["seeds"]
    drawn: list[list[int]] = []
    asked: list[np.ndarray] = []

    class Recorded(Sampler):
        def __iter__(self):
            drawn.append([])
            for at in super().__iter__():
                drawn[-1].append(at)
                yield at

    class Recording(Curriculum):
        def indices(self, epoch, answers=None, labels=None):
            if answers is not None:
                asked.append(np.asarray(answers).argmax(1) == labels if labels is not None else np.asarray(answers))
            return super().indices(epoch, answers, labels)

    def network(seed):
        torch.manual_seed(seed)
        vocabulary = int(words.max()) + 1
        return torch.nn.Sequential(torch.nn.EmbeddingBag(vocabulary, WIDTH, padding_idx=0), torch.nn.Linear(WIDTH, 2))

    names: dict[str, Any] = {"Sampler": Recorded}
    code = blocks(settings["page"])
    for block in ("torch", "grain", "transformers"):
        exec(compile(code[block], settings["page"], "exec"), names)

    stopwatch, predictions = Stopwatch(), []
    for seed in range(seeds):
        half = np.random.default_rng(seed).permutation(number) % 2
        for part in (0, 1):
            own = np.flatnonzero(half == part)
            all_of_them = Curriculum(np.zeros(len(own)), "baseline", batch_size=settings["batch_size"])
            model = network(seed)
            names["train_torch"](model, words[own], labels[own], all_of_them, settings["crowd_epochs"], seed)
            with torch.no_grad():
                logits = model(words).numpy()
            logits[own] = np.nan
            predictions.append(logits)
    difficulty = irtjax.difficulty(predictions, labels.numpy()).difficulty
    times = {"crowd": stopwatch.read()["wall"]}

    stopwatch, asked[:], drawn[:] = Stopwatch(), [], []
    curriculum = Recording(difficulty, settings["rule"], batch_size=settings["batch_size"])
    names["train_torch"](network(100), words, labels, curriculum, epochs)
    recorded = {"difficulty": difficulty, "torch_answers": np.stack(asked), "torch_ability": curriculum.table().ability}
    recorded |= {f"torch_drawn_{epoch}": np.array(row) for epoch, row in enumerate(drawn)}
    times["torch"] = stopwatch.read()["wall"]

    loader = names["batches"](curriculum, words.numpy(), labels.numpy())
    recorded["grain_words"] = np.concatenate([batch for batch, _ in loader])
    recorded["grain_drawn"] = np.array(list(Sampler(curriculum)))

    transformers, stopwatch, asked, drawn[:] = names["transformers"], Stopwatch(), [], []

    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = network(100)

        def forward(self, words, labels):
            logits = self.network(words)
            return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}

    def answers(model):
        with torch.no_grad():
            return (model.network(words).argmax(1) == labels).numpy()

    curriculum = Recording(difficulty, settings["rule"], batch_size=settings["batch_size"])
    with tempfile.TemporaryDirectory() as folder:
        options = transformers.TrainingArguments(
            folder,
            num_train_epochs=epochs,
            per_device_train_batch_size=settings["batch_size"],
            learning_rate=1e-2,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
        )
        data = [{"words": row, "labels": label} for row, label in zip(words, labels, strict=True)]
        trainer = names["CurriculumTrainer"](
            Classifier(), options, train_dataset=data, curriculum=curriculum, answers=answers
        )
        trainer.train()
    recorded |= {"trainer_answers": np.stack(asked), "trainer_ability": curriculum.table().ability}
    recorded |= {f"trainer_drawn_{epoch}": np.array(row) for epoch, row in enumerate(drawn)}
    recorded["trainer_steps"] = np.array(trainer.state.global_step)
    times["trainer"] = stopwatch.read()["wall"]
    np.savez(settings["recorded"], **recorded)
    versions = {name: importlib.metadata.version(name) for name in ("torch", "transformers", "accelerate", "grain")}
    return {"versions": versions, "runs": [{"label": "loops", "peak_mb": peak_mb(), **times}]}


if __name__ == "__main__":
    main(contestant)
