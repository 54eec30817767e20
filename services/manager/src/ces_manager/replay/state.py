"""The cluster as it was, as the REST API tells it to those who may see all of it or some tenants' jobs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection
from datetime import datetime
from typing import Any, Final

from sqlalchemy import select

from ces_common.db.outbox import latest_event
from ces_common.db.tables import EventRow
from ces_common.db.uow import ReadTx
from ces_common.messages.dashboard import Instant, PastFlow, PastState
from ces_common.messages.identities import Identity
from ces_manager.database import Database
from ces_manager.errors import Overloaded
from ces_manager.live.picture import shown
from ces_manager.replay.changes import change_after, change_before, last_failure
from ces_manager.replay.keyframes import oldest_kept
from ces_manager.replay.past import Past, flows_of, picture_of
from ces_manager.replay.replay import commit_before, past_at

_OF_OTHERS = ("held_by", "holders")


MAX_WAITING: Final = 32  # replays
MAX_WAITING_OF_ONE: Final = 4


class Replays:
    """One at a time: a replay keeps a core busy for as long as it takes, and whoever drags a slider asks for many."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._turn = asyncio.Lock()
        self._waiting: Counter[str] = Counter()

    async def state(self, who: Identity, at: datetime | None, event: int | None, failure: bool) -> bytes:
        """A PastState in JSON, as far as somebody may see it; ``failure``: after the last one, if there is one. Raises
        NotFound; Overloaded where too many wait."""
        now = self._database.clock.now()
        if self._waiting.total() >= MAX_WAITING or self._waiting[who.name] >= MAX_WAITING_OF_ONE:
            raise Overloaded(f"{self._waiting.total()} replays are under way; try again in a moment")

        def look(tx: ReadTx) -> bytes:
            found = _last_failure(tx, who.tenants) if failure else event
            past = past_at(tx, now, at=at, event=found)
            return _told(tx, past, who.tenants, now).encode()

        self._waiting[who.name] += 1
        try:
            async with self._turn:
                return await self._database.tell(look)
        finally:
            self._waiting[who.name] -= 1
            if not self._waiting[who.name]:
                del self._waiting[who.name]


def _last_failure(tx: ReadTx, tenants: Collection[str] | None) -> int | None:
    oldest = oldest_kept(tx)
    return None if oldest is None else last_failure(tx, oldest.sequence, latest_event(tx), tenants)


def _told(tx: ReadTx, past: Past, tenants: Collection[str] | None, now: datetime) -> PastState:
    oldest, latest = oldest_kept(tx), latest_event(tx)
    assert oldest is not None  # or there would be no past
    time = tx.session.scalar(select(EventRow.time).where(EventRow.sequence == latest))
    before = commit_before(tx, past.sequence)
    changed = None if before is None else change_before(tx, before)
    told = shown(picture_of(past), tenants)
    if tenants is not None:
        told["jobs"] = {name: _without_others(job) for name, job in told["jobs"].items()}
    flows = [
        PastFlow(
            job=job,
            number=number,
            src=flow.src,
            dst=flow.dst,
            min=flow.min,
            max=flow.max,
            rate=flow.rate,
            path=flow.path,
        )
        for job, number, flow in flows_of(past)
        if job in told["jobs"]
    ]
    return PastState(
        event=past.sequence,
        before=before if before is not None and before >= oldest.sequence else None,
        change_before=changed if changed is not None and changed >= oldest.sequence else None,
        change_after=change_after(tx, past.sequence),
        oldest=Instant(event=oldest.sequence, at=oldest.time),
        newest=Instant(event=latest, at=time or now),
        flows=flows,
        **{name: told[name] for name in ("at", "nodes", "links", "media", "jobs", "counts")},
    )


def _without_others(job: dict[str, Any]) -> dict[str, Any]:
    """Without the jobs that it waited for: they may be of other tenants."""
    status = (job.get("waiting") or {}).get("queue_status")
    if not status:
        return job
    own = {name: value for name, value in status.items() if name not in _OF_OTHERS}
    return job | {"waiting": job["waiting"] | {"queue_status": own}}
