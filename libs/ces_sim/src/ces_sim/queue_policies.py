"""Queue policies to compare CES-Multi with, and those of the service, CES-Multi among them. All ask the same solver
where a job goes; where the cluster is crowded, CES-Multi has it count what is left for later jobs.

Those that order the queue pass a job over that has no place, unless said otherwise: what is compared is the order, not
whether room is left idle. None preempts but CES-Multi where its parameters say so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ces_core.queue.cycle import cycle
from ces_core.queue.parameters import Parameters
from ces_core.queue.policies import QueuePolicy
from ces_core.queue.shares import Shares, amounts_of
from ces_core.queue.state import State
from ces_sim.arrivals import TimedJob
from ces_sim.queue_policy import Desk, FirstComeFirstServed, Policy

Urgency = Callable[[TimedJob], float]
"""Least first; equals by arrival."""


@dataclass(frozen=True)
class Ordered:
    """By something that each job brings with it."""

    name: str
    urgency: Urgency

    def serve(self, desk: Desk) -> None:
        for job in sorted(desk.waiting, key=lambda job: (self.urgency(job), job.arrival_s)):
            _try(desk, job)


@dataclass(frozen=True)
class DominantShare:
    """Dominant-resource fairness: always the tenant that has the smallest dominant share; its jobs by arrival."""

    name: str = "drf"

    def serve(self, desk: Desk) -> None:
        shares = Shares(Parameters(), desk.ledger, desk.running, desk.queue)
        left: dict[str, list[TimedJob]] = {}
        for job in reversed(desk.waiting):
            left.setdefault(job.tenant, []).append(job)
        while left:
            tenant = min(left, key=lambda name: (shares.dominant(name), name))
            job = left[tenant].pop()
            if not left[tenant]:
                del left[tenant]
            if _try(desk, job):
                shares.take(tenant, amounts_of(desk.ledger.held(job.name)))


@dataclass(frozen=True)
class LeastAttained:
    """Least attained service, as in Tiresias, without its preemption: first the jobs of the tenant whose tasks have run
    least so far, seconds times tasks. (A job that has never run has attained nothing, so jobs alone would tie.)"""

    name: str = "las"

    def serve(self, desk: Desk) -> None:
        attained = desk.attained
        for job in sorted(desk.waiting, key=lambda job: (attained.get(job.tenant, 0.0), job.arrival_s)):
            _try(desk, job)


@dataclass(frozen=True)
class Cycles:
    """A queue policy of the service, the very code, with these parameters; CES-Multi unless ``decide`` is another."""

    name: str
    parameters: Parameters
    decide: QueuePolicy = cycle

    def serve(self, desk: Desk) -> None:
        while self._cycle(desk):
            pass

    def _cycle(self, desk: Desk) -> bool:
        """Whether there is more to decide at this moment: room was made, or no end would bring another cycle."""
        state = State(desk.now, desk.ledger, desk.queue, desk.running, desk.freed, desk.memory)
        decided = self.decide(state, self.parameters, desk.solve, desk.solve_fragmentation_aware)
        desk.memory = decided.memory
        jobs = {job.name: job for job in desk.waiting}
        for name, reason in decided.refused.items():
            desk.refuse(name, reason)
        for start in decided.starts:
            desk.start(jobs[start.job], start.plan)
        for preempted in decided.preempted.values():
            for name in preempted.names:
                desk.stop(name)
        return bool(decided.preempted) or (decided.more and not desk.running)


def _try(desk: Desk, job: TimedJob) -> bool:
    plan = desk.decide(job).plan
    if plan is not None:
        desk.start(job, plan)
    return plan is not None


def _said(job: TimedJob) -> float:
    return float("inf") if job.expected_s is None else job.expected_s


EASY = Cycles("easy", Parameters(window=None, overdue=0.0, reservations=1, crowded=None, declined=None))
"""EASY backfilling: by arrival; the first that has no place has room kept, and others go ahead that do not delay it."""

RIVALS: tuple[Policy, ...] = (
    FirstComeFirstServed(backfill=False),
    FirstComeFirstServed(),
    Ordered("sjf", _said),
    Ordered("priority", lambda job: -job.priority),
    EASY,
    DominantShare(),
    LeastAttained(),
)
