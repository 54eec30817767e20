"""Tiresias in the public simulator: two-dimensional attained service in three queues, at the sizes asked for.

Gu et al., "Tiresias: A GPU Cluster Manager for Distributed Deep Learning", NSDI 2019; its limits and its promotion knob
(0: nobody is promoted) as the simulator has them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ces_sim.malleable.compat.events import Events
from ces_sim.malleable.compat.state import Tally
from ces_sim.malleable.cost import resize_s
from ces_sim.malleable.traces import TracedJob

LIMITS = (3250, 7200)
"""GPU-seconds at which a job leaves each queue but the last."""


@dataclass(eq=False)
class _Queued:
    job: TracedJob
    checked: float
    running: bool = False
    served: int = 0
    overhead: float = 0.0
    queue: int = 0
    end: float = 0.0


def run(jobs: Sequence[TracedJob], capacity: int, slot: int) -> Tally:
    """Simulate a trace on ``capacity`` GPUs, with slots of ``slot`` seconds."""
    return _Tiresias(jobs, capacity, slot).run()


class _Tiresias:
    def __init__(self, jobs: Sequence[TracedJob], capacity: int, slot: int) -> None:
        self.capacity, self.slot = capacity, slot
        self.arrivals = Events((float(job.arrived_s), job) for job in jobs)
        self.active: list[_Queued] = []
        self.queues: list[list[_Queued]] = [[], [], []]
        self.ending: list[_Queued] = []
        self.end_time = math.inf
        self.jump = math.inf
        self.decisions = 0
        self.tally = Tally.new()

    def run(self) -> Tally:
        while (now := min(self.arrivals.first_time, self.end_time, self.jump)) < math.inf:
            if self.jump >= min(self.arrivals.first_time, self.end_time):
                self._end_and_arrive(now)
            for each in self.active:
                self._account(each, now)
            restart = self.decisions > 0 and self.decisions % self.slot == 0
            self.decisions += 1
            self._choose(restart)
            self._look_ahead(now, restart)
            self.arrivals.merge(now, self.slot)
        return self.tally

    def _end_and_arrive(self, now: float) -> None:
        if self.end_time == now:
            for each in self.ending:
                on_time = each.end <= each.job.deadline_s
                (self.tally.on_time if on_time else self.tally.late).append(each.job.name)
                self.active.remove(each)
                self.queues[each.queue].remove(each)
        arrived = self.arrivals.take(now)
        for job in arrived.arrivals if arrived else ():
            each = _Queued(job, float(job.arrived_s))
            self.active.append(each)
            self.queues[0].append(each)

    def _account(self, each: _Queued, now: float) -> None:
        if each.running:
            each.served += int(max(now - each.checked - each.overhead, 0))
            each.overhead = 0.0
            if each.queue < len(LIMITS) and each.served * each.job.gpus >= LIMITS[each.queue]:
                self.queues[each.queue].remove(each)
                each.queue += 1
                self.queues[each.queue].append(each)
        each.checked = now

    def _choose(self, restart: bool) -> None:
        """First come, first served within a queue, whoever fits; who waits goes behind who runs."""
        free = self.capacity
        for queue in self.queues:
            for each in queue:
                runs = each.job.gpus <= free
                if runs and not each.running:
                    each.overhead = resize_s(each.job.gpus, self.capacity, restart=restart)
                free -= each.job.gpus if runs else 0
                each.running = runs
            queue.sort(key=lambda each: not each.running)

    def _look_ahead(self, now: float, restart: bool) -> None:
        """The next end, without the seconds that a start costs, and the next time that somebody leaves a queue, as if
        the seconds in it were GPU-seconds."""
        self.ending, self.end_time, self.jump = [], math.inf, math.inf
        for each in self.active:
            if not each.running:
                continue
            left = each.job.duration_s - each.served
            if restart:
                each.overhead = resize_s(each.job.gpus, self.capacity, restart=True)
                left += int(each.overhead)
            at = max(now + self.slot, now + left)
            if at < self.end_time:
                self.ending, self.end_time = [], at
            if at == self.end_time:
                each.end = now + left
                self.ending.append(each)
            if each.queue < len(LIMITS):
                leaves = now + math.ceil((LIMITS[each.queue] - each.served) / each.job.gpus)
                self.jump = min(self.jump, leaves)
        self.jump = max(self.jump, now + self.slot)
