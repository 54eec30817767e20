"""Who asks the API: access tokens, and what they allow."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Self

from pydantic import Field, model_validator

from ces_common.fields import Document, Name
from ces_common.messages.base import Message
from ces_common.quantities import Duration
from ces_common.roles import Role

MAX_PRIORITY = 100
MAX_TENANTS = 64  # of one token
SHORTEST_S, LONGEST_S = 60, 10 * 365 * 86400
USUAL_S = 90 * 86400
Priority = Annotated[int, Field(ge=0, le=MAX_PRIORITY)]


class Allowance(Document):
    """What somebody may do. ``tenants``: whose jobs they see, or submit; of ``viewer`` and ``submitter`` only.
    ``max_priority``: no job that they submit is more urgent."""

    role: Role
    tenants: Annotated[list[Name], Field(max_length=MAX_TENANTS)] = []
    max_priority: Priority = MAX_PRIORITY

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.role.has_tenants and not self.tenants:
            raise ValueError(f"tenants: say whose jobs a {self.role} may see, such as [default]")
        if self.tenants and not self.role.has_tenants:
            raise ValueError(f"tenants: leave them out, since the role {self.role} is for all tenants")
        if len(set(self.tenants)) < len(self.tenants):
            raise ValueError("tenants: name each of them once")
        return self


class AccessTokenRequest(Allowance):
    """``POST /v1/tokens``. ``lasts``: for how long it is good."""

    name: Name
    lasts: Annotated[Duration, Field(ge=SHORTEST_S, le=LONGEST_S)] = USUAL_S


class Identity(Message):
    """Who asks, and what that allows. ``tenants``: None for all. ``session``: of the dashboard, if it is one that
    asks."""

    name: str
    role: Role
    tenants: list[str] | None = None
    max_priority: int = MAX_PRIORITY
    expires_at: datetime | None = None
    session: str | None = None

    def sees(self, tenant: str) -> bool:
        """Whether this tenant's jobs concern it."""
        return self.tenants is None or tenant in self.tenants


class AccessTokenView(Identity):
    """An access token without its secret. ``last_used_at``: to the minute."""

    created_at: datetime
    created_by: str
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None


class NewAccessToken(Message):
    """``token`` is shown once and never again."""

    token: str
    access: AccessTokenView


class SessionCode(Message):
    """What begins a session of the dashboard, once."""

    code: str
    expires_at: datetime


class SessionRequest(Document):
    """``POST /v1/sessions``."""

    code: Annotated[str, Field(max_length=128)]


class NewSession(Message):
    """``token`` is shown once and never again."""

    token: str
    expires_at: datetime
    identity: Identity


class SessionView(Message):
    """A session of the dashboard, or a code that may begin one (``opened_at``: None). ``holder``: the name of the token
    that it came from."""

    id: str
    holder: str
    role: Role
    tenants: list[str] | None = None
    opened_at: datetime | None = None
    expires_at: datetime


class SessionChanged(Message):
    """A session of the dashboard began, or was ended before its time."""

    holder: str
    role: Role
    tenants: list[str] | None = None


class TokenChanged(Message):
    """An access token was made, or revoked."""

    name: str
    role: Role
    tenants: list[str] | None = None
