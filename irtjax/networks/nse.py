"""Neural semantic encoders."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx

from irtjax.networks.layers import Dense, dropout, matmul, only_active, split_key, width_mask
from irtjax.networks.recurrent import Lstm, cell
from irtjax.networks.sizes import Sentences, Sizes
from irtjax.networks.words import Words


class States(NamedTuple):
    """What reading a sentence carries from word to word: memory (B, L, K), and h and c (B, K) of LSTM_w."""

    memory: jax.Array
    hidden: jax.Array
    carried: jax.Array


class NseClassifier(nnx.Module):
    r"""Neural semantic encoder (Munkhdalai and Yu 2017): a sentence is read into a memory of one slot per word.

    The memory :math:`M_0 \in R^{K \times L}` starts as the (projected) words; at word t

    .. math::
        o_t &= LSTM_r(x_t) \\
        z_t &= softmax(o_t' M_{t-1}), \qquad m_t = z_t' M_{t-1} \\
        c_t &= MLP(o_t, m_t) = relu(W_c [o_t; m_t] + b_c) \\
        h_t &= LSTM_w(c_t) \\
        M_t &= M_{t-1} (1 - (z_t \otimes e_k)') + (h_t \otimes e_l)(z_t \otimes e_k)'

    where e are vectors of ones: slot l becomes (1 - z_l) M_l + z_l h. Here the memory is (B, L, K). z is 0 at padding,
    which is therefore neither attended to nor written, and reading ends with the last word. LSTM_r never sees the
    memory, so all o_t are computed first. K, the units of projection, LSTMs and memory, is `width`.

    One sentence, by the last h: logits = V h_L + c. A pair, read by the same weights into a memory each, by the
    features of Mou et al. (2016): u = relu(T [h; h'; h - h'; h ⊙ h'] + d), logits = V u + c.
    Dropout is applied to the words and to the last h (or u).
    """

    def __init__(self, sizes: Sizes[Sentences], active: jax.Array | int, *, rngs: nnx.Rngs):
        width, (dimension, num_sentences) = sizes.width, sizes.inputs
        self.dropout = sizes.dropout
        self.words = Words(dimension, width, rngs=rngs)
        self.read = Lstm(width, width, rngs=rngs)
        self.compose = Dense(2 * width, width, rngs=rngs)
        self.write = Lstm(width, width, rngs=rngs)
        self.layers = nnx.List([Dense(4 * width, width, rngs=rngs)] if num_sentences > 1 else [])
        self.out = Dense(width, sizes.num_classes, rngs=rngs)
        self.mask = width_mask(width, active)

    def __call__(self, embeddings: jax.Array, inputs: tuple[jax.Array, ...], key: jax.Array | None = None) -> jax.Array:
        """(V, D) vectors and (B, L) word numbers of each sentence -> (B, C) logits."""
        last_key, *keys = split_key(key, 1 + len(inputs))
        last = [self.encode(embeddings, *pair) for pair in zip(inputs, keys, strict=True)]
        u = last[0]
        for layer in self.layers:
            premise, hypothesis = last
            pair = jnp.concatenate([premise, hypothesis, premise - hypothesis, premise * hypothesis], axis=-1)
            u = only_active(self.mask, nnx.relu(layer(pair)))
        return self.out(dropout(u, self.dropout, last_key))

    def encode(self, embeddings: jax.Array, sentence: jax.Array, key: jax.Array | None) -> jax.Array:
        """The last h of a sentence, (B, K)."""
        x, present = self.words(embeddings, sentence, self.mask)
        x = dropout(x, self.dropout, key)
        o = self.read(x, present, self.mask)
        width = x.shape[-1]
        # W_c [o; m] = W_o o + W_m m: what does not depend on the memory is multiplied outside the loop
        from_o = matmul(o, self.compose.kernel[:width]) + self.compose.bias[...][None, None]
        from_m, recurrent = self.compose.kernel[width:], self.write.masked_recurrent(self.mask)
        nowhere = jnp.where(present.T, 0, -jnp.inf).astype(x.dtype)

        def step(carry: States, at: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[States, None]:
            memory, hidden, carried = carry
            o, from_o, present = at
            scores = jnp.einsum("bk,blk->bl", o, memory) + nowhere
            z = jax.nn.softmax(scores, axis=-1)
            m = jnp.einsum("bl,blk->bk", z, memory)
            c = only_active(self.mask, nnx.relu(from_o + matmul(m, from_m)))
            new = cell(self.write.input(c) + matmul(hidden, recurrent), carried)
            new_hidden = only_active(self.mask, new.hidden)
            written = memory + z[:, :, None] * (new_hidden[:, None] - memory)
            after = States(written, new_hidden, new.memory)
            keep = functools.partial(_where_example, present)
            return jax.tree.map(keep, after, carry), None

        zero = jnp.zeros(x.shape[1:], x.dtype)
        last, _ = jax.lax.scan(step, States(x.transpose(1, 0, 2), zero, zero), (o, from_o, present))
        return last.hidden


def _where_example(condition: jax.Array, new: jax.Array, old: jax.Array) -> jax.Array:
    """`new` (B, ...) for examples where the condition (B,) holds, else `old`."""
    return jnp.where(condition.reshape(-1, *[1] * (new.ndim - 1)), new, old)
