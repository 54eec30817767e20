"""Links as the REST API shows them, with what agents measured last."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import func, select

from ces_common.db.tables import EventRow, LinkRow
from ces_common.db.uow import ReadTx
from ces_common.messages.api import LinkView, Page
from ces_common.messages.reports import LinkUsage
from ces_manager.availability.views import availability_of_links
from ces_manager.columns import shared_columns
from ces_manager.cursors import cursor_number
from ces_manager.errors import NotFound
from ces_manager.measurements import Measurements
from ces_manager.plans.residual import held_on_links


def list_links(tx: ReadTx, measurements: Measurements, *, cursor: str | None, limit: int) -> Page[LinkView]:
    """In order of their ends; the cursor is the number of links seen."""
    after = cursor_number(cursor)
    views = link_views_of(tx, measurements, after, limit + 1)
    return Page[LinkView](items=views[:limit], next=str(after + limit) if len(views) > limit else None)


def link_view(tx: ReadTx, measurements: Measurements, src: str, dst: str) -> LinkView:
    """Raises NotFound."""
    row = tx.session.get(LinkRow, (src, dst))
    if row is None:
        raise NotFound(f"no link {src} › {dst}: ces get links lists those that there are")
    (view,) = _link_views(tx, measurements, [row])
    return view.model_copy(update={"last_up": _last_up(tx, row)})


def link_views_of(tx: ReadTx, measurements: Measurements, after: int = 0, limit: int | None = None) -> list[LinkView]:
    query = select(LinkRow).order_by(LinkRow.src, LinkRow.dst).offset(after).limit(limit)
    return _link_views(tx, measurements, tx.session.scalars(query).all())


def _link_views(tx: ReadTx, measurements: Measurements, rows: Sequence[LinkRow]) -> list[LinkView]:
    sources = {row.src for row in rows}
    reserved, availability = held_on_links(tx, sources), availability_of_links(tx, sources)
    views = []
    for row in rows:
        usage = measurements.link(row.src, row.dst)
        views.append(
            LinkView(
                **shared_columns(row, LinkView),
                reserved=reserved.get((row.src, row.dst), 0),
                used=usage.sent if usage else None,
                drops=usage.drops if usage else None,
                errors=usage.errors if usage else None,
                reason=row.state_reason,
                round_trip_s=_round_trip(row, usage),
                availability=availability.get((row.src, row.dst)),
            )
        )
    return views


def _last_up(tx: ReadTx, row: LinkRow) -> int | None:
    """Found by its instant, of which there is an index: all that is committed together has one."""
    if row.state == "up" or row.state_since is None:
        return None
    first = tx.session.scalar(select(func.min(EventRow.sequence)).where(EventRow.time == row.state_since))
    return None if first is None else first - 1


def _round_trip(row: LinkRow, usage: LinkUsage | None) -> float | None:
    if usage is not None and usage.round_trip_s is not None:
        return usage.round_trip_s
    return None if row.round_trip_us is None else row.round_trip_us / 1e6
