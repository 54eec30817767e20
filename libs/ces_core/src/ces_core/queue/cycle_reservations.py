"""The reservations of one cycle, as they count in the outlook and in the tenants' shares."""

from __future__ import annotations

from collections.abc import Iterable

from ces_core.queue.jobs import RunningJob, WaitingJob
from ces_core.queue.ledger import Ledger
from ces_core.queue.outlook import Outlook
from ces_core.queue.preemption import given_up
from ces_core.queue.reservations import Preempted, Reservation
from ces_core.queue.shares import Shares, amounts_of


class CycleReservations:
    """Reservations by job (``kept``), in the order in which they were made."""

    def __init__(self, ledger: Ledger, outlook: Outlook, shares: Shares, running: Iterable[RunningJob]) -> None:
        self._ledger, self._outlook, self._shares = ledger, outlook, shares
        self._preemptible = {job.name: job.preemption for job in running if job.preemption is not None}
        self.kept: dict[str, Reservation] = {}

    def keep(self, job: WaitingJob, reservation: Reservation) -> None:
        """Reserve the plan's capacity from its start on. Capacity freed by preemption already counts as the
        tenant's."""
        self.kept[job.name] = reservation
        self._outlook.reserve(job.name, reservation.begin, job.expected_s, reservation.cells)
        if reservation.preempted is not None:
            self._shares.take(job.tenant, amounts_of(reservation.cells))

    def take(self, job: WaitingJob) -> Reservation | None:
        """Remove the job's reservation and return it; None if there was none."""
        reservation = self.kept.pop(job.name, None)
        self._outlook.forget(job.name)
        if reservation is not None and reservation.preempted is not None:
            self._shares.give_back(job.tenant, amounts_of(reservation.cells))
        return reservation

    def pending(self, reservation: Reservation) -> Preempted:
        """The jobs that were asked to make way for this reservation and still hold what they must give up."""
        wanted, found = reservation.preempted or Preempted(), self._preemptible
        return Preempted(
            tuple(name for name in wanted.suspended if name in found),
            tuple(name for name in wanted.stopped if name in found),
        )

    def all_pending(self) -> dict[str, Preempted]:
        """Waiting job -> its pending preemptions, if there are any."""
        return {job: wanted for job, each in self.kept.items() if (wanted := self.pending(each)).names}

    def expect_preemptions(self, reservation: Reservation) -> None:
        """Count what the pending preemptions will free as given up."""
        wanted = self.pending(reservation)
        for name in wanted.names:
            cells = given_up(self._ledger.held(name), suspended=name in wanted.suspended)
            self._outlook.give_up(name, cells)

    def can_be_met(self, reservation: Reservation, *, preempting: bool) -> bool:
        """Whether the jobs asked to make way still can, and will be told to. A job that was to be suspended but is
        starting again would have to be stopped instead."""
        wanted = self.pending(reservation)
        return all(self._preemptible[name] == "suspend" for name in wanted.suspended) and (
            preempting or not wanted.names
        )
