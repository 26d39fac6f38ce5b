"""Trains one network by PyTorch on one core, for as many steps as each line of standard input says; answers seconds.

The network and its batches are those of irtjax: LeNet; or an LSTM on frozen word vectors, or an encoder of the package
transformers whose word vectors are frozen, with sentences of similar length in a batch, padded to the longest of it.
Run by the interpreter of PyTorch.
"""

import json
import os
import sys
import time

import numpy as np
import torch
from torch import nn

WINDOW = 64  # batches that are sorted by length together


class LeNet(nn.Module):
    """As in irtjax/networks/lenet.py."""

    def __init__(self, shape, width, classes, dropout):
        super().__init__()
        height, breadth, channels = shape
        self.features = nn.Sequential(
            nn.Conv2d(channels, width, 5, padding=2),
            nn.MaxPool2d(2, ceil_mode=True),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 5, padding=2),
            nn.MaxPool2d(2, ceil_mode=True),
            nn.ReLU(),
            nn.Flatten(),
            nn.Dropout(dropout),
            nn.Linear(-(-height // 4) * -(-breadth // 4) * 2 * width, 8 * width),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(8 * width, classes),
        )

    def forward(self, x):
        """Images to logits."""
        return self.features(x)


class Lstm(nn.Module):
    """As in irtjax/networks/lstm.py, for one sentence."""

    def __init__(self, vectors, width, classes, dropout):
        super().__init__()
        self.vectors = nn.Embedding.from_pretrained(vectors, freeze=True)
        self.projection = nn.Linear(vectors.shape[1], width)
        self.lstm = nn.LSTM(width, width)
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(width, classes)

    def forward(self, words, lengths):
        """Padded word numbers to logits."""
        states, _ = self.lstm(self.dropout(self.projection(self.vectors(words.T))))
        last = states[lengths - 1, torch.arange(len(lengths))]
        return self.out(self.dropout(last))


class Bert(nn.Module):
    """As in irtjax/networks/bert.py, for one sentence."""

    def __init__(self, folder, width, classes, dropout):
        super().__init__()
        from transformers import AutoModel

        self.encoder = AutoModel.from_pretrained(folder, dtype=torch.float32, add_pooling_layer=False)
        self.encoder.embeddings.word_embeddings.weight.requires_grad_(False)
        self.dropout = nn.Dropout(dropout)
        self.hidden = nn.Linear(self.encoder.config.hidden_size, width)
        self.out = nn.Linear(width, classes)

    def forward(self, words, lengths):
        """Padded word pieces to logits."""
        present = (words != 0).long()
        states = self.encoder(input_ids=words, attention_mask=present).last_hidden_state
        mean = (states * present[..., None]).sum(1) / lengths[:, None]
        return self.out(self.dropout(torch.tanh(self.hidden(self.dropout(mean)))))


def batches_of_images(arrays, size, rng):
    """Endless batches, already as PyTorch wants them."""
    images, labels = torch.from_numpy(arrays["inputs"]), torch.from_numpy(arrays["labels"])
    while True:
        order = torch.from_numpy(rng.permutation(len(labels)))
        for at in range(0, len(order) - size + 1, size):
            chosen = order[at : at + size]
            yield (images[chosen],), labels[chosen]


def batches_of_sentences(arrays, size, rng):
    """Endless batches of sentences of similar length, padded to the longest of them."""
    words, labels = torch.from_numpy(arrays["inputs"]), torch.from_numpy(arrays["labels"])
    lengths = torch.from_numpy(arrays["lengths"])
    while True:
        chosen = rng.integers(0, len(labels), WINDOW * size)
        by_length = chosen[np.argsort(arrays["lengths"][chosen], kind="stable")].reshape(WINDOW, size)
        for rows in by_length[rng.permutation(WINDOW)]:
            at = torch.from_numpy(rows)
            yield (words[at, : int(lengths[at].max())], lengths[at]), labels[at]


def main():
    """Answers until the input ends."""
    settings = json.loads(sys.argv[1])
    if settings["core"] is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, [settings["core"]])
    torch.set_num_threads(1)
    rng = np.random.default_rng(settings["core"])
    with np.load(settings["data"]) as file:
        arrays = dict(file)
    size, width, classes, dropout = (settings[name] for name in ("batch_size", "width", "classes", "dropout"))
    if settings["network"] == "lenet":
        network = LeNet(settings["shape"], width, classes, dropout)
        batches = batches_of_images(arrays, size, rng)
    else:
        if settings["network"] == "bert":
            network = Bert(settings["folder"], width, classes, dropout)
        else:
            network = Lstm(torch.from_numpy(arrays["vectors"]), width, classes, dropout)
        batches = batches_of_sentences(arrays, size, rng)
    trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
    decayed = [parameter for parameter in trained if parameter.ndim > 1]
    groups = [{"params": decayed, "weight_decay": settings["weight_decay"]}]
    groups += [{"params": [one for one in trained if one.ndim <= 1], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, settings["learning_rate"], fused=True)
    network.train()
    for line in sys.stdin:
        began = time.perf_counter()
        for _ in range(int(line)):
            inputs, labels = next(batches)
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(*inputs), labels).backward()
            if settings["clip"]:
                nn.utils.clip_grad_norm_(trained, settings["clip"])
            optimizer.step()
        print(time.perf_counter() - began, torch.__version__, flush=True)


if __name__ == "__main__":
    main()
