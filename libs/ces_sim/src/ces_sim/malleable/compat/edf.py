"""Earliest deadline first in the public simulator, with and without admission: each job as large as it can be."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ces_core.malleable.admission import newcomer
from ces_core.malleable.model import MalleableJob, SpeedProfile, by_deadline
from ces_core.malleable.share import slot_end
from ces_sim.malleable.compat.events import Event, Events
from ces_sim.malleable.compat.nodes import fill
from ces_sim.malleable.compat.state import Placements, Simulated, Tally, pass_time

Steps = dict[float, int]
"""Free GPUs from each time on, in order."""
Booked = tuple[int, float]
"""Size now, and when the job is done (s)."""


def book(left: float, profile: SpeedProfile, free: Steps, capacity: int, slot: float) -> tuple[Booked, Steps]:
    """As large as possible in every period. Once no later period is known, all GPUs count as free, whoever has them;
    and from a job's end, rounded up to a slot, as many are free as were before it began, whoever comes then."""
    cap = min(profile.cap, capacity)
    times, new = list(free), dict(free)
    now = begin = times[0]
    sizes = []
    for until in times[1:]:
        size = cap if new[begin] >= cap else profile.fitting(new[begin])
        sizes.append(size)
        if size:
            rate = profile.rate(size)
            done = math.ceil(begin + left / rate)
            if done <= until:
                before = new[begin]
                new[begin] = before - size
                if done not in free:
                    new[slot_end(now, done, slot)] = before
                return (sizes[0], done), _merged(new)
            left -= (until - begin) * rate
            new[begin] -= size
        begin = until
    sizes.append(cap)
    done = math.ceil(begin + left / profile.rate(cap))
    new[begin] = capacity - cap
    new[slot_end(now, done, slot)] = capacity
    return (sizes[0], done), _merged(new)


def _merged(free: Steps) -> Steps:
    merged: Steps = {}
    last = -1
    for time in sorted(free):
        if free[time] != last:
            merged[time] = last = free[time]
    return merged


def run(jobs: Sequence[MalleableJob], capacity: int, node: int, slot: int, *, admission: bool) -> Tally:
    """Simulate a trace on ``capacity`` GPUs in nodes of ``node``, with slots of ``slot`` seconds. Resizes cost nothing
    without admission, and as much as with ElasticFlow with it."""
    return _Earliest(jobs, capacity, node, slot, admission).run()


class _Earliest:
    def __init__(self, jobs: Sequence[MalleableJob], capacity: int, node: int, slot: int, admission: bool) -> None:
        self.capacity, self.node, self.slot, self.admission = capacity, node, slot, admission
        arriving = [Simulated(i, newcomer(job)) for i, job in enumerate(jobs)]
        self.events = Events((each.job.arrived_s, each) for each in arriving)
        self.active: list[Simulated] = []
        self.placements = Placements(capacity, slot)
        self.tally = Tally.new()

    def run(self) -> Tally:
        now, passed = self.events.first_time, 0.0
        while len(self.events):
            pass_time(self.active, self.events, passed, now)
            event = self.events.take(now)
            if event is not None:
                self._end(event)
                self._decide(event, now)
            if self.admission:
                self._charge()
            self.events.merge(now, self.slot)
            passed, now = self.events.first_time - now, self.events.first_time
        return self.tally

    def _end(self, event: Event[Simulated]) -> None:
        for each in event.ends:
            self.active.remove(each)
            self.tally.ended(each.job, each.end)

    def _decide(self, event: Event[Simulated], now: float) -> None:
        if not self.admission:
            self.active += event.arrivals
            self._take(self._booked(self.active, now))
            return
        accepted = False
        for each in event.arrivals:
            found = self._booked([*self.active, each], now)
            if any(done > job.job.deadline_s for job, (_, done) in found):
                self.tally.refused.append(each.job.name)
            else:
                accepted = True
                self.active.append(each)
                self._take(found)
        if not accepted:
            found = self._booked(self.active, now)
            self.active = [each for each, _ in found]
            for each, (size, _) in found:
                each.running.size = size
            self._take([(each, booked) for each, booked in found if booked[0]])

    def _booked(self, active: Sequence[Simulated], now: float) -> list[tuple[Simulated, Booked]]:
        free: Steps = {now: self.capacity}
        by_running = {id(each.running): each for each in active}
        found = []
        for running in by_deadline(each.running for each in active):
            booked, free = book(running.left, running.profile, free, self.capacity, self.slot)
            found.append((by_running[id(running)], booked))
        return found

    def _take(self, found: Sequence[tuple[Simulated, Booked]]) -> None:
        for each, (size, done) in found:
            each.running.size = size
            if each.started:
                self.events.move_end(each, each.end, done)
            elif size:
                each.started = True
                self.events.add_end(each, done)
            each.end = done

    def _charge(self) -> None:
        places = fill([each.size for each in self.active], self.capacity, self.node)
        self.placements.see([(begin, each.size) for each, begin in zip(self.active, places, strict=True) if each.size])
        self.placements.decided()
        for each, begin in zip(self.active, places, strict=True):
            if each.size:
                each.overhead = self.placements.overhead(begin, each.size)
                self.events.move_end(each, each.end, each.end + each.overhead)
                each.end += each.overhead
