"""Holes that CES once had, or would have if a rule of its own were left out: each can be opened again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from ces_common.db import WriteTx
from ces_common.db.tables import AllocationRow, InboxRow, JobRow
from ces_common.messages.reports import LeaseGrant
from ces_edge_agent.documents import StoredDocument
from ces_edge_agent.reconcilers.starts import Starts
from ces_edge_agent.reconcilers.workers import WorkerReconciler
from ces_manager.jobs import lifecycle, transitions
from ces_manager.jobs.lifecycle import Course
from ces_manager.jobs.next_size import take_over
from ces_manager.messaging import heartbeat_intake
from ces_manager.nodes import expiry
from ces_manager.plans import cpu_change, preemption
from ces_manager.timeouts import Timeouts


@dataclass(frozen=True)
class Hole:
    """``name`` of ``where`` is what closes it, ``opened`` what stands in its place. ``found``: what an auditor says.
    ``seed``: of random histories that came upon it soon when this was written."""

    where: Any
    name: str
    opened: object
    found: str
    seed: int = 0


def _without_generation(lease_s: float, epoch: str, least_generation: int) -> LeaseGrant:
    return LeaseGrant(lease_s=lease_s, epoch=epoch, least_generation=0)


def _again(tx: WriteTx, message_id: str) -> bool:
    if tx.session.get(InboxRow, message_id) is None:
        tx.session.add(InboxRow(id=message_id, consumed_at=tx.now))
    return True


def _at_once(tx: WriteTx, row: JobRow, course: Course) -> None:
    if row.next_size is not None:
        take_over(tx, row)


def _not_held(tx: WriteTx, allocation: AllocationRow, cpu: int) -> None:
    allocation.cpu_desired, allocation.cpu_since = cpu, tx.version


def _silent(age_s: float, timeouts: Timeouts, longer_s: float = 0.0) -> bool:
    return age_s > timeouts.unreachable_after_s


TWICE = "runs twice|started twice|given away|and runs"
FORGETFUL = property(lambda _: {}, lambda *_: None)
HOLES = {
    "a lease begins again by any document": Hole(StoredDocument, "check_reached", lambda *_: None, TWICE),
    "a grant names no generation": Hole(heartbeat_intake, "LeaseGrant", _without_generation, TWICE),
    "what was prepared starts whatever has changed": Hole(WorkerReconciler, "_still_starts", lambda *_: True, TWICE, 2),
    "places are free before agents confirm": Hole(lifecycle, "_confirmed", lambda *_: True, TWICE, 3),
    "places are free while a lease may hold": Hole(expiry, "is_lost", _silent, TWICE),
    "a new size starts while the former one ends": Hole(
        transitions, "_settle_size", _at_once, f"{TWICE}|for a former attempt|sent away", 3
    ),
    "nobody remembers what was started": Hole(Starts, "by_worker", FORGETFUL, "started twice"),
    "others go before those sent first are gone": Hole(preemption, "_check_earlier", lambda *_: None, "sent away", 5),
    "workers may use more CPU than is held": Hole(cpu_change, "desire_cpu", _not_held, "has [0-9]+ and runs", 6),
    "a message that comes again counts again": Hole(WriteTx, "first_time", _again, "answered 2 times", 1),
}


def open_again(hole: str, monkeypatch: pytest.MonkeyPatch) -> None:
    each = HOLES[hole]
    monkeypatch.setattr(each.where, each.name, each.opened, raising=False)
