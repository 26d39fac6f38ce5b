"""An adaptive test in a dialogue of JSON lines: questions go out, answers come in, whatever asks the subject."""

import functools
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from irtjax.errors import InputError
from irtjax.evaluation.binary_adaptive import AdaptiveTest
from irtjax.evaluation.choice import NO_ITEM
from irtjax.evaluation.replay import Replayed
from irtjax.evaluation.scaled_adaptive import ScaledAdaptiveTest
from irtjax.types import Shaped

END_OF_INPUT = "end_of_input"
ANSWERS = '{"answer": 1}, 0 for wrong, or null for no answer; or just 1, 0 or skip'
NO_ANSWER = -1
ROUNDING = 1e-12  # of what is 0
END = object()  # of the lines


def hold(
    test: AdaptiveTest | ScaledAdaptiveTest,
    item_ids: Shaped[np.ndarray, " I"],
    key: Any,
    lines: Iterable[str],
    ask: Callable[[str], None],
    complain: Callable[[str], None],
    texts: Mapping[str, str] | None = None,
) -> tuple[Replayed, dict[str, Any]]:
    """Asks item after item until the test is over or the lines end.

    Args:
        test: D = 1.
        item_ids: (I,) of its bank.
        key: of the random draws; a seed where items have grades, counts or shares.
        lines: of answers. One that is none is complained of, and the question asked again.
        ask: takes each question, a line of JSON: `item_id`, its `number` from 1, its `text` where there are texts, and
            `ability`, `ability_se` and `score` before it.
        complain: takes a line of JSON with an `error`.
        texts: of the items, by id.

    Returns:
        The test as one of one subject, and what is to be said at its end: why it `finished`, the estimates, and the
        `number` of items. An item that was asked and not answered at the end of the lines does not count.
    """
    incoming = enumerate(lines, 1)
    steps = SCALED if isinstance(test, ScaledAdaptiveTest) else BINARY
    state: Any = test.init(key)
    trace: list[Any] = []
    asked: list[tuple[int, Any]] = []
    while not (code := int(steps.reason(test, state))):
        at = int(steps.next_item(test, state))
        item = str(item_ids[at])
        question: dict[str, Any] = {"item_id": item, "number": len(trace) + 1}
        question |= {} if texts is None else {"text": texts[item]}
        understood = functools.partial(steps.answer, test, at)
        answer = _answer(json.dumps(question | estimates(state)), item, incoming, ask, complain, understood)
        if answer is END:
            break
        state = steps.update(test, state, at, answer)
        trace.append(state)
        asked.append((at, answer))
    numbers = [steps.number(test, *each) for each in asked]
    rest = test.stop.max_items - len(trace)
    found = Replayed(
        items=np.array([*(at for at, _ in asked), *[NO_ITEM] * rest])[None],
        answers=np.array([*numbers, *[steps.none] * rest])[None],
        ability=_padded(test, [each.ability for each in trace]),
        standard_error=_padded(test, [each.standard_error for each in trace]),
        score=_padded(test, [each.score for each in trace]),
        score_error=_padded(test, [each.score_error for each in trace]),
        number=np.array([len(trace)]),
        reason=np.array([code]),
    )
    reason = found.reasons()[0] or END_OF_INPUT
    end = {"finished": reason, **estimates(state), "score_error": _short(state.score_error), "number": len(trace)}
    return found, end


def estimates(state: Any) -> dict[str, float]:
    """What is known of a subject, to six digits."""
    known = {"ability": state.ability, "ability_se": state.standard_error, "score": state.score}
    return {name: _short(value) for name, value in known.items()}


def _answer(
    question: str,
    item: str,
    incoming: Iterable[tuple[int, str]],
    ask: Callable[[str], None],
    complain: Callable[[str], None],
    understood: Callable[[str, str], Any],
) -> Any:
    """The answer to a question, which is asked until there is one; `END` where the lines end."""
    ask(question)
    for number, line in incoming:
        try:
            return understood(line, item)
        except ValueError as error:
            complain(json.dumps({"error": f"line {number}: {error}"}))
            ask(question)
    return END


def answer_in(line: str, item: str) -> int:
    """The answer that a line gives to an item: 1 right, 0 wrong, -1 none.

    Raises:
        ValueError: it gives none, or to another item.
    """
    value = _value(line, item, ANSWERS)
    if value is None:
        return NO_ANSWER
    if isinstance(value, int | float) and value in (0, 1):
        return int(value)
    raise ValueError(f"has no answer, expected {ANSWERS}")


def _scaled_answer(test: ScaledAdaptiveTest, at: int, line: str, item: str) -> Any:
    """The grade, the successes or the share that a line gives to an item; None for no answer.

    Raises:
        ValueError: it gives none, or to another item.
    """
    labels = test.known.scales[at].labels
    expected = f"0 to {test.trials[at]:g}" if labels is None else f"one of {', '.join(map(str, labels))}"
    if labels is not None and line.strip() in map(str, labels):
        return line.strip()
    value = _value(line, item, f'{expected}, or null for no answer, alone or in {{"answer": ...}}')
    if value is None:
        return None
    whole = int(value) if isinstance(value, float) and value == int(value) else value
    try:
        test.read(at, whole)
    except InputError as error:
        raise ValueError(str(error)) from None
    return whole


def _value(line: str, item: str, expected: str) -> Any:
    """The answer in a line; None for no answer, () where there is none.

    Raises:
        ValueError: it is no JSON, or answers another item.
    """
    line = line.strip()
    try:
        value = json.loads(line or "{}") if line != "skip" else None
    except (ValueError, RecursionError):
        raise ValueError(f"is no JSON, expected {expected}") from None
    if isinstance(value, dict):
        given = value.get("item_id", item)
        if given != item:
            raise ValueError(f"item_id is {json.dumps(given)[:100]}, but item {json.dumps(item)} was asked")
        value = value.get("answer", ())
    return None if value == "skip" else value


def _scaled_number(test: ScaledAdaptiveTest, at: int, answer: Any) -> float:
    return np.nan if answer is None else test.read(at, answer)[0]


class Steps(NamedTuple):
    """What a dialogue asks of a test.

    Attributes:
        reason: of a test and a state.
        next_item: likewise.
        update: of a test, a state, an item and its answer.
        answer: the answer that a line gives, of a test, the position of the item, the line and the id of the item.
        number: what an answer is written down as, of a test, the position of the item and the answer.
        none: what stands for no answer.
    """

    reason: Callable[..., Any]
    next_item: Callable[..., Any]
    update: Callable[..., Any]
    answer: Callable[..., Any]
    number: Callable[..., float]
    none: float


BINARY = Steps(
    jax.jit(AdaptiveTest.reason),
    jax.jit(AdaptiveTest.next_item),
    jax.jit(AdaptiveTest.update),
    lambda test, at, line, item: answer_in(line, item),
    lambda test, at, answer: answer,
    NO_ANSWER,
)
SCALED = Steps(
    ScaledAdaptiveTest.reason,
    ScaledAdaptiveTest.next_item,
    ScaledAdaptiveTest.update,
    _scaled_answer,
    _scaled_number,
    np.nan,
)


def _padded(test: AdaptiveTest | ScaledAdaptiveTest, values: list[Any]) -> np.ndarray:
    """(1, K), NaN after the end."""
    return np.array([*map(float, values), *[np.nan] * (test.stop.max_items - len(values))])[None]


def _short(value: Any) -> float:
    return float(f"{float(value):.6g}") if abs(float(value)) > ROUNDING else 0.0
