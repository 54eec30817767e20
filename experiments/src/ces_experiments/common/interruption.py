"""How a benchmark ends that made something which must go away again."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ended_tidily() -> Iterator[None]:
    """SIGTERM and SIGHUP end the program as Ctrl-C does: what was made goes away. The first of them does; those that
    come after it, while that is going on, change nothing."""
    asked = False

    def end(number: int) -> None:
        nonlocal asked
        if not asked:
            asked = True
            raise KeyboardInterrupt

    with _handled(end):
        yield


@contextmanager
def undisturbed() -> Iterator[None]:
    """What must be done to its end: a signal that comes meanwhile takes effect after it."""
    come: list[int] = []
    with _handled(come.append):
        yield
    for number in come[:1]:
        signal.raise_signal(number)


@contextmanager
def _handled(handler: Callable[[int], None]) -> Iterator[None]:
    """Signals that the program was started to ignore (as nohup does) stay ignored."""
    this = os.getpid()

    def handle(number: int, frame: FrameType | None) -> None:
        if os.getpid() != this:  # pyroute2's helpers are forked off with this handler, and ended by this signal
            os._exit(1)
        handler(number)

    before = {each: signal.signal(each, handle) for each in SIGNALS if signal.getsignal(each) is not signal.SIG_IGN}
    try:
        yield
    finally:
        for each, was in before.items():
            signal.signal(each, was)
