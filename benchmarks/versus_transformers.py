"""Does an encoder read ten examples as the package transformers does?

  python -m benchmarks.versus_transformers --pretrained=DIR

Prints whether the word pieces are the same, and the largest difference of any number of the vectors. The package is
installed into an environment of its own. `--record=FILE` keeps its vectors, for a test that needs no such package.
`python -m benchmarks.crowd --network=bert --versus=torch` compares speeds.
"""

import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from absl import flags
from flax import nnx

from benchmarks.contestants import interpreter, run
from benchmarks.torch_crowd import WITH_ENCODERS
from experiments.common import app
from experiments.common.path_flags import define_path
from irtjax import InputError
from irtjax.networks.bert import Encoder, mean_state
from irtjax.pretrained.folder import Pretrained, read_pretrained
from irtjax.pretrained.pieces import Pieces
from irtjax.tasks.text import number_pieces, pad

_PRETRAINED = define_path("pretrained", "folder of an encoder of the BERT type", required=True)
_RECORD = define_path("record", "JSON file for the vectors of transformers")
_ENVIRONMENT = flags.DEFINE_string("environment", ".versus_torch", "folder of the virtual environment")
_PYTHON = flags.DEFINE_string("python", sys.executable, "interpreter to make that environment with")
EXAMPLES = (
    ("A deep and meaningful film .",),
    ("Hello, World!",),
    ("Un-believable: naïve café résumé 1,234.5%",),
    ("a",),
    ("it 's -lrb- not -rrb- funny , and it never was .",),
    ("日本語 text with emoji 🙂 and unknown ᚠ",),
    ("supercalifragilisticexpialidocious antidisestablishmentarianism",),
    ("Two people sit on a bench.", "Nobody sits."),
    ("A dog runs through the tall grass behind the old house.", "An animal is outside."),
    ("Rain.", "The match was played in the dry, as everyone who was there remembers well."),
)
RECORDED = 8  # numbers of each vector, from its beginning


def vectors(pretrained: Pretrained, examples: tuple[tuple[str, ...], ...]) -> tuple[list[list[int]], np.ndarray]:
    """Word pieces of examples, and the means of their states (N, H); sentences are padded to the longest of all."""
    graph, state = nnx.split(Encoder(pretrained.config, rngs=nnx.Rngs(0)))
    nnx.replace_by_pure_dict(state, jax.tree.map(jnp.asarray, pretrained.weights))
    words = [number_pieces(tuple([part] for part in sentences), pretrained) for sentences in examples]
    longest = max(int(part.lengths[0]) for parts in words for part in parts)
    same = np.arange(pretrained.config.words)

    @jax.jit
    def mean(state: nnx.State, embeddings: jax.Array, inputs: tuple[jax.Array, ...]) -> jax.Array:
        return mean_state(*nnx.merge(graph, state)(embeddings, inputs))[0]

    embeddings = jnp.asarray(pretrained.vectors)
    found = [mean(state, embeddings, tuple(jnp.asarray(pad(part, same, longest)) for part in parts)) for parts in words]
    return [np.concatenate([part.numbers for part in parts]).tolist() for parts in words], np.stack(found)


def main() -> None:
    """Compares and prints."""
    pretrained = read_pretrained(_PRETRAINED.value)
    Pieces(pretrained)
    pieces, ours = vectors(pretrained, EXAMPLES)
    python = interpreter("transformers", WITH_ENCODERS, _ENVIRONMENT.value, _PYTHON.value)
    result = run("transformers", python, {"folder": str(Path(_PRETRAINED.value).absolute()), "examples": EXAMPLES})
    if "error" in result:
        raise InputError(f"transformers: {result['error']}")
    theirs = np.array([one["mean"] for one in result["runs"]])
    same = sum(one["pieces"] == own for one, own in zip(result["runs"], pieces, strict=True))
    print(f"transformers {result['versions']['transformers']}, torch {result['versions']['torch']}")
    print(f"{same} of {len(EXAMPLES)} examples have the same word pieces")
    print(f"largest difference {np.abs(ours - theirs).max():.1e}, of numbers to {np.abs(theirs).max():.2f}")
    if _RECORD.value:
        record = {"versions": result["versions"], "mean": np.round(theirs[:, :RECORDED], 6).tolist()}
        Path(_RECORD.value).write_text(json.dumps(record | {"pieces": [one["pieces"] for one in result["runs"]]}))


if __name__ == "__main__":
    app.run(main, compiles_anew=True)
