"""Work that is written down as it goes on, and done in real processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from ces_common.messages.scores import Measurement
from ces_edge_agent.scores import workers
from ces_edge_agent.scores.kernels import Absent, Kernel
from ces_edge_agent.scores.plan import Run
from ces_edge_agent.scores.workers import RECORD_S, measure, record


def test_what_is_done_is_written_down_seldom_and_at_last_where_it_ends() -> None:
    def ticks() -> Iterator[float]:
        yield from (number * RECORD_S / 4 for number in range(1000))

    now = ticks()
    timeline = record(lambda: 2.0, RECORD_S * 3.1, lambda: next(now))
    assert [done for _, done in timeline] == [0.0, 8.0, 16.0, 24.0, 26.0]
    assert timeline[-1][0] >= RECORD_S * 3.1


def test_threads_of_one_kind_work_side_by_side() -> None:
    found = measured(Run("integer", 2))
    assert (found.kind, found.threads, len(found.rates)) == ("integer", 2, 5)
    assert found.others is not None
    assert "Python" in found.source


def measured(run: Run) -> Measurement:
    """In ever longer repeats: on a busy machine a short one may pass without any CPU."""
    for window_s in (0.02, 0.1, 0.5):
        try:
            return measure(run, window_s)
        except Absent as error:
            if "others left it no CPU" not in str(error):
                raise
    pytest.fail("the machine is too busy to tell: no CPU for half a second")


@pytest.mark.parametrize("kind", ["float", "memory", "network"])
def test_each_kind_that_every_agent_can_do(kind: str) -> None:
    found = measured(Run(kind, 1))  # type: ignore[arg-type]
    assert all(rate > 0 for rate in found.rates)


def test_what_cannot_be_done_is_absent_and_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacks(*_: object) -> Kernel:
        raise Absent("too little memory is free")

    monkeypatch.setattr(workers, "make", lacks)
    with pytest.raises(Absent, match="too little memory"):
        measure(Run("memory", 3), 0.02)


def test_a_process_that_dies_is_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*_: object) -> Kernel:
        return Kernel(lambda: 1 / 0, "nothing")

    monkeypatch.setattr(workers, "make", dies)
    with pytest.raises(EOFError):
        measure(Run("integer", 2), 0.02)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("dies", [False, True])
def test_one_thread_that_cannot_go_on_ends_those_that_wait(monkeypatch: pytest.MonkeyPatch, dies: bool) -> None:
    first, only_one = os.pipe()
    os.write(only_one, b"1")
    os.set_blocking(first, False)

    def lacks(*_: object) -> Kernel:
        try:
            os.read(first, 1)
        except BlockingIOError:
            return Kernel(lambda: 1.0, "work")
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
        raise Absent("too little memory is free")

    monkeypatch.setattr(workers, "make", lacks)
    with pytest.raises(EOFError if dies else Absent):
        measure(Run("memory", 3), 0.02)
    os.close(first)
    os.close(only_one)
