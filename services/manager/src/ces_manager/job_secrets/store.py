"""Secrets in the database: stored, listed and removed by people, and never shown to them again."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from sqlalchemy import ColumnElement, LargeBinary, func, select, tuple_
from ulid import ULID

from ces_common.db.tables import SecretRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.api import Page
from ces_common.messages.secrets import SecretChanged, SecretView
from ces_manager.cursors import secret_cursor
from ces_manager.errors import Conflict, NotFound
from ces_manager.job_secrets.keys import ID_LENGTH, SecretKeys, Unreadable

MAX_OF_TENANT = 256
NO_KEY = "this manager has no key to encrypt secrets: name a file with one as CES_SECRETS_KEY_FILE, and restart it"
_SHOWN = select(SecretRow.tenant, SecretRow.name, SecretRow.updated_at, SecretRow.updated_by)


def put_secret(tx: WriteTx, keys: SecretKeys | None, tenant: str, name: str, value: bytes, by: str) -> SecretView:
    """Store it, in place of another of its name. Raises Conflict."""
    if keys is None:
        raise Conflict(NO_KEY)
    row = tx.session.get(SecretRow, (tenant, name))
    if row is None:
        of_tenant = select(func.count()).select_from(SecretRow).where(SecretRow.tenant == tenant)
        if (tx.session.scalar(of_tenant) or 0) >= MAX_OF_TENANT:
            raise Conflict(f"tenant {tenant} has {MAX_OF_TENANT} secrets, which is all that it may have: remove some")
        row = SecretRow(tenant=tenant, name=name, id=str(ULID.from_datetime(tx.now)))
        tx.session.add(row)
    row.sealed, row.updated_at, row.updated_by = keys.seal(tenant, name, value), tx.now, by
    _tell(tx, "stored", row)
    return _view(row)


def remove_secret(tx: WriteTx, tenant: str, name: str) -> SecretView:
    """Raises NotFound."""
    row = tx.session.get(SecretRow, (tenant, name))
    if row is None:
        raise NotFound(f"tenant {tenant} has no secret {name}")
    tx.session.delete(row)
    _tell(tx, "removed", row)
    return _view(row)


def list_secrets(tx: ReadTx, *, tenants: Collection[str] | None, cursor: str | None, limit: int) -> Page[SecretView]:
    """In the order of tenants and names. ``tenants``: whose; None for all. What is sealed stays in the database."""
    place = tuple_(SecretRow.tenant, SecretRow.name)
    query = _SHOWN.order_by(SecretRow.tenant, SecretRow.name).limit(limit + 1)
    if tenants is not None:
        query = query.where(SecretRow.tenant.in_(tenants))
    seen = secret_cursor(cursor)
    if seen is not None:
        query = query.where(place > tuple_(*seen))
    rows = tx.session.execute(query).all()
    page = [SecretView.model_validate(row, from_attributes=True) for row in rows[:limit]]
    last = f"{page[-1].tenant}/{page[-1].name}" if len(rows) > limit else None
    return Page[SecretView](items=page, next=last)


def reseal(tx: WriteTx, keys: SecretKeys) -> int:
    """Encrypt with the first key what another one has sealed, so that this one may go; returns how many it were. One
    that is damaged stays as it is."""
    done = 0
    for row in tx.session.scalars(select(SecretRow).where(_of_former(keys))).all():
        with suppress(Unreadable):
            row.sealed = keys.seal(row.tenant, row.name, keys.unseal(row.tenant, row.name, row.sealed))
            done += 1
    return done


def has_former(tx: ReadTx, keys: SecretKeys) -> bool:
    """Whether another key than the first has sealed some."""
    return tx.session.scalar(select(SecretRow.id).where(_of_former(keys)).limit(1)) is not None


def _of_former(keys: SecretKeys) -> ColumnElement[bool]:
    return func.substr(SecretRow.sealed, 1, ID_LENGTH, type_=LargeBinary).in_(keys.former)


def _tell(tx: WriteTx, kind: str, row: SecretRow) -> None:
    tx.emit("secret", kind, row.id, SecretChanged(tenant=row.tenant, name=row.name))


def _view(row: SecretRow) -> SecretView:
    return SecretView.model_validate(row, from_attributes=True)
