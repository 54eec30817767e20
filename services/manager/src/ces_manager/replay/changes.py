"""Which events change the cluster as it is drawn, the ones beside an instant, and the last one that was a failure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from sqlalchemy import and_, func, or_, select

from ces_common.db.tables import EventRow, JobRow
from ces_common.db.uow import ReadTx
from ces_common.messages.events import event_type
from ces_common.states import AllocationState, JobState

FAR: Final = 20_000  # events among which the next change is looked for
FARTHEST: Final = 200_000  # among which the last failure is
_KINDS = (
    *(("job", state.value) for state in JobState),
    *(("allocation", state.value) for state in AllocationState),
    *(("plan", kind) for kind in ("committed", "revised")),
    *(("resize", kind) for kind in ("committed", "ended")),
    *(("cpu", kind) for kind in ("committed", "released")),
    *(("move", kind) for kind in ("committed", "changed")),
    *((kind, "changed") for kind in ("node", "link", "topology")),
)
CHANGES: Final = tuple(event_type(*kind) for kind in _KINDS)  # what is told of waiting jobs is not drawn
# Quotation marks within a text are escaped, so that no reason can look like one of these.
_UNREACHABLE, _DOWN = '"change":"unreachable"', '"state":"down"'


def change_before(tx: ReadTx, sequence: int) -> int | None:
    """The last change up to this event."""
    near = and_(EventRow.sequence <= sequence, EventRow.sequence > sequence - FAR)
    return tx.session.scalar(select(func.max(EventRow.sequence)).where(near, EventRow.type.in_(CHANGES)))


def change_after(tx: ReadTx, sequence: int) -> int | None:
    """The first change after this event."""
    near = and_(EventRow.sequence > sequence, EventRow.sequence <= sequence + FAR)
    return tx.session.scalar(select(func.min(EventRow.sequence)).where(near, EventRow.type.in_(CHANGES)))


def last_failure(tx: ReadTx, oldest: int, latest: int, tenants: Collection[str] | None) -> int | None:
    """The last of these events by which a node or link went down or a job failed. ``tenants``: whose jobs; None for
    all."""
    failed = EventRow.type == event_type("job", JobState.FAILED.value)
    if tenants is not None:
        failed = and_(failed, EventRow.job.in_(select(JobRow.id).where(JobRow.tenant.in_(tenants))))
    query = select(EventRow.sequence).where(
        EventRow.sequence > max(oldest, latest - FARTHEST),
        or_(
            failed,
            and_(EventRow.type == event_type("node", "changed"), EventRow.body.contains(_UNREACHABLE)),
            and_(EventRow.type == event_type("link", "changed"), EventRow.body.contains(_DOWN)),
        ),
    )
    return tx.session.scalar(query.order_by(EventRow.sequence.desc()).limit(1))
