"""Runs a kind of work in so many processes at once, and tells how it went on in each of them. Processes, since Python's
own work of one process goes on in one thread at a time."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Final

from ces_common.messages.scores import REPEATS, Measurement
from ces_edge_agent import linux
from ces_edge_agent.lending.owner_load import OwnerLoad
from ces_edge_agent.scores.kernels import Absent, make, prepare
from ces_edge_agent.scores.plan import WARM_S, Run
from ces_edge_agent.scores.timeline import window_rates

RECORD_S: Final = 0.0005
"""Least time between two entries of a timeline."""


def measure(run: Run, window_s: float) -> Measurement:
    """Raises Absent where this kind of work cannot be done here, OSError, EOFError."""
    prepare(run.kind)
    context = get_context("fork")
    processes, pipes = [], []
    try:
        for _ in range(run.threads):
            own, theirs = context.Pipe()
            process = context.Process(target=_work, args=(run, theirs), daemon=True)
            process.start()
            theirs.close()
            processes.append(process)
            pipes.append(own)
        sources = [_told(pipe) for pipe in pipes]
        spent = 0.0
        load = OwnerLoad(own=lambda: spent + time.process_time())
        load.look(time.monotonic(), ())
        begin = time.monotonic() + WARM_S
        for pipe in pipes:
            pipe.send(begin + REPEATS * window_s)
        told = [pipe.recv() for pipe in pipes]
        spent = sum(seconds for _, seconds in told)
        look = load.look(time.monotonic(), ())
    finally:
        for pipe in pipes:
            pipe.close()
        for process in processes:
            # One that still waits for the word hears of no end: it has inherited the other end of its own pipe, too.
            process.kill()
            process.join()
    rates = window_rates([timeline for timeline, _ in told], begin, window_s, REPEATS)
    done = sum(timeline[-1][1] for timeline, _ in told)
    if min(rates) <= 0:
        raise Absent("others left it no CPU for as long as a repeat")
    return Measurement(
        kind=run.kind,
        threads=run.threads,
        cores=run.cores,
        rates=rates,
        others=None if look is None else round(look.others, 3),
        per_cpu_s=done / spent if spent > 0 else None,
        source=sources[0],
    )


def record(
    step: Callable[[], float], until: float, clock: Callable[[], float] = time.monotonic
) -> list[tuple[float, float]]:
    """Works until a moment of the clock is past, and writes down when how much was done."""
    done, noted = 0.0, clock()
    timeline = [(noted, done)]
    while True:
        done += step()
        now = clock()
        if now - noted >= RECORD_S or now >= until:
            timeline.append((now, done))
            noted = now
        if now >= until:
            return timeline


def _told(pipe: Connection) -> str:
    """The source of the work that a process is ready for. Raises Absent, EOFError."""
    ready, text = pipe.recv()
    if not ready:
        raise Absent(text)
    return str(text)


def _work(run: Run, pipe: Connection) -> None:
    """In a process of its own: tells that it is ready, waits for the word until when, and tells how it went."""
    linux.die_with_parent(signal.SIGKILL)
    try:
        if run.cpu is not None:
            os.sched_setaffinity(0, {run.cpu})
        kernel = make(run.kind, run.threads)
    except (Absent, OSError) as error:
        pipe.send((False, str(error)))
        return
    try:
        pipe.send((True, kernel.source))
        until = pipe.recv()
        before = _spent()
        timeline = record(kernel.step, until)
    except (EOFError, OSError):
        return
    finally:
        kernel.close()
    pipe.send((timeline, _spent() - before))


def _spent() -> float:
    """CPU seconds of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)
