"""Steady shares: sizes for jobs with deadlines, where a resize takes time and a job that has begun is not stopped.

ElasticFlow (:mod:`ces_core.malleable.elasticflow`) plans a new size for every period, and may stop a job in between.
Here a job is planned at one size from its begin to its end: the smallest size that ends it in time, from the earliest
moment at which that many GPUs stay free for so long. No job is admitted on a plan in which its own size has to change.
Running jobs keep their sizes as long as everybody can be in time. A running job that no single size can end in time any
more is planned as ElasticFlow would plan it.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

from ces_core.malleable.admission import TOLERANCE_S, Shares
from ces_core.malleable.free import FreeSteps
from ces_core.malleable.model import Running, by_deadline
from ces_core.malleable.policy import Decision, Moment
from ces_core.malleable.share import Plan, plan
from ces_core.malleable.surplus import saved_gpu_s


@dataclass(frozen=True)
class Steady:
    """``cost_s``: what a resize takes of a job; ``start_s``: what its start takes. ``slot_s``: where sizes change in a
    plan, they do so at whole slots from now. ``admission``: refuse who would make anybody late."""

    cost_s: float
    slot_s: float
    start_s: float = 0.0
    admission: bool = True

    def __call__(self, moment: Moment) -> Decision:
        arrived = moment.arrived if self.admission else frozenset[str]()
        active = [each for each in moment.active if each.name not in arrived]
        found, refused = self._shares(active, moment), dict[str, float]()
        for each in moment.active:
            if each.name not in arrived:
                continue
            tried = self._shares([*active, each], moment)
            if math.isinf(each.job.deadline_s) or not set(tried.late) - set(found.late):
                active, found = [*active, each], tried
            else:
                refused[each.name] = self._first_done(each, found.free, moment.now_s).done_s
        least = {name: share.size for name, share in found.plans.items()}
        if any(each.size for each in active):
            least |= self._spared(active, moment)
        self._give_surplus(active, found, moment.now_s)
        plans = found.plans
        return Decision(
            {name: share.size for name, share in plans.items() if share.size},
            frozenset(refused),
            min((share.next_change_s for share in plans.values()), default=math.inf),
            least=least,
            ends=refused | {name: share.done_s for name, share in plans.items()},
            begins={name: share.steps[1] for name, share in plans.items() if not share.size and len(share.steps) > 1},
        )

    def _shares(self, active: Sequence[Running], moment: Moment) -> Shares:
        """With running jobs at their present sizes or, if fewer are late then, at their smallest sizes in time."""
        found = self._planned(active, moment)
        if found.late and any(each.size for each in active):
            other = self._planned(active, moment, shrunk=True)
            return other if len(other.late) < len(found.late) else found
        return found

    def _spared(self, active: Sequence[Running], moment: Moment) -> dict[str, int]:
        """The smallest size with which each running job is in time."""
        plans = self._planned(active, moment, shrunk=True).plans
        return {each.name: plans[each.name].size for each in active if each.size}

    def _planned(self, active: Sequence[Running], moment: Moment, *, shrunk: bool = False) -> Shares:
        """First the running jobs that are in time as they are, then by deadline the jobs that wait or must grow.
        ``shrunk``: running jobs give what they can do without, which takes a resize. Each keeps its smallest size."""
        now_s, free = moment.now_s, FreeSteps.flat(moment.now_s, moment.capacity)
        free.book(moment.booked)
        shares, others = Shares({}, free, []), list[Running]()
        for each in by_deadline(active):
            as_it_is = self._as_it_is(each, now_s, shrunk)
            if as_it_is is None:
                others.append(each)
            else:
                self._book(each, as_it_is, shares)
        kept = {each.name: self._at(each, each.profile.sizes[0], now_s, now_s) for each in others if each.stays}
        room_s = self.cost_s if shrunk else 0.0
        for smallest in kept.values():
            free.book(smallest.pieces())
        for each in others:
            if each.stays:
                free.book(kept[each.name].given_back())
            self._book(each, self._least(each, free, now_s, room_s), shares)
        return shares

    def _book(self, each: Running, share: Plan, shares: Shares) -> None:
        shares.free.book(share.pieces())
        shares.plans[each.name] = share
        if share.done_s > each.job.deadline_s + TOLERANCE_S:
            shares.late.append(each.name)

    def _as_it_is(self, each: Running, now_s: float, shrunk: bool) -> Plan | None:
        """A running job at its present size, or ``shrunk`` to its smallest size in time; None if it waits or is late
        so."""
        sizes = [size for size in each.profile.sizes if size < each.size] if shrunk else []
        tried = (self._at(each, size, now_s, now_s) for size in (*sizes, each.size) if each.size)
        return next((share for share in tried if share.on_time), None)

    def _least(self, each: Running, free: FreeSteps, now_s: float, room_s: float) -> Plan:
        """At the smallest size in time, after the ``room_s`` that others take to make room. Failing that, a running job
        is planned with sizes that change, and any other as soon as it can be done."""
        for size in each.profile.sizes:
            begin_s = self._begin_s(each, size, free, now_s, room_s)
            if begin_s is not None and (share := self._at(each, size, now_s, begin_s, room_s)).on_time:
                return share
        if each.stays:
            due_s = each.job.deadline_s - self.cost_s
            share = plan(each.left, each.profile, due_s, free, self.slot_s, stays=each.stays)
            if share.on_time:
                return share
        return self._first_done(each, free, now_s, room_s)

    def _first_done(self, each: Running, free: FreeSteps, now_s: float, room_s: float = 0.0) -> Plan:
        begins = {size: self._begin_s(each, size, free, now_s, room_s) for size in each.profile.sizes}
        shares = [self._at(each, size, now_s, at_s, room_s) for size, at_s in begins.items() if at_s is not None]
        if shares:
            return min(shares, key=lambda share: share.done_s)
        return plan(each.left, each.profile, now_s, free, self.slot_s, stays=each.stays)

    def _begin_s(self, each: Running, size: int, free: FreeSteps, now_s: float, room_s: float = 0.0) -> float | None:
        """When it can begin at this size, to the end; who runs goes on now."""
        lasts_s = room_s + self._lasts_s(each, size)
        if each.stays:
            return now_s if free.least(now_s, now_s + lasts_s) >= size else None
        return first_free(free, size, lasts_s)

    def _lasts_s(self, each: Running, size: int) -> float:
        before_s = 0.0 if each.size == size else self.cost_s if each.size else self.start_s
        return each.left / each.profile.rate(size) + before_s

    def _at(self, each: Running, size: int, now_s: float, begin_s: float, room_s: float = 0.0) -> Plan:
        done_s = begin_s + room_s + self._lasts_s(each, size)
        steps = ((now_s, size),) if begin_s <= now_s else ((now_s, 0), (begin_s, size))
        in_time = done_s <= each.job.deadline_s + TOLERANCE_S
        return Plan(steps, done_s, done_s, in_time)

    def _give_surplus(self, active: Sequence[Running], shares: Shares, now_s: float) -> None:
        """One size at a time to whom it saves most, as ElasticFlow does, where it delays nobody. Who is to begin later
        does not begin sooner for it."""
        heap = [(-math.inf, place) for place, each in enumerate(active) if shares.plans[each.name].size]
        while heap and shares.free_now:
            _, place = heapq.heappop(heap)
            each = active[place]
            old = shares.plans[each.name]
            new = self._larger(each, old, shares.free, now_s)
            if new is None:
                continue
            value = saved_gpu_s(old, new, new.size - old.size)
            if heap and -heap[0][0] > value:
                heapq.heappush(heap, (-value, place))
                continue
            shares.replace(each.name, new)
            heapq.heappush(heap, (-math.inf, place))

    def _larger(self, each: Running, old: Plan, free: FreeSteps, now_s: float) -> Plan | None:
        """The next larger size, from now on, that is done earlier; None where that does not stay free."""
        larger = (self._at(each, size, now_s, now_s) for size in each.profile.sizes if size > old.size)
        new = next((share for share in larger if share.done_s < old.done_s), None)
        if new is None:
            return None
        rest = free.copy()
        rest.book(old.given_back())
        return new if rest.least(now_s, new.end_s) >= new.size else None


def first_free(free: FreeSteps, size: int, lasts_s: float) -> float | None:
    """From when on ``size`` GPUs stay free for ``lasts_s`` seconds; None where they never do."""
    begin_s = math.inf
    for place, (time_s, gpus) in enumerate(zip(free.times, free.free, strict=True)):
        begin_s = min(begin_s, time_s) if gpus >= size else math.inf
        end_s = free.times[place + 1] if place + 1 < len(free.times) else math.inf
        if end_s - begin_s >= lasts_s:
            return begin_s
    return None
