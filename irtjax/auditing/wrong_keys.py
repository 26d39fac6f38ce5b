"""Which items have a wrong answer key? The odds that another option is the right one, or that the scored one is not."""

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import scipy.sparse
from jax.scipy.special import gammaln, logsumexp
from scipy.optimize import minimize_scalar
from scipy.special import expit

from irtjax.arguments import checks_types
from irtjax.auditing.choices import Choices, read_choices
from irtjax.errors import InputError
from irtjax.fits.result import Fit
from irtjax.responses.sparse import SparseResponses
from irtjax.responses.values import in_memory, on_scales
from irtjax.scale.tested import one_by_one
from irtjax.types import Bool, Float, Int, Shaped

NODES = 41  # of ability, over the range of the subjects
SLOPES = np.geomspace(0.2, 4, 10)  # right options have curves that rise
INTERCEPTS = np.linspace(-6, 6, 25)
SHARES = (np.arange(8) + 0.5) / 8  # of those who miss the right option, who chose the one that is scored as right
AT_A_TIME = 1024  # items: 100 MB of log-likelihoods with ten options
MOST_FOR_PRIORS = 4096  # items from which the distribution of curves is estimated
ROUNDS = 200
SETTLED = 1e-4  # change of the share of wrong keys


@checks_types
def wrong_keys(
    fit: Fit,
    choices: pd.DataFrame | Shaped[np.ndarray, "J I"] | Choices | None = None,
    key: Mapping[str, str] | pd.Series | Shaped[np.ndarray, " I"] | None = None,
) -> pd.DataFrame:
    """Evidence that the key of each item is wrong.

    An item has one right option, which is chosen with probability σ(a θ + d), a > 0. Those who miss it divide over the
    others by shares that do not depend on ability, with a Dirichlet prior. Which option it is, is unknown: the key with
    probability 1 - π, any other with equal probability. The distribution of (a, d) on a grid, π and the concentration
    of the Dirichlet are estimated from all items (EM; Dempster, Laird and Rubin 1977), abilities are those of the fit
    (tests without a key: Batchelder and Romney 1988; Bachrach et al. 2012).

    Without `choices` an item with a wrong key is answered right, so it seems, by a share w of those who miss its right
    option: w (1 - σ(a θ + d)), w uniform. That tells much less.

    An item that most fail, and nearly all of these by the same option, looks the same whether its key is wrong or it is
    a trap for all subjects: read the items before you mend them.

    Args:
        fit: of right and wrong answers, of one dimension.
        choices: the option that each subject chose, in the order of the fit, or a table by subject and item; empty or
            missing where none was. Or `Choices`, which have the key.
        key: of each item, in the order of the fit or by item id; with `choices`.

    Returns:
        One row per item in the order of the fit: `item_id`, `evidence` (the logarithm of the Bayes factor of a wrong
        key, in nats), `p_wrong_key`, and with `choices` the `key`, the likeliest other option `instead`, and what
        `share_key` and `share_instead` of the subjects with a choice chose them. `attrs["share"]` is π.

    Raises:
        InputError: the fit is not of right and wrong answers of one dimension; choices without a key, or of another
            shape or other ids; a key that is missing; more than 50 options.
    """
    if on_scales(fit.responses) or fit.ability.ndim > 1:
        raise InputError("wrong keys are looked for in a fit of right and wrong answers, of one dimension")
    ids = fit.responses.item_ids.astype(str)
    nodes, weights = _on_nodes(np.asarray(fit.ability, float), np.asarray(fit.ability_se, float))
    if choices is None:
        if key is not None:
            raise InputError("a `key` needs the `choices` of the subjects")
        found = _of_scores(one_by_one(in_memory(fit.responses)), nodes, weights)
        table = pd.DataFrame({"item_id": ids, "evidence": found.evidence, "p_wrong_key": found.probability})
    else:
        if not isinstance(choices, Choices):
            choices = read_choices(choices, key, fit.responses.subject_ids.astype(str), ids)
        chosen, right, options = choices.codes, choices.key, choices.options
        found = _of_options(chosen, right, len(options), nodes, weights)
        known = np.maximum((chosen >= 0).sum(axis=0), 1)
        table = pd.DataFrame({"item_id": ids, "evidence": found.evidence, "p_wrong_key": found.probability})
        table["key"], table["instead"] = options[right], options[found.instead]
        for name, option in (("share_key", right), ("share_instead", found.instead)):
            table[name] = (chosen == option).sum(axis=0) / known
    table.attrs["share"] = found.share
    return table


class _Found(NamedTuple):
    """By item (I,): evidence, probability, likeliest other option; and π."""

    evidence: Float[np.ndarray, " I"]
    probability: Float[np.ndarray, " I"]
    instead: Int[np.ndarray, " I"]
    share: float


def _on_nodes(
    ability: Float[np.ndarray, " J"], error: Float[np.ndarray, " J"]
) -> tuple[Float[np.ndarray, " Q"], Float[np.ndarray, "J Q"]]:
    """Nodes of ability, and the posterior of each subject on them; 0 of subjects without one."""
    known = np.isfinite(ability) & np.isfinite(error)
    low, high = (ability - 2 * error)[known].min(), (ability + 2 * error)[known].max()
    nodes = np.linspace(low, high, NODES)
    wide = np.maximum(np.where(known, error, 1.0), (high - low) / (NODES - 1) / 2)
    weights = np.exp(-0.5 * ((nodes - np.where(known, ability, 0.0)[:, None]) / wide[:, None]) ** 2)
    return nodes, np.where(known[:, None], weights / weights.sum(axis=1, keepdims=True), 0.0)


def _curves(nodes: Float[np.ndarray, " Q"]) -> tuple[jax.Array, jax.Array]:
    """Logarithms of σ and of 1 - σ at the nodes (Q, G) for each slope and intercept of the grid."""
    slope, intercept = (one.ravel() for one in np.meshgrid(SLOPES, INTERCEPTS, indexing="ij"))
    logit = jnp.asarray(slope * nodes[:, None] + intercept, jnp.float32)
    return jax.nn.log_sigmoid(logit), jax.nn.log_sigmoid(-logit)


class _Hypotheses(NamedTuple):
    """What could be right of N items, H hypotheses of each: expected subjects at the nodes, by what the curve is of.

    Attributes:
        hits: (H, Q, N) subjects who chose what is the right option by the hypothesis, or have the item right.
        misses: (H, Q, N) those who did not.
        hit: (H, Q, G) logarithm of the probability of a hit by each curve of the grid.
        miss: (H, Q, G) that of a miss.
        besides: (H, N) log-likelihood of what does not depend on the curve.
        key: (H, N) whether the hypothesis is that the key is right.
    """

    hits: Any
    misses: Any
    hit: Any
    miss: Any
    besides: Any
    key: Any

    def take(self, items: Any) -> "_Hypotheses":
        """Those of some items."""
        return self._replace(**{name: getattr(self, name)[..., items] for name in ("hits", "misses", "besides", "key")})


def _of_options(
    chosen: Int[np.ndarray, "J I"], right: Int[np.ndarray, " I"], number: int, nodes: np.ndarray, weights: np.ndarray
) -> _Found:
    """Each option may be the right one."""
    hits = np.stack([weights.T @ (chosen == k) for k in range(number)]).astype(np.float32)
    counts = np.stack([(chosen == k).sum(axis=0) for k in range(number)]).astype(np.float32)
    key = np.arange(number)[:, None] == right
    hit, miss = (jnp.broadcast_to(table, (number, *table.shape)) for table in _curves(nodes))
    concentration = _concentration(counts, key)
    besides = np.asarray(_dirichlet_multinomial(counts, concentration))
    return _odds(_Hypotheses(hits, hits.sum(axis=0, keepdims=True) - hits, hit, miss, besides, key))


def _of_scores(single: SparseResponses, nodes: np.ndarray, weights: np.ndarray) -> _Found:
    """The key is right, or it is scored as right what a share chose of those who miss the right option."""
    rising, falling = _curves(nodes)
    other = [(falling + np.log(share), jnp.log1p(-share * jnp.exp(falling))) for share in SHARES]
    hit, miss = (jnp.stack(tables) for tables in zip((rising, falling), *other, strict=True))
    shape, found = (len(hit), len(nodes), single.num_items), []
    for answer in (1, 0):
        chosen = scipy.sparse.csr_array((single.answers == answer, single.items, single.starts), single.values.shape)
        found.append(np.broadcast_to((chosen.T.astype(float) @ weights).T.astype(np.float32), shape))
    hits, misses = found
    key = np.broadcast_to(np.arange(len(hit))[:, None] == 0, (shape[0], shape[2]))
    return _odds(_Hypotheses(hits, misses, hit, miss, np.zeros(key.shape, np.float32), key))


@jax.jit
def _dirichlet_multinomial(counts: Float[Any, "K N"], concentration: Any) -> Float[jax.Array, "K N"]:
    """Log-likelihood of which of the other options were chosen, given how often another than each one was."""
    others, terms = counts.shape[0] - 1, gammaln(counts + concentration) - gammaln(concentration)
    missed, all_of_them = counts.sum(axis=0, keepdims=True) - counts, others * concentration
    return gammaln(all_of_them) - gammaln(missed + all_of_them) + terms.sum(axis=0, keepdims=True) - terms


def _concentration(counts: Float[np.ndarray, "K I"], key: Bool[np.ndarray, "K I"]) -> float:
    """Of the Dirichlet prior, by maximum likelihood if all keys are right."""

    def loss(log: float) -> float:
        return -float(np.asarray(_dirichlet_multinomial(counts, np.float32(np.exp(log))))[key].sum(dtype=float))

    return float(np.exp(minimize_scalar(loss, bounds=(-4, 4), method="bounded").x))


def _odds(data: _Hypotheses) -> _Found:
    """Evidence and probabilities, with what is common to all items estimated from them."""
    number, rows = data.key.shape[1], np.random.default_rng(0)
    some = np.sort(rows.permutation(number)[:MOST_FOR_PRIORS])
    log_weights, share = jnp.full(data.hit.shape[2], -np.log(data.hit.shape[2])), 0.02
    for _ in range(ROUNDS):
        before, total = share, jnp.zeros(data.hit.shape[2])
        wrong = 0.0
        for part in np.array_split(some, -(-len(some) // AT_A_TIME)):
            counts, not_key = _em_step(data.take(part), log_weights, share)
            total, wrong = total + counts, wrong + float(not_key)
        log_weights, share = jnp.log(total / total.sum() + 1e-12), wrong / len(some)
        if abs(share - before) < SETTLED:
            break
    found = [
        _by_item(data.take(part), log_weights) for part in np.array_split(np.arange(number), -(-number // AT_A_TIME))
    ]
    evidence, instead = (np.concatenate([np.asarray(one[k]) for one in found]) for k in (0, 1))
    odds = np.log(max(share, 1e-9)) - np.log1p(-share) + evidence
    return _Found(evidence.astype(float), expit(odds.astype(float)), instead, share)


@jax.jit
def _log_likelihoods(data: _Hypotheses) -> Float[jax.Array, "H N G"]:
    """Of each hypothesis and curve."""
    product = functools.partial(jnp.einsum, "hqn,hqg->hng")
    return product(data.hits, data.hit) + product(data.misses, data.miss) + data.besides[..., None]


@jax.jit
def _em_step(data: _Hypotheses, log_weights: Float[Any, " G"], share: Any) -> tuple[Float[jax.Array, " G"], jax.Array]:
    """How many items have each curve, and how many a wrong key, as expected under weights and share."""
    prior = jnp.where(data.key, jnp.log1p(-share), jnp.log(share / (data.key.shape[0] - 1)))
    joint = _log_likelihoods(data) + log_weights[None, None] + prior[..., None]
    posterior = jnp.exp(joint - logsumexp(joint, axis=(0, 2), keepdims=True))
    return posterior.sum(axis=(0, 1)), jnp.where(data.key, 0.0, posterior.sum(axis=2)).sum()


@jax.jit
def _by_item(data: _Hypotheses, log_weights: Float[Any, " G"]) -> tuple[Float[jax.Array, " N"], Int[jax.Array, " N"]]:
    """Logarithm of the Bayes factor of a wrong key, and the likeliest hypothesis but the key's."""
    by_hypothesis = logsumexp(_log_likelihoods(data) + log_weights[None, None], axis=2)
    others = jnp.where(data.key, -jnp.inf, by_hypothesis)
    right = jnp.where(data.key, by_hypothesis, -jnp.inf).max(axis=0)
    return logsumexp(others, axis=0) - jnp.log(data.key.shape[0] - 1.0) - right, others.argmax(axis=0)
