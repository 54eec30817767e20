"""Holes that CES once had, or would have if a rule of its own were left out: each can be opened again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ces_common.db import WriteTx
from ces_common.db.tables import InboxRow
from ces_common.messages.reports import LeaseGrant
from ces_edge_agent.documents import StoredDocument
from ces_edge_agent.reconcilers.starts import Starts
from ces_edge_agent.reconcilers.workers import WorkerReconciler
from ces_manager.jobs import lifecycle
from ces_manager.messaging import heartbeat_intake
from ces_manager.nodes import expiry
from ces_manager.plans import preemption

Hole = tuple[Any, str, Callable[..., Any]]


def _without_generation(lease_s: float, epoch: str, least_generation: int) -> LeaseGrant:
    return LeaseGrant(lease_s=lease_s, epoch=epoch, least_generation=0)


def _again(tx: WriteTx, message_id: str) -> bool:
    if tx.session.get(InboxRow, message_id) is None:
        tx.session.add(InboxRow(id=message_id, consumed_at=tx.now))
    return True


HOLES: dict[str, Hole] = {
    "a lease begins again by any document": (StoredDocument, "check_reached", lambda *_: None),
    "a grant names no generation": (heartbeat_intake, "LeaseGrant", _without_generation),
    "what was prepared starts whatever has changed": (WorkerReconciler, "_still_starts", lambda *_: True),
    "places are free before agents confirm": (lifecycle, "_confirmed", lambda *_: True),
    "places are free when a lease may still hold": (expiry, "_gone", lambda *_: True),
    "nobody remembers what was started": (Starts, "by_worker", property(lambda _: {}, lambda *_: None)),  # type: ignore[dict-item]
    "a second set of victims goes before the first is gone": (preemption, "_check_earlier", lambda *_: None),
    "a message that comes again counts again": (WriteTx, "first_time", _again),
}


def open_again(hole: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*HOLES[hole], raising=False)
