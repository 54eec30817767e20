"""Devices that have applied to be made nodes. Anybody may apply, so little is kept of them and not for long, and what
they say admits nobody: an operator's ssh goes to them, and looks whose host key is there."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import ColumnElement, delete, func, select

from ces_common.db.access_tables import ApplicantRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.api import Page
from ces_common.messages.membership import Applicant, ApplicantRequest, RefusedApplicants
from ces_manager.cursors import cursor_number
from ces_manager.errors import Conflict, NotFound

LASTS: Final = timedelta(days=1)
ONE_NETWORK: Final = 4  # one of how many places those of one network may take
APPLICATIONS_PER_S, APPLICATIONS_AT_ONCE = 1.0, 50  # of all networks together, that are written down


def check_room(tx: ReadTx, request: ApplicantRequest, address: str, network: str, most: int, now: datetime) -> None:
    """Raises NotFound where devices do not apply here, Conflict where too many have already. ``most``: at a time."""
    if not most:
        raise NotFound("devices do not apply to this manager; CES_MAX_APPLICANTS says how many may")
    others = [
        ApplicantRow.ends_at > now,
        (ApplicantRow.name != request.name) | (ApplicantRow.address != address),
    ]
    here = max(1, most // ONE_NETWORK)
    if _count(tx, *others) >= most:
        raise Conflict(f"{most} devices have applied, which is all that may: have some accepted or refused first")
    if _count(tx, *others, ApplicantRow.network == network) >= here:
        raise Conflict(f"{here} devices have applied from {network}: have some accepted or refused first")


def look_up(
    tx: ReadTx, request: ApplicantRequest, address: str, network: str, most: int, now: datetime
) -> Applicant | None:
    """What is kept already, where this device has said the same before; it stays no longer for that. Raises NotFound,
    Conflict."""
    check_room(tx, request, address, network, most, now)
    row = tx.session.get(ApplicantRow, (request.name, address))
    if row is None or row.ends_at <= now:
        return None
    same = all(getattr(row, field) == value for field, value in request.model_dump().items())
    return _applicant(row) if same else None


def keep_applicant(tx: WriteTx, request: ApplicantRequest, address: str, network: str, most: int) -> Applicant:
    """Write it down, in place of what came under this name from this address before. Raises NotFound, Conflict."""
    check_room(tx, request, address, network, most, tx.now)
    row = ApplicantRow(address=address, network=network, ends_at=tx.now + LASTS, **request.model_dump())
    return _applicant(tx.session.merge(row))


def list_applicants(tx: ReadTx, now: datetime, *, cursor: str | None, limit: int) -> Page[Applicant]:
    """In the order of their names; the cursor is how many were seen."""
    seen = cursor_number(cursor)
    query = select(ApplicantRow).where(ApplicantRow.ends_at > now)
    query = query.order_by(ApplicantRow.name, ApplicantRow.address).offset(seen).limit(limit + 1)
    rows = tx.session.scalars(query).all()
    items = [_applicant(row) for row in rows[:limit]]
    return Page[Applicant](items=items, next=str(seen + limit) if len(rows) > limit else None)


def refuse_applicants(tx: WriteTx, name: str) -> RefusedApplicants:
    """Forget all that have applied under this name. Raises NotFound."""
    kept = ApplicantRow.ends_at > tx.now
    found = tx.session.scalars(select(ApplicantRow.address).where(ApplicantRow.name == name, kept)).all()
    if not found:
        raise NotFound(f"no device has applied as {name}")
    forget_applicants(tx, name)
    return RefusedApplicants(name=name, addresses=sorted(found))


def forget_applicants(tx: WriteTx, name: str) -> None:
    gone = delete(ApplicantRow).where(ApplicantRow.name == name)
    tx.session.execute(gone, execution_options={"synchronize_session": False})


def _count(tx: ReadTx, *which: ColumnElement[bool]) -> int:
    return tx.session.scalar(select(func.count()).select_from(ApplicantRow).where(*which)) or 0


def _applicant(row: ApplicantRow) -> Applicant:
    return Applicant(
        name=row.name,
        address=row.address,
        user=row.user,
        port=row.port,
        arch=row.arch,
        host_keys=row.host_keys,
        applied_at=row.ends_at - LASTS,
        ends_at=row.ends_at,
    )
