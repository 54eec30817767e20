"""The tables of who is let in: tokens with which nodes join, access tokens, sessions. Times are UTC."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from ces_common.db.tables import ID, Base
from ces_common.db.types import Json, UtcTime


class JoinTokenRow(Base):
    """``hash``: SHA-256 of the token. ``used_by``: the public key that the token admitted. ``used_for``: a digest of
    the request that it admitted."""

    __tablename__ = "join_tokens"
    hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    node: Mapped[str | None] = mapped_column(String(63))
    expires_at: Mapped[datetime] = mapped_column(UtcTime, index=True)
    used_at: Mapped[datetime | None] = mapped_column(UtcTime)
    used_by: Mapped[str | None] = mapped_column(String(56))
    used_for: Mapped[str | None] = mapped_column(String(64))


class ApplicantRow(Base):
    """A device that has applied to be made a node: ``address``, from which it did, and what it claims. ``network``:
    that address, or in IPv6 the /48 that it lies in."""

    __tablename__ = "applicants"
    name: Mapped[str] = mapped_column(String(63), primary_key=True)
    address: Mapped[str] = mapped_column(String(64), primary_key=True)
    network: Mapped[str] = mapped_column(String(64))
    user: Mapped[str] = mapped_column(String(32))
    port: Mapped[int] = mapped_column(Integer)
    arch: Mapped[str | None] = mapped_column(String(32))
    host_keys: Mapped[list[str]] = mapped_column(Json(list[str]))
    ends_at: Mapped[datetime] = mapped_column(UtcTime, index=True)


class AccessTokenRow(Base):
    """An access token: ``id`` is in it, of the rest only ``hash`` (SHA-256) is kept. ``tenants``: none for all. Its
    name stays taken when it is revoked: events name it."""

    __tablename__ = "access_tokens"
    name: Mapped[str] = mapped_column(String(63), primary_key=True)
    id: Mapped[str] = mapped_column(ID, unique=True)
    hash: Mapped[str] = mapped_column(String(64))
    role: Mapped[str] = mapped_column(String(16))
    tenants: Mapped[list[str] | None] = mapped_column(Json(list[str] | None))
    max_priority: Mapped[int] = mapped_column(Integer)
    created_at: Mapped[datetime] = mapped_column(UtcTime)
    created_by: Mapped[str] = mapped_column(String(128))
    expires_at: Mapped[datetime] = mapped_column(UtcTime)
    last_used_at: Mapped[datetime | None] = mapped_column(UtcTime)
    revoked_at: Mapped[datetime | None] = mapped_column(UtcTime)


class SessionRow(Base):
    """A session of the dashboard, begun by whoever holds ``holder``, the name of an access token or of a person whom a
    provider knows, with the same rights. ``hash`` (SHA-256): of its one-time code until ``opened_at``, of its own
    secret from then on. ``root_hash``: of the secret that the manager was started with, if that one began it."""

    __tablename__ = "sessions"
    id: Mapped[str] = mapped_column(ID, primary_key=True)
    hash: Mapped[str] = mapped_column(String(64))
    holder: Mapped[str] = mapped_column(String(128))
    role: Mapped[str] = mapped_column(String(16))
    tenants: Mapped[list[str] | None] = mapped_column(Json(list[str] | None))
    max_priority: Mapped[int] = mapped_column(Integer)
    root_hash: Mapped[str | None] = mapped_column(String(64))
    opened_at: Mapped[datetime | None] = mapped_column(UtcTime)
    holder_expires_at: Mapped[datetime | None] = mapped_column(UtcTime)
    expires_at: Mapped[datetime] = mapped_column(UtcTime, index=True)
