"""Benchmarks that are told to end do so tidily, and leave what must not be disturbed to its end."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from ces_experiments.common.interruption import SIGNALS, ended_tidily, undisturbed


@pytest.fixture
def handlers() -> Iterator[None]:
    """Signals as a program has them that was started from a terminal."""
    before = {each: signal.getsignal(each) for each in SIGNALS}
    for each in SIGNALS:
        signal.signal(each, signal.default_int_handler)
    yield
    for each, was in before.items():
        signal.signal(each, was)


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_ends_and_a_second_changes_nothing(number: signal.Signals) -> None:
    cleaned = False

    def work() -> None:
        nonlocal cleaned
        try:
            signal.raise_signal(number)
        finally:
            for each in SIGNALS:
                signal.raise_signal(each)
            cleaned = True

    with pytest.raises(KeyboardInterrupt), ended_tidily():
        work()
    assert cleaned
    assert {signal.getsignal(each) for each in SIGNALS} == {signal.default_int_handler}


@pytest.mark.usefixtures("handlers")
def test_a_signal_takes_effect_after_what_must_not_be_disturbed() -> None:
    done: list[str] = []

    def work() -> None:
        with undisturbed():
            os.kill(os.getpid(), signal.SIGTERM)
            done.append("all of it")
        done.append("more")

    with pytest.raises(KeyboardInterrupt), ended_tidily():
        work()
    assert done == ["all of it"]


@pytest.mark.usefixtures("handlers")
def test_what_is_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with ended_tidily():
        signal.raise_signal(signal.SIGHUP)
