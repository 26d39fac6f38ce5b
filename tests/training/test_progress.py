"""Progress of networks: a bar that is asked for, a note that there is one, and a time left that can be believed."""

import heapq
import logging
import time

import numpy as np
import pytest

from irtjax.training import progress
from irtjax.training.progress import Progress

ACCURACIES = np.array([0.25, 0.75, np.nan])


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def pool(seconds, slots, work=None):
    """The time, the state and the time left of a pool at each end of a network; each takes the seconds it is given."""
    work = np.ones(len(seconds)) if work is None else work
    ends, found, done = [(second, at) for at, second in enumerate(seconds[:slots])], [], []
    heapq.heapify(ends)
    for begun in range(slots, len(seconds) + slots):
        now, at = heapq.heappop(ends)
        done.append(at)
        if begun < len(seconds):
            heapq.heappush(ends, (now + seconds[begun], begun))
        parts = done, [at for _, at in ends], range(begun + 1, len(seconds))
        by_work = tuple(float(work[list(part)].sum()) for part in parts)
        found.append((now, Progress(*map(len, parts), ACCURACIES, work=by_work)))
    return [(now, state, found[-1][0] - now) for now, state in found]


@pytest.mark.parametrize("slots", [1, 8, 100])
@pytest.mark.parametrize("before", [0, 50])
def test_the_time_left_is_right_within_a_factor_once_a_quarter_is_done(slots, before):
    seconds = np.random.default_rng(0).uniform(20, 60, 100)
    told = pool(seconds, slots)
    began = Progress(before, slots, 100 - slots, ACCURACIES)
    for now, state, truth in told:
        resumed = state._replace(finished=state.finished + before, work=None)
        left = progress.seconds_left(now, resumed, began)
        if now > told[-1][0] / 4 and truth > told[-1][0] / 4:
            assert truth / 2.2 < left < 2.2 * truth
    assert progress.seconds_left(30.0, began, began) is None
    assert progress.seconds_left(30.0, Progress(before + 3, 0, 0, ACCURACIES), began) == 0


@pytest.mark.parametrize("slots", [1, 8])
def test_networks_with_long_epochs_that_begin_first_do_not_make_the_rest_seem_as_long(slots):
    rng = np.random.default_rng(0)
    work = np.sort(np.exp(rng.uniform(0, 7, 100)))[::-1]
    told = pool(work * rng.uniform(20, 60, 100), slots, work)
    began = Progress(0, slots, 100 - slots, ACCURACIES)
    by_number = []
    for now, state, truth in told:
        if now > told[-1][0] / 4 and truth > told[-1][0] / 4:
            assert truth / 2.2 < progress.seconds_left(now, state, began) < 2.2 * truth
            by_number.append(progress.seconds_left(now, state._replace(work=None), began) / truth)
    assert max(by_number) > 4


def test_a_note_is_logged_once_where_nothing_is_shown(caplog, capsys, monkeypatch):
    """Also before a first round, which compilation may keep waiting for minutes."""
    monkeypatch.setattr(progress, "NOTE_AFTER", 0.01)
    with caplog.at_level(logging.WARNING, logger="irtjax"), progress.reporter(False, None, 6) as report:
        time.sleep(0.3)
    assert report is None
    assert [record.getMessage() for record in caplog.records] == [
        "training 6 networks (at first, programs are compiled): `progress=True` shows how far they are"
    ]
    assert capsys.readouterr() == ("", "")


def test_what_is_over_within_ten_seconds_or_told_to_the_caller_is_not_noted(caplog, monkeypatch):
    seen = []
    monkeypatch.setattr(progress, "NOTE_AFTER", 0.1)
    with progress.reporter(False, None, 3):
        pass
    with progress.reporter(False, seen.append, 3) as report:
        assert report == seen.append
        time.sleep(0.3)
    assert not caplog.records


def test_a_bar_is_shown_and_the_caller_told(capsys, caplog):
    clock, seen = Clock(), []
    states = [Progress(1, 2, 0, ACCURACIES), Progress(2, 1, 0, ACCURACIES), Progress(3, 0, 0, ACCURACIES)]
    with progress.reporter(True, seen.append, 3, clock) as report:
        for clock.now, state in zip((20.0, 30.0, 40.0), states, strict=True):
            report(state)
    shown, error = capsys.readouterr()
    assert (shown, seen, caplog.records) == ("", states, [])
    assert "0/3 networks [00:00], compiling" in error
    assert "2/3 networks [00:00], 00:10 left, 1 training, accuracy 0.25 to 0.75" in error
    assert "3/3 networks" in error.splitlines()[-1]
