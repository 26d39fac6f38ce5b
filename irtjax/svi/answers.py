"""Single answers as a step of variational inference takes them: all of them, or a block that was dealt before.

Blocks are dealt once and drawn one at a time, each as likely as another. A sum over the drawn block, times the number
of blocks, is then on average the sum over all answers, whatever the sizes of the blocks.
"""

import operator
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
import numpyro
import scipy.sparse

from irtjax.kernels.answers import Answers, Rows, answers_at_once
from irtjax.responses.compressed_rows import rows_of
from irtjax.responses.sparse import SparseResponses
from irtjax.types import AnyArray, Float, Int

WIDTHS = tuple(2**power for power in range(2, 9))  # of rows of answers
KEYS_AT_ONCE = 2**16  # of a side, that are written to rows
OF_A_ROW = 2  # answers in the time of which a row is begun


class Dealt(NamedTuple):
    """Answers in G blocks, along the first axis of each array.

    Attributes:
        answers: of each block.
        subjects: (G, n) those of each block, whose places number them in its answers, and -1 behind the last; None
            where each block has answers of all subjects.
    """

    answers: Answers
    subjects: AnyArray | None


class Block(NamedTuple):
    """What a step takes.

    Attributes:
        answers: of the step.
        subjects: (n,) as in `Dealt`; None for all.
        number: of blocks that it stands for.
    """

    answers: Answers
    subjects: AnyArray | None
    number: int


def dealt(responses: SparseResponses, subject_blocks: int = 1, answer_blocks: int = 1, seed: int = 0) -> Dealt:
    """Answers in blocks of whole subjects, in blocks of answers, or in one block of all.

    Subjects are dealt in the order of how much they answered, chance deciding between equals and who gets whom: so all
    blocks have nearly as many subjects, and nearly as many answers.

    Args:
        responses: right and wrong answers.
        subject_blocks: in how many blocks of subjects.
        answer_blocks: in how many blocks of answers; one of the two is 1.
        seed: of chance.
    """
    rng = np.random.default_rng(seed)
    if subject_blocks > 1:
        hands = _hands(np.diff(responses.starts), subject_blocks, rng)
        subjects = np.full((subject_blocks, len(hands[0])), -1, np.int32)
        for places, hand in zip(subjects, hands, strict=True):
            places[: len(hand)] = hand
        return Dealt(_in_rows([_matrix(responses, *rows_of(responses.starts, hand)) for hand in hands]), subjects)
    if answer_blocks > 1:
        order = rng.permutation(responses.num_answers)
        parts = [np.sort(order[g::answer_blocks]) for g in range(answer_blocks)]
        blocks = [_matrix(responses, np.searchsorted(part, responses.starts), part) for part in parts]
        return Dealt(_in_rows(blocks), None)
    return Dealt(_in_rows([_matrix(responses, responses.starts, slice(None))]), None)


def drawn(responses: Any) -> Block | None:
    """The block of a step, drawn by a plate of NumPyro, so that guide and model have the same; None of a matrix."""
    if not isinstance(responses, Dealt):
        return None
    number = len(responses.answers.by_item.keys)
    if number == 1:
        found = jax.tree.map(lambda leaf: leaf.reshape(leaf.shape[1:]), responses)
    else:
        with numpyro.plate("blocks", number, subsample_size=1) as index:
            found = jax.tree.map(lambda leaf: leaf[index[0]], responses)
    return Block(found.answers, found.subjects, number)


def over_blocks(
    function: Callable, theta: Float[np.ndarray, " J"], items: Any, responses: Dealt
) -> Iterator[tuple[Any, Any]]:
    """What `function(theta, *items, answers)` is of each block, and the subjects of the block.

    Args:
        function: jitted.
        theta: abilities of all subjects.
        items: arrays (I,).
        responses: on the devices.
    """
    for g in range(len(responses.answers.by_item.keys)):
        block = jax.tree.map(operator.itemgetter(g), responses)
        subjects = slice(None) if block.subjects is None else np.asarray(block.subjects)
        yield function(theta[subjects].astype(np.float32), *items, block.answers), subjects


def _hands(lengths: Int[np.ndarray, " J"], number: int, rng: np.random.Generator) -> list[Int[np.ndarray, " n"]]:
    """Subjects in so many blocks, the first of them one subject larger where that does not come out even."""
    order = rng.permutation(len(lengths))
    order = order[np.argsort(-lengths[order], kind="stable")]
    rounds, rest = divmod(len(order), number)
    hands = rng.permuted(order[: rounds * number].reshape(rounds, number), axis=1)
    last = order[rounds * number :]
    return [np.append(hands[:, g], last[g : g + 1]) if g < rest else hands[:, g] for g in range(number)]


def _matrix(
    responses: SparseResponses, starts: Int[np.ndarray, " ends"], at: Int[np.ndarray, " N"] | slice
) -> scipy.sparse.csr_array:
    """Some of the answers, as the last two bits of their codes, and where those of each of some subjects begin."""
    codes = (np.asarray(responses.answers)[at] + np.int8(2)).astype(np.int8)
    number = np.int32 if len(codes) < 2**31 else np.int64
    return scipy.sparse.csr_array(
        (codes, responses.items[at], starts.astype(number)), (len(starts) - 1, responses.num_items)
    )


def _in_rows(blocks: list[scipy.sparse.csr_array]) -> Answers:
    """Answers of several blocks in rows, of one shape for all blocks."""
    return Answers(_side(blocks), _side([block.tocsc() for block in blocks]))


def _side(blocks: list[scipy.sparse.csr_array | scipy.sparse.csc_array]) -> Rows:
    """Rows by subject of compressed rows, or by item of compressed columns."""
    lengths = [np.diff(block.indptr) for block in blocks]
    work = {width: sum((-(-each // width)).sum() for each in lengths) * (width + OF_A_ROW) for width in WIDTHS}
    width = min(work, key=work.__getitem__)
    most = max(int((-(-each // width)).sum()) for each in lengths)
    times = max(1, -(-most * width // answers_at_once()))
    shape = (len(blocks), times, -(-most // times))
    codes = np.zeros((len(blocks), shape[1] * shape[2] * width), np.int32)
    keys = np.empty((len(blocks), shape[1] * shape[2]), np.int32)
    for g, (block, each) in enumerate(zip(blocks, lengths, strict=True)):
        number = -(-each // width)
        ends = np.cumsum(number)
        keys[g, : ends[-1]] = np.repeat(np.arange(len(each), dtype=np.int32), number)
        keys[g, ends[-1] :] = len(each) - 1
        # an answer is further on by the padding of the keys before its own
        before = width * (ends - number) - block.indptr[:-1]
        for first in range(0, len(each), KEYS_AT_ONCE):
            some = slice(first, first + KEYS_AT_ONCE)
            begin, end = block.indptr[first], block.indptr[min(first + KEYS_AT_ONCE, len(each))]
            at = np.arange(begin, end) + np.repeat(before[some], each[some])
            codes[g, at] = 4 * block.indices[begin:end].astype(np.int32) + block.data[begin:end]
    return Rows(codes.reshape(*shape, width), keys.reshape(shape))
