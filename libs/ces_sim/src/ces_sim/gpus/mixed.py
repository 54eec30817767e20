"""A mixed load on one cluster: tasks with shares of cards, with whole ones and with none come at random, and leave.

What does not fit at once is turned away. Tasks and times are those of a seed, whoever decides, so that deciders can be
compared pair by pair.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ces_core.gpus.model import CARD, Asked, Fleet, GpuNode, GpuTask, Models

Placed = tuple[int, tuple[int, ...]]
"""A node's place in the list, and its cards."""


class Decider(Protocol):
    def choose(self, fleet: Fleet, task: GpuTask, asked: Asked, running: Sequence[Asked]) -> Placed | None:
        """Where a task goes; None where it fits nowhere. Changes nothing. ``running``: what others have asked for."""


@dataclass(frozen=True)
class Visit:
    """A task that comes, and how long it stays, in mean stays."""

    at: float
    stays: float
    task: GpuTask


@dataclass(frozen=True)
class Seen:
    """After a task came: ``placed``: None where it was turned away. ``free``: whole cards that nobody has any of.
    ``imbalance``: mean of the standard deviations over nodes of the use of CPU and memory."""

    visit: Visit
    placed: Placed | None
    free: int
    imbalance: float


def visits(trace: Sequence[GpuTask], capacity: int, load: float, stays: float, rng: np.random.Generator) -> list[Visit]:
    """For ``stays`` mean stays tasks drawn from a trace, so that together they would use ``load`` times ``capacity``
    milli if none was turned away. Raises ValueError where no task asks for a GPU."""
    mean = float(np.mean([task.total for task in trace])) if trace else 0.0
    if not mean:
        raise ValueError("no task asks for a GPU")
    found, now, rate = [], 0.0, load * capacity / mean
    while (now := now + float(rng.exponential(1 / rate))) < stays:
        found.append(Visit(now, float(rng.exponential()), trace[int(rng.integers(len(trace)))]))
    return found


def mixed(nodes: Sequence[GpuNode], coming: Sequence[Visit], decider: Decider) -> Iterator[Seen]:
    """One visit after the other."""
    models = Models()
    fleet = models.fleet(nodes)
    cpu, memory = (np.array([getattr(node, name) for node in nodes], np.float64) for name in ("cpu", "memory"))
    leaving: list[tuple[float, int, int, tuple[int, ...], Asked]] = []
    for number, visit in enumerate(coming):
        while leaving and leaving[0][0] <= visit.at:
            _, _, node, cards, asked = heapq.heappop(leaving)
            fleet.remove(node, cards, asked)
        asked = models.asked(visit.task)
        placed = decider.choose(fleet, visit.task, asked, [each[4] for each in leaving])
        if placed is not None:
            fleet.place(*placed, asked)
            heapq.heappush(leaving, (visit.at + visit.stays, number, *placed, asked))
        uneven = (np.std(1 - fleet.cpu / cpu) + np.std(1 - fleet.memory / memory)) / 2
        yield Seen(visit, placed, int((fleet.milli == CARD).sum()), float(uneven))
