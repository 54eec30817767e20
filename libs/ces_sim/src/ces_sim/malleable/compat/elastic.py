"""ElasticFlow in the public simulator, with and without admission."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ces_core.malleable.admission import Shares, minimum_shares, newcomer
from ces_core.malleable.buddy import in_order
from ces_core.malleable.model import MalleableJob
from ces_core.malleable.share import Plan
from ces_core.malleable.surplus import give_surplus_strictly
from ces_sim.malleable.compat.events import Event, Events
from ces_sim.malleable.compat.state import Placements, Simulated, Tally, pass_time


def wasted_gpu_s(old: Plan, new: Plan, added: int) -> float:
    """GPU-seconds more for each GPU added: the simulator gives first to whom it wastes most. It books a last step up to
    where the size would have changed, even if the job ends before."""
    return (_booked_gpu_s(new) - _booked_gpu_s(old)) / added


def _booked_gpu_s(plan: Plan) -> float:
    ends = [begin for begin, _ in plan.steps[1:]] + [plan.end_s]
    return sum((end - begin) * size for (begin, size), end in zip(plan.steps, ends, strict=True))


@dataclass(frozen=True)
class Quirks:
    """``batch``: all arrivals of a slot are admitted, or none. ``costs``: starts cost time, at every event and for
    every job."""

    batch: bool = True
    costs: bool = True


AS_PUBLISHED = Quirks()


def run(
    jobs: Sequence[MalleableJob], capacity: int, node: int, slot: int, *, admission: bool,
    quirks: Quirks = AS_PUBLISHED,
) -> Tally:  # fmt: skip
    """Simulate a trace on ``capacity`` GPUs in nodes of ``node``, with slots of ``slot`` seconds."""
    return _Elastic(jobs, capacity, node, slot, admission, quirks).run()


class _Elastic:
    def __init__(
        self, jobs: Sequence[MalleableJob], capacity: int, node: int, slot: int, admission: bool, quirks: Quirks
    ) -> None:
        self.quirks = quirks
        self.capacity, self.node, self.slot, self.admission = capacity, node, slot, admission
        arriving = [Simulated(i, newcomer(job)) for i, job in enumerate(jobs)]
        self.events = Events((each.job.arrived_s, each) for each in arriving)
        self.active: list[Simulated] = []
        self.order: list[Simulated] = []  # of those that have had GPUs, in which they first had some
        self.placements = Placements(capacity, slot)
        self.tally = Tally.new()

    def run(self) -> Tally:
        now, passed = self.events.first_time, 0.0
        while len(self.events) or self.active:
            pass_time(self.active, self.events, passed, now)
            event = self.events.take(now)
            if event is not None:
                self._end(event)
                self._plan(event, now)
            if not len(self.events):
                break
            self.events.merge(now, self.slot)
            passed, now = self.events.first_time - now, self.events.first_time
        return self.tally

    def _end(self, event: Event[Simulated]) -> None:
        for each in event.ends:
            self.active.remove(each)
            self.order.remove(each)
            believed = each.done if self.admission and each.done is not None else each.end
            self.tally.ended(each.job, believed)

    def _plan(self, event: Event[Simulated], now: float) -> None:
        if not self.active and not event.arrivals:
            return
        groups = [event.arrivals] if self.quirks.batch else [[each] for each in event.arrivals]
        for group in groups if self.admission else ():
            self._admit(group, now)
        self.active += [] if self.admission else event.arrivals
        shares = self._shares(self.active, now)
        self.active.sort(key=lambda each: each.job.deadline_s)
        for each in self.active:
            self._take(each, shares.plans[each.job.name])
        self._start_planned(shares, now)
        by_running = {id(each.running): each for each in self.active}
        running = [each.running for each in self.active]
        order = give_surplus_strictly(running, shares, self.slot, worth=wasted_gpu_s, keep=False)
        self.active = [by_running[id(each)] for each in order]
        for each in self.active:
            self._take(each, shares.plans[each.job.name])
            if each.size:
                self._start(each)
        self._place(shares)

    def _admit(self, arrived: list[Simulated], now: float) -> None:
        """All or none; of the others, those of best effort."""
        everybody = [*self.active, *arrived]
        if not arrived or not self._shares(everybody, now).late:
            self.active = everybody
            return
        self.active += [each for each in arrived if each.job.deadline_s == math.inf]
        self.tally.refused += [each.job.name for each in arrived if each.job.deadline_s < math.inf]

    def _shares(self, asked: Sequence[Simulated], now: float) -> Shares:
        return minimum_shares([each.running for each in asked], now, self.capacity, self.slot)

    def _take(self, each: Simulated, plan: Plan) -> None:
        each.running.size = plan.size
        self.events.move_end(each, each.end, plan.end_s)
        each.end, each.done = plan.end_s, plan.done_s

    def _start(self, each: Simulated) -> None:
        if not each.started:
            each.started = True
            self.order.append(each)

    def _start_planned(self, shares: Shares, now: float) -> None:
        """Who begins by its minimum share is under way. Without admission there is an event where the others would,
        even if they are given GPUs at once after that."""
        for each in sorted(self.active, key=lambda each: each.number):
            begin = next(begin for begin, size in shares.plans[each.job.name].steps if size)
            if begin <= now:
                self._start(each)
            elif not self.admission and not each.started:
                self.events.look(begin)

    def _look_at_changes(self, shares: Shares) -> None:
        """With admission only the first change of all is an event, and only if nothing comes before it."""
        seen = self.active if self.admission else self.order
        changes = sorted(shares.plans[each.job.name].next_change_s for each in seen)
        changes = [change for change in changes if change < math.inf]
        if not self.admission:
            for change in changes:
                self.events.look(change)
        elif changes and (not len(self.events) or changes[0] < self.events.first_time):
            self.events.look(changes[0])

    def _place(self, shares: Shares) -> None:
        if self.admission:
            self.active.sort(key=lambda each: -each.size)
        self._look_at_changes(shares)
        places = self._places()
        self.placements.see([(begin, each.size) for each, begin in places])
        self.placements.decided()
        for each, begin in places if self.quirks.costs else ():
            each.overhead = self.placements.overhead(begin, each.size)
            self.events.move_end(each, each.end, each.end + each.overhead)
            each.end += each.overhead

    def _places(self) -> list[tuple[Simulated, int]]:
        """Who has GPUs, with the first of them: jobs of whole nodes come first, in the order of the list."""
        seen = self.active if self.admission else self.order
        whole = [each for each in seen if each.size >= self.node]
        parts = [each for each in seen if 0 < each.size < self.node]
        ordered = dict(in_order((i, each.size) for i, each in enumerate(parts)))
        begins, begin = [], 0
        for each in [*whole, *(parts[i] for i in ordered)]:
            begins.append((each, begin))
            begin += each.size
        return begins
