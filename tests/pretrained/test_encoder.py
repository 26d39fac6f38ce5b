"""Encoders: the forward pass against its equations and against transformers, word pieces, folders that are bad."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from folders import PIECES, states, weights, write_folder
from safetensors.numpy import save_file

from benchmarks.versus_transformers import EXAMPLES, RECORDED, vectors
from irtjax import InputError
from irtjax.kernels.formulation import formulated_for
from irtjax.networks.bert import Encoder, mean_state
from irtjax.pretrained.folder import read_pretrained
from irtjax.pretrained.pieces import Pieces


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    return read_pretrained(write_folder(tmp_path_factory.mktemp("encoder")))


FIRST = np.array([[2, 5, 6, 7, 3, 0, 0], [2, 9, 3, 0, 0, 0, 0]])
SECOND = np.array([[8, 3, 0, 0], [10, 11, 12, 3]])


def encode(pretrained, *sentences, dtype=jnp.float32, rate=0.0, key=None):
    graph, state = nnx.split(nnx.eval_shape(lambda: Encoder(pretrained.config, rngs=nnx.Rngs(0))))
    nnx.replace_by_pure_dict(state, jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), pretrained.weights))

    @jax.jit  # one program, rather than one of each operation
    def encoded(state, vectors, sentences, key):
        return nnx.merge(graph, state)(vectors, sentences, rate, key)

    return encoded(state, jnp.asarray(pretrained.vectors, dtype), tuple(map(jnp.asarray, sentences)), key)


@pytest.mark.parametrize("inner", [20, 8])  # wider and narrower than a state: kernels have their narrow side first
def test_the_forward_pass_by_its_equations(inner, tmp_path):
    """One example after the other in NumPy; here as padded pairs, whose padding stands in the middle too."""
    tensors = weights(inner=inner)
    folder = write_folder(tmp_path, intermediate_size=inner)
    save_file(tensors, folder / "model.safetensors")
    first, second = FIRST, SECOND
    found, present = encode(read_pretrained(folder), first, second)
    assert found.shape == (2, 11, 12)
    for at in range(2):
        parts = [row[row != 0] for row in (first[at], second[at])]
        expected = states(tensors, np.concatenate(parts), np.repeat([0, 1], [len(part) for part in parts]))
        np.testing.assert_allclose(np.asarray(found[at])[np.asarray(present[at])], expected, atol=1e-5)
        mean = mean_state(found, present)[at]
        np.testing.assert_allclose(mean, expected.mean(0), atol=1e-5)


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_layers_in_a_loop_are_layers_written_out(rate, pretrained):
    with jax.enable_x64():  # no products in bfloat16
        key = jax.random.key(0) if rate else None
        expected, _ = encode(pretrained, FIRST, SECOND, dtype=jnp.float64, rate=rate, key=key)
        with formulated_for("gpu"):
            found, _ = encode(pretrained, FIRST, SECOND, dtype=jnp.float64, rate=rate, key=key)
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.slow
def test_a_real_encoder_reads_as_transformers_does(shared):
    """Recorded by `benchmarks.versus_transformers --record`."""
    record = json.loads((Path(__file__).parent / "transformers.json").read_text())
    pieces, found = vectors(read_pretrained(shared / "pretrained" / "all-MiniLM-L6-v2"), EXAMPLES)
    assert pieces == record["pieces"]
    np.testing.assert_allclose(found[:, :RECORDED], record["mean"], atol=1e-5)


def test_padding_has_no_effect(pretrained):
    row = np.array([[2, 5, 6, 7, 3]])
    alone = mean_state(*encode(pretrained, row))
    padded = mean_state(*encode(pretrained, np.pad(row, ((0, 0), (0, 9)))))
    np.testing.assert_allclose(alone, padded, atol=1e-6)


def test_word_pieces(pretrained):
    pieces = Pieces(pretrained)
    assert pieces.vocabulary == tuple(PIECES)
    found = pieces.numbers(["The films", "not  BADLY, qqq."], 24)
    spelled = [[PIECES[number] for number in row] for row in found]
    assert spelled == [
        ["[CLS]", "the", "film", "##s", "[SEP]"],
        ["[CLS]", "not", "bad", "##ly", ",", "[UNK]", ".", "[SEP]"],
    ]
    assert pieces.numbers(["The films"], 24, first=False) == [found[0][1:]]
    assert pieces.numbers(["the the the the the"], 4) == [[2, 5, 5, 3]]


def test_weights_within_a_model_for_a_task_are_found(tmp_path):
    found = read_pretrained(write_folder(tmp_path / "within", prefix="bert."))
    alone = read_pretrained(write_folder(tmp_path / "alone"))
    jax.tree.map(np.testing.assert_array_equal, found.weights, alone.weights)


def test_an_early_config_says_no_epsilon(tmp_path):
    assert read_pretrained(write_folder(tmp_path, layer_norm_eps=None)).config.epsilon == 1e-12


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        *(
            ({"model_type": other}, f"config.json: model_type is '{other}': only encoders of the type 'bert' are read")
            for other in ("roberta", "distilbert", "modernbert")
        ),
        ({"hidden_act": "relu"}, "config.json: hidden_act is 'relu'"),
        ({"model_type": None}, "config.json: has no model_type: is it the config.json of an encoder"),
        ({"num_hidden_layers": None}, "config.json: has no num_hidden_layers"),
        ({"num_hidden_layers": 3}, "model.safetensors: has no encoder.layer.2.attention.self.query.weight"),
        ({"num_attention_heads": 5}, "config.json: 5 heads of attention do not divide a width of 12"),
        ({"hidden_size": -12}, "config.json: hidden_size is -12, expected a positive number"),
        ({"hidden_size": "12"}, "config.json: hidden_size is '12', expected a positive number"),
        ({"num_hidden_layers": 10**30}, "config.json: num_hidden_layers is 1000"),
        ({"layer_norm_eps": float("nan")}, "config.json: layer_norm_eps is nan, expected a positive number"),
        ({"layer_norm_eps": float("inf")}, "config.json: layer_norm_eps is inf, expected a positive number"),
        ({"model_type": ["bert"] * 500}, "config.json: model_type is a list: only encoders"),
        ({"hidden_act": {"a": 1}}, "config.json: hidden_act is a dict: only encoders"),
        ({"vocab_size": 41}, r"word_embeddings.weight has shape \(40, 12\), config.json says \(41, 12\)"),
    ],
)
def test_another_architecture_is_refused(changes, line, tmp_path):
    with pytest.raises(InputError, match=line):
        read_pretrained(write_folder(tmp_path, **changes))


def test_bad_folders(tmp_path):
    def folder(name):
        return write_folder(tmp_path / name)

    with pytest.raises(InputError, match="none: no folder; expected one with config"):
        read_pretrained(tmp_path / "none")
    for name in ("config.json", "model.safetensors"):
        (folder(f"no {name}") / name).unlink()
        with pytest.raises(InputError, match=f"{name}: cannot be read .No such file"):
            read_pretrained(tmp_path / f"no {name}")
    damaged = folder("damaged") / "model.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-100])
    with pytest.raises(InputError, match="safetensors: is damaged or no safetensors file"):
        read_pretrained(damaged.parent)
    (damaged.parent / "config.json").write_text("{")
    with pytest.raises(InputError, match=r"json: not JSON \("):
        read_pretrained(damaged.parent)
    pickled = folder("pickled")
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    with pytest.raises(
        InputError, match=r"pytorch_model\.bin: is pickled, and could run any code .* convert it to model"
    ):
        read_pretrained(pickled)


def test_edited_weights_are_named(tmp_path):
    name = "encoder.layer.1.output.dense.weight"
    for change, line in (
        (lambda tensor: tensor.astype(np.int32), f"{name} has numbers of type int32, expected floating-point ones"),
        (lambda tensor: 1e300 * tensor.astype(float), f"{name} has values that are not finite: the file is damaged"),
        (lambda tensor: np.full_like(tensor, np.nan), f"{name} has values that are not finite: the file is damaged"),
        (lambda tensor: tensor[None], rf"{name} has shape \(1, 12, 20\), config.json says \(12, 20\)"),
    ):
        folder, tensors = write_folder(tmp_path), weights()
        save_file(tensors | {name: np.ascontiguousarray(change(tensors[name]))}, folder / "model.safetensors")
        with pytest.raises(InputError, match=line):
            read_pretrained(folder)


def test_an_edited_header_is_one_line(tmp_path):
    path = write_folder(tmp_path) / "model.safetensors"
    whole = path.read_bytes()
    size = int.from_bytes(whole[:8], "little")
    for damaged in (
        (2**60).to_bytes(8, "little") + whole[8:],
        whole[:8] + b"[" * size + whole[8 + size :],
        whole[:8] + whole[8 : 8 + size].replace(b"[40,12]", b"[99,12]") + whole[8 + size :],
        whole[:100],
        b"",
    ):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"model\.safetensors: is damaged or no safetensors file") as caught:
            read_pretrained(tmp_path)
        assert "\n" not in str(caught.value)


def test_bad_vocabularies(tmp_path):
    folder = write_folder(tmp_path)
    pretrained = read_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join([*PIECES, *(f"word{at}" for at in range(40))]))
    with pytest.raises(InputError, match="its vocabulary has 60 word pieces, the encoder 40"):
        Pieces(pretrained)
    for text in ("[" * 200_000, '{"do_lower_case": "yes"}', "[]"):
        (folder / "tokenizer_config.json").write_text(text)
        with pytest.raises(
            InputError, match=r"tokenizer_config\.json: (not JSON|do_lower_case is not there or neither)"
        ):
            Pieces(pretrained)
    (folder / "tokenizer_config.json").unlink()
    (folder / "vocab.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"vocab\.txt"):
        Pieces(pretrained)
    (folder / "tokenizer.json").write_text("[" * 200_000)
    with pytest.raises(InputError, match=r"tokenizer\.json: is damaged or of another kind"):
        Pieces(pretrained)
    (folder / "tokenizer.json").write_text(json.dumps({"version": "1.0"}))
    with pytest.raises(InputError, match=r"tokenizer\.json: is damaged or of another kind"):
        Pieces(pretrained)
    for name in ("tokenizer.json", "vocab.txt"):
        (folder / name).unlink()
    with pytest.raises(InputError, match=r"vocab\.txt"):
        Pieces(pretrained)
