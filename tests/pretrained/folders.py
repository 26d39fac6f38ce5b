"""A small encoder of the BERT type with random weights, written as its users have it, and its equations in NumPy."""

import json

import numpy as np
from safetensors.numpy import save_file
from scipy.special import erf, softmax

CONFIG = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "vocab_size": 40,
    "max_position_embeddings": 24,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
}
WORDS = ["a", "the", "film", "plot", "good", "bad", "dull", "fine", "very", "not", "is", "was", "##s", "##ly", ".", ","]
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS]


def weights(seed=0, prefix="", inner=CONFIG["intermediate_size"]):
    """Random weights by the names of the format."""
    rng, width = np.random.default_rng(seed), CONFIG["hidden_size"]
    found = {}

    def dense(name, inputs, outputs):
        found[f"{name}.weight"] = rng.normal(0, 0.5, (outputs, inputs))
        found[f"{name}.bias"] = rng.normal(0, 0.2, outputs)

    def norm(name):
        found[f"{name}.weight"] = rng.normal(1, 0.2, width)
        found[f"{name}.bias"] = rng.normal(0, 0.2, width)

    for name, rows in (
        ("word", "vocab_size"),
        ("position", "max_position_embeddings"),
        ("token_type", "type_vocab_size"),
    ):
        found[f"embeddings.{name}_embeddings.weight"] = rng.normal(0, 1, (CONFIG[rows], width))
    norm("embeddings.LayerNorm")
    for at in range(CONFIG["num_hidden_layers"]):
        for part in ("query", "key", "value"):
            dense(f"encoder.layer.{at}.attention.self.{part}", width, width)
        dense(f"encoder.layer.{at}.attention.output.dense", width, width)
        norm(f"encoder.layer.{at}.attention.output.LayerNorm")
        dense(f"encoder.layer.{at}.intermediate.dense", width, inner)
        dense(f"encoder.layer.{at}.output.dense", inner, width)
        norm(f"encoder.layer.{at}.output.LayerNorm")
    return {prefix + name: value.astype(np.float32) for name, value in found.items()}


def write_folder(folder, seed=0, prefix="", **changes):
    """The folder, with some values of config.json changed; None removes one."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {name: value for name, value in (CONFIG | changes).items() if value is not None}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "vocab.txt").write_text("\n".join(PIECES))
    save_file(weights(seed, prefix), folder / "model.safetensors")
    return folder


def states(tensors, pieces, kinds):
    """The states of one example by the equations, in float64: (L, H)."""
    get = {name: value.astype(np.float64) for name, value in tensors.items()}
    heads, width = CONFIG["num_attention_heads"], CONFIG["hidden_size"]

    def dense(name, x):
        return x @ get[f"{name}.weight"].T + get[f"{name}.bias"]

    def norm(name, x):
        scaled = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + CONFIG["layer_norm_eps"])
        return scaled * get[f"{name}.weight"] + get[f"{name}.bias"]

    parts = [("word", pieces), ("position", np.arange(len(pieces))), ("token_type", kinds)]
    x = norm("embeddings.LayerNorm", sum(get[f"embeddings.{name}_embeddings.weight"][rows] for name, rows in parts))
    for at in range(CONFIG["num_hidden_layers"]):
        of = f"encoder.layer.{at}"
        q, k, v = (
            dense(f"{of}.attention.self.{part}", x).reshape(len(x), heads, -1) for part in ("query", "key", "value")
        )
        shares = softmax(np.einsum("thd,uhd->htu", q, k) / np.sqrt(width / heads), axis=-1)
        a = np.einsum("htu,uhd->thd", shares, v).reshape(len(x), width)
        y = norm(f"{of}.attention.output.LayerNorm", x + dense(f"{of}.attention.output.dense", a))
        inner = dense(f"{of}.intermediate.dense", y)
        inner = inner * (1 + erf(inner / np.sqrt(2))) / 2
        x = norm(f"{of}.output.LayerNorm", y + dense(f"{of}.output.dense", inner))
    return x
