"""Proposals to take room from running jobs for more urgent ones, and the answers they wait for."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import structlog
from prometheus_client import Counter
from ulid import ULID

from ces_common.bus.port import Bus
from ces_common.jobfile import Preemption
from ces_common.messages.events import new_event
from ces_common.messages.plans import PreemptionProposed, PreemptionRejected, Victim
from ces_core.queue.parameters import Parameters
from ces_core.queue.reservations import Preempted
from ces_scheduler.cycle_input import CycleInput
from ces_scheduler.proposals import Clock, backoff_s

log = structlog.get_logger()
ANSWER_S = 5.0  # after this long without an answer a proposal counts as lost
PROPOSED = Counter("ces_preemptions_proposed_total", "Preemptions proposed")


@dataclass(frozen=True)
class _Awaited:
    """A proposal that has had no effect yet."""

    preemption: str
    until: float


class Preemptions:
    def __init__(self, bus: Bus, source: str, clock: Clock) -> None:
        self._bus, self._source, self._clock = bus, source, clock
        self._awaited: dict[str, _Awaited] = {}  # by the job that room is made for
        self._stale: set[str] = set()  # those whose last proposal came too late
        self._refused, self._off_until = 0, clock()

    def __bool__(self) -> bool:
        """Whether room is being made."""
        return bool(self._awaited)

    @property
    def awaited(self) -> frozenset[str]:
        """The jobs for which a proposal waits for its answer."""
        now = self._clock()
        return frozenset(job for job, each in self._awaited.items() if now < each.until)

    def admitted(self, parameters: Parameters) -> Parameters:
        """The parameters, without preemption for a while after the manager would have none: it may go by another queue
        file, and until it has the same, no room is kept that nobody makes."""
        return replace(parameters, preemption=None) if self._clock() < self._off_until else parameters

    async def propose(
        self, preempted: Mapping[str, Preempted], given: CycleInput, version: int, before: Collection[str]
    ) -> float:
        """Propose the preemptions decided on from the state at ``version``; drop proposals that are not wanted any
        more. Those for the jobs of ``before``, whose proposals were awaited when the cycle began, are older: they are
        not proposed again, since others may have made room meanwhile. Returns after how many seconds to look again
        unasked. Raises BusError."""
        now = self._clock()
        self._stale &= preempted.keys()
        if self._awaited.keys() - preempted.keys():
            self._refused = 0  # one has shown effect
        self._awaited = {job: each for job, each in self._awaited.items() if job in preempted and now < each.until}
        for job, each in preempted.items():
            if job not in before:
                self._awaited[job] = _Awaited(await self._propose(job, each, given, version), now + ANSWER_S)
        dues = [each.until for each in self._awaited.values()]
        dues += [self._off_until] if now < self._off_until else []
        dues += [now] if preempted.keys() - self._awaited.keys() else []
        return min(dues, default=math.inf) - now

    def rejected(self, answer: PreemptionRejected) -> bool:
        """The manager's no; returns whether it changes what the next cycle decides. Where a job was not as it seemed
        (``stale``), that is at once the first time, and then when the answer is due, since leaving takes a while."""
        awaited = self._awaited.get(answer.job)
        if awaited is None or awaited.preemption != answer.preemption:
            return False
        log.info("a preemption was rejected", job=answer.job, reason=answer.reason)
        if answer.stale and answer.job in self._stale:
            self._stale.remove(answer.job)
            return False
        del self._awaited[answer.job]
        if answer.stale:
            self._stale.add(answer.job)
        else:
            self._refused += 1
            self._off_until = self._clock() + backoff_s(1 + self._refused)
        return True

    def forget(self) -> None:
        """The broker may have lost what was proposed: it is proposed again where it is still wanted."""
        self._awaited.clear()

    async def _propose(self, job: str, preempted: Preempted, given: CycleInput, version: int) -> str:
        """Returns the proposal's id."""
        holders, record = given.offer.records, given.records[job]
        hows: list[tuple[str, Preemption]] = [(name, "suspend") for name in preempted.suspended]
        hows += [(name, "stop") for name in preempted.stopped]
        victims = [Victim(job=holders[name].id, attempt=holders[name].attempt, how=how) for name, how in hows]
        name = str(ULID())
        proposal = PreemptionProposed(
            preemption=name, version=version, job=job, attempt=record.attempt, victims=victims
        )
        event = new_event(self._source, "preemption", "proposed", name, proposal, datetime.now(UTC), event_id=name)
        await self._bus.publish_fact(event.bus_subject, event.encode(), message_id=event.id)
        PROPOSED.inc()
        log.info("preemption proposed", job=job, victims=[victim.job for victim in victims], version=version)
        return name
