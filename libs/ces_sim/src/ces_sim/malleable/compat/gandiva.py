"""Gandiva in the public simulator: sets of nodes for each size, grown and shrunk by demand, and turns within a set.

Xiao et al., "Gandiva: Introspective Cluster Scheduling for Deep Learning", OSDI 2018, as the simulator has it: while
jobs arrive, nothing happens between two arrivals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ces_sim.malleable.compat.events import Events
from ces_sim.malleable.compat.state import Tally
from ces_sim.malleable.cost import resize_s
from ces_sim.malleable.traces import TracedJob

TURN_S = 60
"""Turns pass on at whole minutes only."""


@dataclass(eq=False)
class _Turns:
    """A job: seconds that it has had, and those that it loses until the next look."""

    job: TracedJob
    served: float = 0.0
    overhead: float = 0.0


@dataclass(eq=False)
class NodeSet:
    """Nodes for jobs of one size; ``room`` of them run at once, the first of ``jobs``. ``load``: by which sets are
    ordered; it is not lowered when a job ends."""

    nodes: int
    room: int
    jobs: list[_Turns]
    load: int

    def add(self, job: _Turns) -> None:
        self.jobs.append(job)
        self.load += 1


def run(jobs: Sequence[TracedJob], capacity: int, node: int, slot: int) -> Tally:
    """Simulate a trace on ``capacity`` GPUs in nodes of ``node``, with slots of ``slot`` seconds."""
    return _Gandiva(jobs, capacity, node, slot).run()


class _Gandiva:
    def __init__(self, jobs: Sequence[TracedJob], capacity: int, node: int, slot: int) -> None:
        self.capacity, self.node, self.slot = capacity, node, slot
        self.arrivals = Events((float(job.arrived_s), _Turns(job)) for job in jobs)
        self.sets: dict[int, list[NodeSet]] = {size: [] for size in sorted({job.gpus for job in jobs})}
        self.idle = capacity // node
        self.pending: list[_Turns] = []
        self.running: list[_Turns] = []
        self.decisions = 0
        self.tally = Tally.new()

    def run(self) -> Tally:
        now, passed = self.arrivals.first_time, 0.0
        while len(self.arrivals) or self.pending or self.running:
            self._adjust()
            released = self._turn(now, passed)
            for each in self.running:
                each.overhead = 0.0
            arrived = self.arrivals.take(now)
            for each in arrived.arrivals if arrived else ():
                (self.running if self._place(each) else self.pending).append(each)
            if released:
                self._start_pending()
            passed = self._next(now)
            now += passed
        return self.tally

    def _next(self, now: float) -> float:
        """Seconds until the next look: at the next arrival, or after a slot where none is to come."""
        if not len(self.arrivals):
            return self.slot
        restart = self.decisions > 0 and self.decisions % self.slot == 0
        self.decisions += 1
        for each in self.running:
            each.overhead = resize_s(each.job.gpus, self.capacity, restart=restart)
        self.arrivals.merge(now, self.slot)
        return self.arrivals.first_time - now

    def _start_pending(self) -> None:
        """Of two neighbours in the queue, the one behind who starts is passed over."""
        i = 0
        while i < len(self.pending):
            if self._place(self.pending[i]):
                self.running.append(self.pending.pop(i))
            i += 1

    def _needed(self, size: int) -> int:
        return math.ceil(size / self.node)

    def _new_set(self, size: int, jobs: list[_Turns]) -> NodeSet:
        nodes = self._needed(size)
        self.idle -= nodes
        return NodeSet(nodes, nodes * self.node // size, jobs, len(jobs))

    def _place(self, each: _Turns) -> bool:
        """In a set that runs one more at once, else in a new one, else in the next in line, to take turns."""
        size, sets = each.job.gpus, self.sets[each.job.gpus]
        if sets:
            first = sets.pop(0)
            sets.append(first)
            if first.load + 1 < first.room:
                first.add(each)
                sets.sort(key=lambda one: one.load)
                return True
        if self._needed(size) <= self.idle:
            sets.append(self._new_set(size, [each]))
        elif sets:
            first = sets.pop(0)
            sets.append(first)
            first.add(each)
        else:
            return False
        sets.sort(key=lambda one: one.load)
        return True

    def _adjust(self) -> None:
        """Sets of each size, by its part of what all jobs ask for."""
        demands = {size: size * sum(len(one.jobs) for one in sets) for size, sets in self.sets.items()}
        held = {size: self.node * sum(one.nodes for one in sets) for size, sets in self.sets.items()}
        total = sum(demands.values())
        for size, demand in demands.items():
            if not demand:
                continue
            missing = min(math.floor(demand / total * self.capacity), demand) - held[size]
            if missing > 0:
                self._grow(size, math.ceil(missing / size))
            elif missing < 0:
                self._shrink(size, math.ceil(-missing / size))

    def _grow(self, size: int, count: int) -> None:
        sets, fits = self.sets[size], False
        for _ in range(count):
            fits = self._needed(size) <= self.idle
            if fits:
                sets.append(self._new_set(size, []))
        if fits and self._needed(size) == 1:
            return  # jobs stay where they are, but for sets of several nodes, or where nodes ran out
        jobs = [job for one in sets for job in one.jobs]
        for one in sets:
            if one.jobs:
                one.jobs, one.load = [], 0
        self._deal(sets, jobs)

    def _shrink(self, size: int, count: int) -> None:
        sets = self.sets[size]
        given = sets[: min(count, len(sets) - 1)]
        del sets[: len(given)]
        self.idle += sum(one.nodes for one in given)
        self._deal(sets, [job for one in given for job in one.jobs])

    @staticmethod
    def _deal(sets: list[NodeSet], jobs: list[_Turns]) -> None:
        for job in jobs:
            sets[0].add(job)
            sets.sort(key=lambda one: one.load)

    def _turn(self, now: float, passed: float) -> bool:
        """Work of the time that has passed, by those whose turn it was. Whether nodes have become idle."""
        released = False
        for size, sets in self.sets.items():
            for one in sets:
                at_once = min(len(one.jobs), one.room)
                ended = [each for each in one.jobs[:at_once] if self._work(each, now, passed)]
                if now % TURN_S == 0 and len(one.jobs) > at_once:
                    one.jobs = one.jobs[at_once:] + one.jobs[:at_once]
                for each in ended:
                    one.jobs.remove(each)
                    self.running.remove(each)
                if not one.jobs:
                    self.idle += one.nodes
                    released = True
            self.sets[size] = [one for one in sets if one.jobs]
        return released

    def _work(self, each: _Turns, now: float, passed: float) -> bool:
        each.served += max(passed - each.overhead, 0.0)
        each.overhead = 0.0
        if each.served < each.job.duration_s:
            return False
        end = now - (each.served - each.job.duration_s)
        (self.tally.on_time if end <= each.job.deadline_s else self.tally.late).append(each.job.name)
        return True
