"""An adaptive test in a dialogue of JSON lines: questions go out, answers come in, whatever asks the subject."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import numpy as np

from irtjax.evaluation.adaptive import AdaptiveTest, State
from irtjax.evaluation.replay import Replayed
from irtjax.types import Shaped

END_OF_INPUT = "end_of_input"
ANSWERS = '{"answer": 1}, 0 for wrong, or null for no answer; or just 1, 0 or skip'
NO_ANSWER = -1

_next_item = jax.jit(AdaptiveTest.next_item)
_update = jax.jit(AdaptiveTest.update)
_reason = jax.jit(AdaptiveTest.reason)


def hold(
    test: AdaptiveTest,
    item_ids: Shaped[np.ndarray, " I"],
    key: jax.Array,
    lines: Iterable[str],
    ask: Callable[[str], None],
    complain: Callable[[str], None],
    texts: Mapping[str, str] | None = None,
) -> tuple[Replayed, dict[str, Any]]:
    """Asks item after item until the test is over or the lines end.

    Args:
        test: D = 1.
        item_ids: (I,) of its bank.
        key: of the random draws.
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
    state = test.init(key)
    trace: list[State] = []
    while not (code := int(_reason(test, state))):
        at = int(_next_item(test, state))
        item = str(item_ids[at])
        question: dict[str, Any] = {"item_id": item, "number": len(trace) + 1}
        question |= {} if texts is None else {"text": texts[item]}
        answer = _answer(json.dumps(question | estimates(state)), item, incoming, ask, complain)
        if answer is None:
            break
        state = _update(test, state, at, answer)
        trace.append(state)
    found = Replayed(
        items=np.asarray(state.items)[None],
        answers=np.asarray(state.answers)[None],
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


def estimates(state: State) -> dict[str, float]:
    """What is known of a subject, to six digits."""
    known = {"ability": state.ability, "ability_se": state.standard_error, "score": state.score}
    return {name: _short(value) for name, value in known.items()}


def _answer(
    question: str,
    item: str,
    incoming: Iterable[tuple[int, str]],
    ask: Callable[[str], None],
    complain: Callable[[str], None],
) -> int | None:
    """The answer to a question, which is asked until there is one; None where the lines end."""
    ask(question)
    for number, line in incoming:
        try:
            return answer_in(line, item)
        except ValueError as error:
            complain(json.dumps({"error": f"line {number}: {error}"}))
            ask(question)
    return None


def answer_in(line: str, item: str) -> int:
    """The answer that a line gives to an item: 1 right, 0 wrong, -1 none.

    Raises:
        ValueError: it gives none, or to another item.
    """
    line = line.strip()
    try:
        value = json.loads(line or "{}") if line != "skip" else None
    except (ValueError, RecursionError):
        raise ValueError(f"is no JSON, expected {ANSWERS}") from None
    if isinstance(value, dict):
        given = value.get("item_id", item)
        if given != item:
            raise ValueError(f"item_id is {json.dumps(given)[:100]}, but item {json.dumps(item)} was asked")
        value = value.get("answer", ())
    if value is None or value == "skip":
        return NO_ANSWER
    if isinstance(value, int | float) and value in (0, 1):
        return int(value)
    raise ValueError(f"has no answer, expected {ANSWERS}")


def _padded(test: AdaptiveTest, values: list[Any]) -> np.ndarray:
    """(1, K), NaN after the end."""
    return np.array([*map(float, values), *[np.nan] * (test.stop.max_items - len(values))])[None]


def _short(value: Any) -> float:
    return float(f"{float(value):.6g}")
