"""Plans that wait for the manager's answer, and jobs that are left alone for a while after a rejection. No I/O."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ces_common.messages.plans import PlanRejected
from ces_common.messages.records import JobRecord
from ces_scheduler.cycle_input import Proposed

IN_FLIGHT_S = 20.0  # after this long without an answer a proposal counts as lost: the manager may be busy
LONGEST_BACKOFF_S = 30.0
Clock = Callable[[], float]  # seconds, steady


def backoff_s(count: int) -> float:
    """Seconds to wait after this many rejections in a row, though the proposals fit as far as can be seen from here.
    None after the first, which may be due to a change in between."""
    return 0.0 if count < 2 else min(LONGEST_BACKOFF_S, 0.25 * 2.0 ** min(count, 16))


@dataclass(frozen=True)
class Rejections:
    """How often the manager rejected in a row what fits as far as can be seen from here; nothing is proposed before
    ``until``."""

    count: int = 0
    until: float = -math.inf


@dataclass(frozen=True)
class _InFlight:
    plan: str
    proposed: Proposed
    until: float


@dataclass(frozen=True)
class _Rejected:
    """A job whose plans the manager does not take, though they fit as far as can be seen from here."""

    attempt: int
    count: int
    until: float  # not tried before


class Proposals:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._in_flight: dict[str, _InFlight] = {}
        self._rejected: dict[str, _Rejected] = {}

    def __bool__(self) -> bool:
        """Whether time alone will bring a job back into the queue."""
        return bool(self._in_flight or self._rejected)

    @property
    def in_flight(self) -> list[Proposed]:
        """The proposals without an answer."""
        return [entry.proposed for entry in self._in_flight.values()]

    def settle(self, queued: Mapping[str, JobRecord]) -> None:
        """Forget what is answered by the state, or lost. ``queued``: by id."""
        now = self._clock()
        self._in_flight = {
            job: entry
            for job, entry in self._in_flight.items()
            if job in queued and queued[job].attempt == entry.proposed.job.attempt and now < entry.until
        }
        self._rejected = {
            job: entry
            for job, entry in self._rejected.items()
            if job in queued and queued[job].attempt == entry.attempt
        }

    @property
    def absent(self) -> frozenset[str]:
        """The queued jobs that may not be proposed now."""
        now = self._clock()
        return frozenset(self._in_flight) | {job for job, entry in self._rejected.items() if now < entry.until}

    def made(self, plan: str, proposed: Proposed) -> None:
        self._in_flight[proposed.job.id] = _InFlight(plan, proposed, self._clock() + IN_FLIGHT_S)

    def rejected(self, data: PlanRejected) -> bool:
        """The manager's no; returns whether it is to a plan that waits for its answer. It may be to another scheduler's
        plan, or to an earlier one."""
        entry = self._in_flight.get(data.job)
        if entry is None or entry.plan != data.plan:
            return False
        del self._in_flight[data.job]
        before = self._rejected.get(data.job)
        count = before.count + 1 if before is not None and before.attempt == data.attempt else 1
        self._rejected[data.job] = _Rejected(data.attempt, count, self._clock() + backoff_s(count))
        return True

    def impossible(self, job: JobRecord) -> None:
        """The job's plan cannot be proposed at all."""
        self._rejected[job.id] = _Rejected(job.attempt, 1, self._clock() + LONGEST_BACKOFF_S)

    def forget(self) -> None:
        """The broker may have lost what was proposed. The manager takes no plan twice."""
        self._in_flight.clear()
