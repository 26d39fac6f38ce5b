"""Encoders of the BERT type, with a new head: fine-tuned from weights that others have trained."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from irtjax.kernels.formulation import for_accelerator
from irtjax.networks.layers import Dense, along_last, dropout, matmul, only_active, split_key, width_mask
from irtjax.networks.sizes import Encoded, Sizes
from irtjax.pretrained.folder import BertConfig
from irtjax.tasks.task import PADDING

DEVIATION = 0.02  # of initial weights that nobody has trained
NEVER = -1e30  # a score of attention to padding


class BertClassifier(nnx.Module):
    """logits = V tanh(T u + d) + c, with u the mean over the word pieces of an example of their states in `Encoder`.

    A pair of sentences is read as one. The tanh layer has `width` units; it and the logits begin from random weights.
    Dropout is that of the encoder, and applied before both layers of the head too.
    """

    def __init__(self, sizes: Sizes[Encoded], active: jax.Array | int, *, rngs: nnx.Rngs):
        config, self.dropout = sizes.inputs.config, sizes.dropout
        self.encoder = Encoder(config, rngs=rngs)
        self.hidden = Dense(config.width, sizes.width, rngs=rngs)
        self.out = Dense(sizes.width, sizes.num_classes, rngs=rngs)
        self.mask = width_mask(sizes.width, active)

    def __call__(self, embeddings: jax.Array, inputs: tuple[jax.Array, ...], key: jax.Array | None = None) -> jax.Array:
        """(V, H) vectors of word pieces and (B, L) numbers, as `Encoder` reads them -> (B, C) logits."""
        encoder_key, pooled_key, hidden_key = split_key(key, 3)
        u = mean_state(*self.encoder(embeddings, inputs, self.dropout, encoder_key))
        hidden = only_active(self.mask, jnp.tanh(self.hidden(dropout(u, self.dropout, pooled_key))))
        return self.out(dropout(hidden, self.dropout, hidden_key))


class Encoder(nnx.Module):
    r"""The encoder of BERT (Devlin et al. 2019), K layers of self-attention (Vaswani et al. 2017).

    .. math::
        x_t &= LN(e_t + p_t + s_t), \qquad q, k, v = W_q x, W_k x, W_v x + biases \\
        a_t &= \sum_u \frac{\exp(q_t' k_u / \sqrt{d})}{\sum_w \exp(q_t' k_w / \sqrt{d})} v_u
            \quad \text{in each head, of } d \text{ units} \\
        y &= LN(x + W_o a + c_o), \qquad x \leftarrow LN(y + W_2 \, gelu(W_1 y + c_1) + c_2)

    with vectors e of word pieces, p of positions and s of the first or second sentence. Padding takes part in no sum,
    wherever it stands, and counts as no position: two padded sentences side by side are read as if there was none, and
    as a pair that is packed into one row (`irtjax.tasks.pairs`).
    Dropout is applied to x, to the weights of attention, and to both sums before their norms.
    """

    def __init__(self, config: BertConfig, *, rngs: nnx.Rngs):
        self.config = config
        width, draw = config.width, nnx.initializers.normal(DEVIATION)
        self.positions = nnx.Param(draw(rngs.params(), (config.positions, width)))
        self.kinds = nnx.Param(draw(rngs.params(), (config.kinds, width)))
        self.norm = Norm(width)
        self.layers = nnx.List([Layer(config, rngs=rngs) for _ in range(config.layers)])

    def __call__(
        self, embeddings: jax.Array, inputs: tuple[jax.Array, ...], rate: float = 0.0, key: jax.Array | None = None
    ) -> tuple[jax.Array, jax.Array]:
        """(V, H) vectors and (B, L) numbers of each sentence -> (B, L, H) states, and (B, L) where there are words.

        A number of V or more is that of a word piece of the second sentence, plus V.
        """
        config, first_key, layers_key = self.config, *split_key(key, 2)
        pieces = jnp.concatenate([sentence.astype(jnp.int32) for sentence in inputs], axis=1)
        raised = pieces >= config.words  # in the second sentence of a pair that is packed
        second = raised | np.repeat(np.arange(len(inputs)) > 0, [part.shape[1] for part in inputs])[None]
        present = pieces != PADDING
        position = jnp.maximum(jnp.cumsum(present, axis=1) - 1, 0)
        number = jnp.where(raised, pieces - config.words, pieces)
        x = jnp.asarray(embeddings).at[number].get(mode="clip") + self.positions[...].at[position].get(mode="clip")
        of_first, of_second = (along_last(self.kinds[min(at, config.kinds - 1)], x) for at in range(2))
        x = x + jnp.where(second[..., None], of_second, of_first)
        x = dropout(normalise(x, self.norm.scale[...], self.norm.bias[...], config.epsilon), rate, first_key)

        def layer(x: jax.Array, one: tuple[dict, jax.Array | None]) -> tuple[jax.Array, None]:
            weights, layer_key = one
            return _layer(config, weights, x, present, rate, layer_key), None

        keys = split_key(layers_key, config.layers)
        turns = [(nnx.to_pure_dict(nnx.state(one, nnx.Param)), own) for one, own in zip(self.layers, keys, strict=True)]
        if for_accelerator():  # a loop: written out, each layer would be compiled
            return jax.lax.scan(layer, x, jax.tree.map(lambda *leaves: jnp.stack(leaves), *turns))[0], present
        for turn in turns:
            x, _ = layer(x, turn)
        return x, present


def mean_state(states: jax.Array, present: jax.Array) -> jax.Array:
    """Mean over the word pieces of an example: (B, L, H) and (B, L) -> (B, H)."""
    count = present.sum(1).astype(states.dtype)
    return jnp.where(present[..., None], states, 0).sum(1) / count[:, None]


def normalise(x: jax.Array, scale: jax.Array, bias: jax.Array, epsilon: float) -> jax.Array:
    """LN(x) = scale · (x - mean) / √(variance + ε) + bias, over the last axis (Ba, Kiros and Hinton 2016)."""
    centred = x - x.mean(-1, keepdims=True)
    spread = jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + epsilon)
    return centred * spread * along_last(scale, x) + along_last(bias, x)


def gelu(x: jax.Array) -> jax.Array:
    """GELU, x Φ(x), with Φ the normal distribution function (Hendrycks and Gimpel 2016).

    By erf, as in PyTorch; `jax.nn.gelu` is by erfc, which takes longer on a CPU.
    """
    return x * (0.5 + 0.5 * jax.lax.erf(x * 0.5**0.5))


def _layer(
    config: BertConfig, weights: dict, x: jax.Array, present: jax.Array, rate: float, key: jax.Array | None
) -> jax.Array:
    """One layer of `Encoder`: (B, L, H) -> (B, L, H)."""
    attention_key, attended_key, outer_key = split_key(key, 3)
    by_head = (*x.shape[:2], config.heads, config.width // config.heads)
    # split, not sliced: the gradient of three slices would be three arrays as large as the whole
    q, k, v = (part.reshape(by_head) for part in jnp.split(_dense(weights["attention"], x), 3, axis=-1))
    scores = jnp.einsum("bthd,buhd->bhtu", q, k) / by_head[-1] ** 0.5
    shares = jax.nn.softmax(jnp.where(present[:, None, None], scores, NEVER), axis=-1)
    a = jnp.einsum("bhtu,buhd->bthd", dropout(shares, rate, attention_key), v).reshape(x.shape)
    attended = dropout(_dense(weights["attended"], a), rate, attended_key)
    y = normalise(x + attended, **weights["attended_norm"], epsilon=config.epsilon)
    inner = gelu(_dense(weights["inner"], y))
    outer = dropout(_dense(weights["outer"], inner), rate, outer_key)
    return normalise(y + outer, **weights["outer_norm"], epsilon=config.epsilon)


def _dense(weights: dict, x: jax.Array) -> jax.Array:
    kernel = weights["kernel"]
    # narrow side first: the gradient of a kernel in the other order takes a quarter longer on a CPU (`layers.matmul`)
    y = matmul(x, kernel if x.shape[-1] == kernel.shape[0] else kernel.T)
    return y + along_last(weights["bias"], y)


class Layer(nnx.Module):
    """Weights of one layer. Not part of a stack of all layers, which a step on a CPU would copy apart and together."""

    def __init__(self, config: BertConfig, *, rngs: nnx.Rngs):
        width, inner = config.width, config.inner
        self.attention = Affine(width, 3 * width, rngs=rngs)
        self.attended = Affine(width, width, rngs=rngs)
        self.attended_norm = Norm(width)
        self.inner = Affine(width, inner, rngs=rngs)
        self.outer = Affine(inner, width, rngs=rngs)
        self.outer_norm = Norm(width)


class Affine(nnx.Module):
    """Kernel and bias of a dense layer, as BERT draws them; the narrow side of the kernel is first (`_dense`)."""

    def __init__(self, num_inputs: int, num_outputs: int, *, rngs: nnx.Rngs):
        shape = sorted((num_inputs, num_outputs))
        self.kernel = nnx.Param(nnx.initializers.normal(DEVIATION)(rngs.params(), shape))
        self.bias = nnx.Param(jnp.zeros(num_outputs))


class Norm(nnx.Module):
    """Scale and bias of `normalise`."""

    def __init__(self, width: int):
        self.scale = nnx.Param(jnp.ones(width))
        self.bias = nnx.Param(jnp.zeros(width))
