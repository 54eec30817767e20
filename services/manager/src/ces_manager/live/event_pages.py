"""Pages of the events that are kept, the newest first."""

from __future__ import annotations

import json
from collections.abc import Collection

from ces_common.db.outbox import EventFilter, events_before, latest_event, oldest_event
from ces_common.db.uow import ReadTx
from ces_common.messages.api import Page
from ces_common.messages.dashboard import NumberedEvent
from ces_manager.cursors import event_cursor

FAR = 20_000  # events that one page looks through


def events_page(
    tx: ReadTx, which: EventFilter, kinds: str | Collection[str], *, cursor: str | None, limit: int
) -> Page[NumberedEvent]:
    """``kinds``: how their types begin, or which types; the cursor is the last number that was looked at."""
    before = event_cursor(cursor) or latest_event(tx) + 1
    found, seen = events_before(tx, before, which, kinds, limit, FAR)
    items = [NumberedEvent(number=event.sequence, event=json.loads(event.body)) for event in found]
    return Page[NumberedEvent](items=items, next=str(seen) if seen > oldest_event(tx) else None)
