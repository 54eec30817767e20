"""How long programs that could run had to wait for a core: what a busy machine adds to every answer."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

Span = tuple[float, float, float]
"""Begin and end on a steady clock, and for how long threads waited meanwhile, all ms together."""

PROC = Path("/proc")
LOOK_S = 0.05


@contextmanager
def watched(job: str) -> Iterator[list[Span]]:
    """What the job's workers on this machine wait, span after span, until the block ends."""
    spans: list[Span] = []
    stop = threading.Event()
    workers = list(_workers(job))

    def watch() -> None:
        begun, before = time.monotonic() * 1000, _waited_ms(workers)
        while not stop.wait(LOOK_S):
            now, after = time.monotonic() * 1000, _waited_ms(workers)
            spans.append((begun, now, max(0.0, after - before)))
            begun, before = now, after

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield spans
    finally:
        stop.set()
        thread.join()


def _waited_ms(workers: Sequence[Path]) -> float:
    """Of all their threads, since they began. 0 where the kernel does not tell."""
    total = 0
    for process in workers:
        with suppress(OSError):
            for thread in (process / "task").iterdir():
                with suppress(OSError, IndexError, ValueError):
                    total += int((thread / "schedstat").read_text().split()[1])
    return total / 1e6


def _workers(job: str) -> Iterator[Path]:
    mark = f"CES_JOB={job}".encode()
    for entry in os.scandir(PROC):
        if entry.name.isdigit():
            with suppress(OSError):
                if mark in Path(entry.path, "environ").read_bytes().split(b"\0"):
                    yield Path(entry.path)
