"""Single answers as a step of variational inference takes them: all of them, or a block that was dealt before.

Blocks are dealt once and drawn one at a time, each as likely as another. A sum over the drawn block, times the number
of blocks, is then on average the sum over all answers, whatever the sizes of the blocks.
"""

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import numpyro
import scipy.sparse

from irtjax.kernels.answers import Answers
from irtjax.kernels.one_pass_answers import ScaledAnswers
from irtjax.kernels.sharding import BY_SUBJECT, place
from irtjax.processes import fetch
from irtjax.responses.compressed_rows import rows_of
from irtjax.responses.scaled import smallest
from irtjax.responses.sparse import SparseResponses
from irtjax.svi.rows import of_codes, of_responses
from irtjax.types import AnyArray, Float, Int


class Dealt(NamedTuple):
    """Answers in G blocks, along the first axis of each array; those of devices one after the other along the second.

    Attributes:
        answers: of each block.
        subjects: (G, n) those of each block, whose places on their device number them in its answers, and -1 where
            there is none; None where each block has answers of all subjects, as many of them on each device.
    """

    answers: Answers | ScaledAnswers
    subjects: AnyArray | None


class Block(NamedTuple):
    """What a step takes.

    Attributes:
        answers: of the step.
        subjects: (n,) as in `Dealt`; None for all.
        number: of blocks that it stands for.
    """

    answers: Answers | ScaledAnswers
    subjects: AnyArray | None
    number: int


def dealt(
    responses: SparseResponses,
    subject_blocks: int = 1,
    answer_blocks: int = 1,
    seed: int = 0,
    devices: int = 1,
    own: Sequence[int] = (0,),
) -> Dealt:
    """Answers in blocks of whole subjects, in blocks of answers, or in one block of all.

    Subjects are dealt in the order of how much they answered, chance deciding between equals and who gets whom: so all
    blocks have nearly as many subjects, and nearly as many answers. Of several devices each has as many subjects, the
    last of them fewer, and a part of each block.

    Args:
        responses: of all subjects.
        subject_blocks: in how many blocks of subjects; no more than a device has.
        answer_blocks: in how many blocks of answers; one of the two is 1.
        seed: of chance.
        devices: over which subjects are spread.
        own: the numbers of some of these, to which the answers are dealt.
    """
    hands = [_hand(responses, subject_blocks, answer_blocks, seed, devices, device) for device in own]
    blocks = [block for hand in hands for block in hand[0]]
    found: Answers | ScaledAnswers
    if responses.scales is None:
        found = of_codes(blocks)
    else:
        leaves = (responses.answers,) if responses.trials is None else (responses.answers, responses.trials)
        found = of_responses(blocks, tuple(smallest(np.asarray(leaf)) for leaf in leaves))

    def side_by_side(leaf: np.ndarray) -> np.ndarray:
        """Devices along the second axis."""
        of_devices = leaf.reshape(len(own), -1, *leaf.shape[1:])
        return of_devices.swapaxes(0, 1).reshape(of_devices.shape[1], -1, *leaf.shape[2:])

    subjects = None if subject_blocks == 1 else np.concatenate([hand[1] for hand in hands], axis=1)
    return Dealt(jax.tree.map(side_by_side, found), subjects)


def _hand(
    responses: SparseResponses, subject_blocks: int, answer_blocks: int, seed: int, devices: int, device: int
) -> tuple[list[scipy.sparse.csr_array], Any]:
    """The blocks of a device, and the subjects of each (G, n)."""
    rng = np.random.default_rng([seed, device])
    each = -(-responses.num_subjects // devices)
    ends = np.minimum(np.arange(device * each, (device + 1) * each + 1), responses.num_subjects)
    starts = responses.starts[ends]  # behind the last subject there are some without answers
    begin, end = starts[0], starts[-1]
    if subject_blocks > 1:
        hands = _hands(np.diff(starts), subject_blocks, rng)
        subjects = np.full((subject_blocks, len(hands[0])), -1, np.int32)
        for places, hand in zip(subjects, hands, strict=True):
            found = hand + device * each
            places[: len(hand)] = np.where(found < responses.num_subjects, found, -1)
        return [_matrix(responses, *rows_of(starts, hand)) for hand in hands], subjects
    if answer_blocks > 1:
        order = begin + rng.permutation(end - begin)
        # as one device would deal on: blocks of all devices are of equal size
        parts = [np.sort(order[(g - begin) % answer_blocks :: answer_blocks]) for g in range(answer_blocks)]
        return [_matrix(responses, np.searchsorted(part, starts), part) for part in parts], None
    return [_matrix(responses, starts - begin, slice(begin, end))], None


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
    function: Callable,
    theta: Float[np.ndarray, " J"],
    items: Any,
    responses: Dealt,
    mesh: jax.sharding.Mesh | None = None,
) -> Iterator[tuple[Any, Any]]:
    """What `function(theta, *items, answers)` is of each block, and the subjects of the block, -1 where there is none.

    Args:
        function: jitted; it takes the mesh, too, by name.
        theta: abilities of all subjects.
        items: arrays (I,).
        responses: on the devices.
        mesh: of these.
    """
    devices = 1 if mesh is None else mesh.size
    everyone = np.arange(devices * -(-len(theta) // devices))
    everyone[len(theta) :] = -1
    for g in range(len(responses.answers.by_item.keys)):
        block = jax.tree.map(operator.itemgetter(g), responses)
        subjects = everyone if block.subjects is None else fetch(block.subjects)
        placed = place(theta[subjects].astype(np.float32), mesh, BY_SUBJECT)
        yield function(placed, *items, block.answers, mesh=mesh), subjects


def sums_of_subjects(
    parts: Sequence[tuple[Float[np.ndarray, " n"], Int[np.ndarray, " n"]]], number: int
) -> Float[np.ndarray, " J"]:
    """Sums over blocks of what each of so many subjects has there; of -1 nothing."""
    total = np.zeros(number)
    for found, subjects in parts:
        total[subjects[subjects >= 0]] += found[subjects >= 0]  # a subject is once in a block
    return total


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
    """Some of the answers, and where those of each of some subjects begin.

    The entries are the last two bits of the codes of right and wrong answers; of others, where they are.
    """
    number = np.int32 if responses.num_answers < 2**31 else np.int64
    entries: np.ndarray
    if responses.scales is None:
        entries = (np.asarray(responses.answers)[at] + np.int8(2)).astype(np.int8)
    else:
        entries = np.arange(responses.num_answers, dtype=number)[at]
    return scipy.sparse.csr_array(
        (entries, responses.items[at], starts.astype(number)), (len(starts) - 1, responses.num_items)
    )
