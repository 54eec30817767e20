"""How a benchmark ends that made something which must go away again."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def ended_tidily() -> Iterator[None]:
    """SIGTERM ends the program as Ctrl-C does: what was made goes away."""

    this = os.getpid()

    def end(number: int, frame: FrameType | None) -> None:
        if os.getpid() != this:  # pyroute2's helpers are forked off with this handler, and ended by this signal
            os._exit(1)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
