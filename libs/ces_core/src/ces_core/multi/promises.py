"""The reservations of a cycle: what is kept for whom, in the outlook and in the tenants' shares, and who makes room."""

from __future__ import annotations

from collections.abc import Iterable

from ces_core.ledger import Ledger
from ces_core.multi.jobs import RunningJob, WaitingJob
from ces_core.multi.outlook import Outlook
from ces_core.multi.preempting import given_up
from ces_core.multi.reservations import Preempted, Reservation
from ces_core.multi.shares import Shares, amounts_of


class Promises:
    """``kept``: by job, in the order in which they were made."""

    def __init__(self, ledger: Ledger, outlook: Outlook, shares: Shares, running: Iterable[RunningJob]) -> None:
        self._ledger, self._outlook, self._shares = ledger, outlook, shares
        self._preemptible = {job.name: job.preemption for job in running if job.preemption is not None}
        self.kept: dict[str, Reservation] = {}

    def keep(self, job: WaitingJob, promise: Reservation) -> None:
        """From its moment on nobody else gets this. What others make room for counts as the tenant's already."""
        self.kept[job.name] = promise
        self._outlook.reserve(job.name, promise.begin, job.expected_s, promise.cells)
        if promise.preempted is not None:
            self._shares.take(job.tenant, amounts_of(promise.cells))

    def take(self, job: WaitingJob) -> Reservation | None:
        """What was kept for the job, and is no more."""
        promise = self.kept.pop(job.name, None)
        self._outlook.forget(job.name)
        if promise is not None and promise.preempted is not None:
            self._shares.give_back(job.tenant, amounts_of(promise.cells))
        return promise

    @property
    def waited_for(self) -> int:
        """How many wait until others end by themselves."""
        return sum(each.preempted is None for each in self.kept.values())

    def untold(self, promise: Reservation) -> Preempted:
        """Of those who are to make room for it, who still has what it is to give up."""
        told, found = promise.preempted or Preempted(), self._preemptible
        return Preempted(
            tuple(name for name in told.suspended if name in found),
            tuple(name for name in told.stopped if name in found),
        )

    def untold_of_all(self) -> dict[str, Preempted]:
        """The same of all promises, by the job that waits, where anybody has."""
        return {job: told for job, each in self.kept.items() if (told := self.untold(each)).names}

    def reckon(self, promise: Reservation) -> None:
        """With it that they do give it up."""
        told = self.untold(promise)
        for name in told.names:
            cells = given_up(self._ledger.held(name), suspended=name in told.suspended)
            self._outlook.give_up(name, cells)

    def can_be_met(self, promise: Reservation, *, preempting: bool) -> bool:
        """Whether those who are to make room for it still can, and will be told to. One that was to be suspended and
        is starting again would have to be stopped."""
        told = self.untold(promise)
        return all(self._preemptible[name] == "suspend" for name in told.suspended) and (preempting or not told.names)
