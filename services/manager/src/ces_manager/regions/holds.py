"""What regions hold for each other, and what has become of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, TypeVarTuple

from sqlalchemy import Select, select

from ces_common.db.region_tables import AwayRow, GuestRow, PartRow, SplitRow
from ces_common.db.tables import JobRow
from ces_common.db.uow import ReadTx
from ces_common.messages.region_holds import HoldList, HoldState, HoldView
from ces_common.messages.regions import MAX_HOLDS
from ces_common.messages.split import PartState
from ces_common.states import JOB_OVER
from ces_manager.regions.held import PLACED

Row = TypeVarTuple("Row")
_GUESTS = select(GuestRow, JobRow).join(JobRow, JobRow.id == GuestRow.job)
_PARTS = select(PartRow, JobRow).join(JobRow, JobRow.id == PartRow.job)
_AWAY = select(AwayRow, JobRow).join(JobRow, JobRow.id == AwayRow.job).where(AwayRow.region.is_not(None))
_SPLIT = select(SplitRow, JobRow).join(JobRow, JobRow.id == SplitRow.job)


def holds(tx: ReadTx, region: str, tenants: Collection[str] | None = None, most: int = MAX_HOLDS) -> HoldList:
    """``region``: this one, which is not told of what it holds for itself. ``tenants``: whose jobs, as they are called
    here; None for all. ``most``: of each side."""
    guests = tx.session.execute(_newest(_GUESTS, tenants, most)).all()
    parts = tx.session.execute(_newest(_PARTS.where(PartRow.home != region), tenants, most)).all()
    away = tx.session.execute(_newest(_AWAY, tenants, most)).all()
    split = tx.session.execute(_newest(_SPLIT, tenants, most)).all()
    here = [(row, _held_here(guest, row)) for guest, row in guests]
    here += [(row, _held_here(part, row)) for part, row in parts]
    there = [(row, _held_there(job, row)) for job, row in away]
    there += [(row, _part_there(job, part, row)) for job, row in split for part in job.parts if part.region != region]
    return HoldList(here=_first(here, most), there=_first(there, most), more=max(len(here), len(there)) > most)


def _first(found: Iterable[tuple[JobRow, HoldView]], most: int) -> list[HoldView]:
    """In the order of ``_newest``."""
    in_order = sorted(found, key=lambda each: (each[0].live, each[0].id), reverse=True)
    return [view for _, view in in_order[:most]]


def _newest(query: Select[*Row], tenants: Collection[str] | None, most: int) -> Select[*Row]:
    query = query if tenants is None else query.where(JobRow.tenant.in_(tenants))
    return query.order_by(JobRow.live.desc(), JobRow.id.desc()).limit(most + 1)


def _held_here(guest: GuestRow | PartRow, row: JobRow) -> HoldView:
    state = _state(row, committed=guest.committed, placed=row.state in PLACED)
    return HoldView(
        **_of_job(row),
        region=guest.home,
        state=state,
        attempt=guest.home_attempt,
        part=guest.part if isinstance(guest, PartRow) else None,
        since=row.submitted_at,
        ends=guest.hold_until if state in ("waiting", "held") else None,
        home_job=guest.home_job,
    )


def _held_there(away: AwayRow, row: JobRow) -> HoldView:
    """It was decided, so that it has its place there."""
    return HoldView(
        **_of_job(row),
        region=away.region or "",
        state=_state(row, committed=away.committed and not away.forgotten, placed=True),
        attempt=away.attempt or 0,
        since=away.decided_at,
        remote_state=away.remote_state,
        unknown_since=away.unknown_since,
    )


def _part_there(split: SplitRow, part: PartState, row: JobRow) -> HoldView:
    """It was decided, so that it has its place there unless that region has said otherwise since."""
    state: HoldState = "committed" if part.committed else "released" if part.lost else "held"
    return HoldView(
        **_of_job(row),
        region=part.region,
        state=state,
        attempt=split.attempt,
        part=part.part,
        remote_state=part.state,
        unknown_since=split.unknown_since,
    )


def _state(row: JobRow, *, committed: bool, placed: bool) -> HoldState:
    if committed:
        return "committed"
    if row.state in JOB_OVER:
        return "released"
    return "held" if placed else "waiting"


def _of_job(row: JobRow) -> dict[str, Any]:
    return {
        "job": row.id,
        "name": row.name,
        "tenant": row.tenant,
        "job_state": row.state,
        "finished_at": row.finished_at,
    }
