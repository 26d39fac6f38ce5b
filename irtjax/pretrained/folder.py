"""Reads a pre-trained encoder of the BERT type from a folder, `config.json` and `model.safetensors`."""

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from irtjax.errors import InputError
from irtjax.storage.json_files import parsed
from irtjax.storage.sources import expanded, local_file, reading, shown, text_of

CONFIG, WEIGHTS = "config.json", "model.safetensors"
TYPE = "bert"  # of an encoder whose forward pass `irtjax.networks.bert` has
PICKLED = "pytorch_model.bin"
MOST = 2**40  # of a size
PREFIXES = ("", "bert.")  # of names of weights: of the encoder alone, or within a model for some task
OLD_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}


class BertConfig(NamedTuple):
    """Sizes of an encoder of the BERT type (Devlin et al. 2019).

    Attributes:
        layers: K.
        width: H, of a word's state.
        heads: of attention, which divide H.
        inner: width of the feed-forward layer.
        words: V, word pieces.
        positions: P, most word pieces in an example.
        kinds: of sentences that are told apart; 2, or 1 where the second is like the first.
        epsilon: added to variances.
    """

    layers: int
    width: int
    heads: int
    inner: int
    words: int
    positions: int
    kinds: int
    epsilon: float


# name in config.json of each field of `BertConfig`
_FIELDS = {
    "layers": "num_hidden_layers",
    "width": "hidden_size",
    "heads": "num_attention_heads",
    "inner": "intermediate_size",
    "words": "vocab_size",
    "positions": "max_position_embeddings",
    "kinds": "type_vocab_size",
    "epsilon": "layer_norm_eps",
}
_UNSAID: dict[str, Any] = {
    "layer_norm_eps": 1e-12
}  # where a file says nothing, as in the first ones; the value of transformers
# what the forward pass of `irtjax.networks.bert` has; a file that says nothing has it too
_EXPECTED = {
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
    "pad_token_id": 0,
}


@dataclasses.dataclass(frozen=True, eq=False)
class Pretrained:
    """An encoder as it was trained by others.

    Attributes:
        config: its sizes.
        vectors: (V, H) float32, of word pieces.
        weights: all others, float32, in the tree of `irtjax.networks.bert.Encoder`.
        folder: where it came from.
    """

    config: BertConfig
    vectors: np.ndarray
    weights: dict[str, Any]
    folder: Path


def read_pretrained(folder: str | Path) -> Pretrained:
    """Reads the weights of a folder. Nothing pickled is ever opened.

    Raises:
        InputError: names the file that is missing, damaged or of another architecture.
    """
    folder = expanded(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: no folder; expected one with {CONFIG}, {WEIGHTS} and a vocabulary")
    config = _read_config(folder / CONFIG)
    if not (folder / WEIGHTS).exists() and (folder / PICKLED).exists():
        raise InputError(
            f"{folder / PICKLED}: is pickled, and could run any code when it is opened: convert it to {WEIGHTS}, as "
            "save_pretrained of transformers does"
        )
    tensors = _read_tensors(folder / WEIGHTS)
    vectors, weights = _arrange(tensors, config, folder / WEIGHTS)
    return Pretrained(config, vectors, weights, folder)


def _read_config(path: Path) -> BertConfig:
    with reading(path) as file:
        values = parsed(text_of(file))
        if not isinstance(values, dict) or "model_type" not in values:
            raise InputError("has no model_type: is it the config.json of an encoder?")
        if values["model_type"] != TYPE:
            raise InputError(
                f"model_type is {shown(values['model_type'])}: only encoders of the type {TYPE!r} are read, such as "
                "BERT, MiniLM and most sentence encoders; not RoBERTa, DistilBERT or ModernBERT, whose layers differ"
            )
        values = _UNSAID | values
        for name, expected in _EXPECTED.items():
            if values.get(name, expected) != expected:
                raise InputError(f"{name} is {shown(values[name])}: only encoders with {expected!r} are read")
        missing = [name for name in _FIELDS.values() if name not in values]
        if missing:
            raise InputError(f"has no {missing[0]}")
        config = BertConfig(**{field: values[name] for field, name in _FIELDS.items()})
        for field, value in config._asdict().items():
            known = isinstance(value, float if field == "epsilon" else int) and not isinstance(value, bool)
            if not known or not 0 < value < MOST:
                raise InputError(f"{_FIELDS[field]} is {shown(value)}, expected a positive number")
        if config.width % config.heads:
            raise InputError(f"{config.heads} heads of attention do not divide a width of {config.width}")
    return config


def _read_tensors(path: Path) -> dict[str, np.ndarray]:
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError as error:
        raise InputError(f"{path}: to read it, pip install 'irtjax[pretrained]'") from error
    local_file(path)
    with reading(path) as file:
        try:
            with safe_open(str(file), "np") as archive:
                names = archive.keys()
                tensors = {name: archive.get_tensor(name) for name in names}
        except (SafetensorError, ValueError, TypeError) as error:
            raise InputError(f"is damaged or no safetensors file ({error}): copy it again") from error
    prefix = next((prefix for prefix in PREFIXES if f"{prefix}embeddings.word_embeddings.weight" in tensors), None)
    if prefix is None:
        raise InputError(f"{path}: has no embeddings.word_embeddings.weight: it is of another architecture")
    named = {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
    for old, new in OLD_NAMES.items():
        named = {name.replace(old, new): tensor for name, tensor in named.items()}
    return named


def _arrange(tensors: dict[str, np.ndarray], config: BertConfig, path: Path) -> tuple[np.ndarray, dict[str, Any]]:
    """Word vectors and the tree of all other weights; kernels have their narrow side first, as `bert.Affine`.

    Raises:
        InputError: a weight is missing, has another shape than the config says, or is not finite.
    """
    width, inner = config.width, config.inner

    def get(name: str, *shape: int) -> np.ndarray:
        if name not in tensors:
            raise InputError(f"{path}: has no {name}, which {CONFIG} asks for")
        if tensors[name].dtype.kind != "f":
            raise InputError(f"{path}: {name} has numbers of type {tensors[name].dtype}, expected floating-point ones")
        with np.errstate(over="ignore"):  # what float32 cannot hold is not finite
            tensor = np.asarray(tensors[name], np.float32)
        if tensor.shape != shape:
            raise InputError(f"{path}: {name} has shape {tensor.shape}, {CONFIG} says {shape}")
        if not np.isfinite(tensor).all():
            raise InputError(f"{path}: {name} has values that are not finite: the file is damaged")
        return tensor

    def dense(name: str, inputs: int, outputs: int) -> dict[str, np.ndarray]:
        weight = get(f"{name}.weight", outputs, inputs)  # as in PyTorch
        return {"kernel": weight.T if inputs <= outputs else weight, "bias": get(f"{name}.bias", outputs)}

    def norm(name: str) -> dict[str, np.ndarray]:
        return {"scale": get(f"{name}.weight", width), "bias": get(f"{name}.bias", width)}

    def layer(at: int) -> dict[str, Any]:
        of = f"encoder.layer.{at}"
        parts = [dense(f"{of}.attention.self.{name}", width, width) for name in ("query", "key", "value")]
        return {
            "attention": {name: np.concatenate([part[name] for part in parts], -1) for name in ("kernel", "bias")},
            "attended": dense(f"{of}.attention.output.dense", width, width),
            "attended_norm": norm(f"{of}.attention.output.LayerNorm"),
            "inner": dense(f"{of}.intermediate.dense", width, inner),
            "outer": dense(f"{of}.output.dense", inner, width),
            "outer_norm": norm(f"{of}.output.LayerNorm"),
        }

    weights = {
        "positions": get("embeddings.position_embeddings.weight", config.positions, width),
        "kinds": get("embeddings.token_type_embeddings.weight", config.kinds, width),
        "norm": norm("embeddings.LayerNorm"),
        "layers": {at: layer(at) for at in range(config.layers)},
    }
    return get("embeddings.word_embeddings.weight", config.words, width), weights
