"""Enhanced LSTM for natural language inference."""

import jax
import jax.numpy as jnp
from flax import nnx

from irtjax.networks.layers import Dense, dropout, only_active, split_key, width_mask
from irtjax.networks.recurrent import BiLstm
from irtjax.networks.sizes import Sentences, Sizes
from irtjax.networks.words import Words, max_over_time, mean_over_time, where_present


class EsimClassifier(nnx.Module):
    r"""ESIM, sequential model (Chen et al. 2017): two sentences aligned word by word. A pair only.

    .. math::
        \bar a_i &= BiLSTM(a, i), \quad \bar b_j = BiLSTM(b, j), \qquad e_{ij} = \bar a_i' \bar b_j \\
        \tilde a_i &= \sum_j \frac{\exp e_{ij}}{\sum_k \exp e_{ik}} \bar b_j, \qquad
        \tilde b_j = \sum_i \frac{\exp e_{ij}}{\sum_k \exp e_{kj}} \bar a_i \\
        m_a &= [\bar a; \tilde a; \bar a - \tilde a; \bar a \odot \tilde a], \\
        m_b &= [\bar b; \tilde b; \bar b - \tilde b; \bar b \odot \tilde b] \\
        v_{a,i} &= BiLSTM_c(F(m_a), i), \quad v_{b,j} = BiLSTM_c(F(m_b), j), \qquad F(m) = relu(W_F m + b_F) \\
        v &= [mean_i v_a; max_i v_a; mean_j v_b; max_j v_b], \qquad logits = V \tanh(T v + d) + c

    Padding takes part in no sum and no maximum. The same weights read both sentences. The word projection, an LSTM in
    one direction, F and the tanh layer have `width` units each. Dropout is applied to the inputs of both BiLSTMs and of
    both last layers.
    """

    def __init__(self, sizes: Sizes[Sentences], active: jax.Array | int, *, rngs: nnx.Rngs):
        width, self.dropout = sizes.width, sizes.dropout
        self.words = Words(sizes.inputs.dimension, width, rngs=rngs)
        self.encoder = BiLstm(width, width, rngs=rngs)
        self.local = Dense(8 * width, width, rngs=rngs)
        self.composition = BiLstm(width, width, rngs=rngs)
        self.hidden = Dense(8 * width, width, rngs=rngs)
        self.out = Dense(width, sizes.num_classes, rngs=rngs)
        self.mask = width_mask(width, active)

    def __call__(
        self, embeddings: jax.Array, inputs: tuple[jax.Array, jax.Array], key: jax.Array | None = None
    ) -> jax.Array:
        """(V, D) vectors, (B, L) premises and (B, L') hypotheses -> (B, C) logits."""
        pooled_key, hidden_key, *keys = split_key(key, 6)
        (a, in_a), (b, in_b) = (self.encode(embeddings, *pair) for pair in zip(inputs, keys[:2], strict=True))
        aligned_a, aligned_b = align(a, b, in_a, in_b)
        pooled = [*self.compose(a, aligned_a, in_a, keys[2]), *self.compose(b, aligned_b, in_b, keys[3])]
        v = dropout(jnp.concatenate(pooled, axis=-1), self.dropout, pooled_key)
        hidden = only_active(self.mask, jnp.tanh(self.hidden(v)))
        return self.out(dropout(hidden, self.dropout, hidden_key))

    def encode(self, embeddings: jax.Array, sentence: jax.Array, key: jax.Array | None) -> tuple[jax.Array, jax.Array]:
        """(L, B, 2H) states of the words of a sentence, and (L, B) where there are words."""
        x, present = self.words(embeddings, sentence, self.mask)
        return self.encoder(dropout(x, self.dropout, key), present, self.mask), present

    def compose(
        self, states: jax.Array, aligned: jax.Array, present: jax.Array, key: jax.Array | None
    ) -> tuple[jax.Array, jax.Array]:
        """Mean and maximum over words of the composed local inference, (B, 2H) each."""
        m = jnp.concatenate([states, aligned, states - aligned, states * aligned], axis=-1)
        local = dropout(only_active(self.mask, nnx.relu(self.local(m))), self.dropout, key)
        v = self.composition(local, present, self.mask)
        return mean_over_time(v, present), max_over_time(v, present)


def align(a: jax.Array, b: jax.Array, in_a: jax.Array, in_b: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Each sentence's words aligned with the other sentence: (L, B, K) and (L', B, K) -> ã (L, B, K), b̃ (L', B, K)."""
    e = jnp.einsum("ibk,jbk->bij", a, b)
    over_b = jax.nn.softmax(jnp.where(in_b.T[:, None, :], e, -jnp.inf), axis=2)
    over_a = jax.nn.softmax(jnp.where(in_a.T[:, :, None], e, -jnp.inf), axis=1)
    # padding has a state too, carried there from the last word: its weight is exactly 0, and its alignment is dropped
    aligned_a = where_present(in_a, jnp.einsum("bij,jbk->ibk", over_b, b))
    return aligned_a, where_present(in_b, jnp.einsum("bij,ibk->jbk", over_a, a))
