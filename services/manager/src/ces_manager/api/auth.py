"""Authentication by access tokens, and the roles that routes need. Health, the API's description and the dashboard's
own files are open, and so are requests that bring another proof: a join token, a node's key, a code. Devices that apply
bring none. Metrics have a token of their own beside those of operators."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Final

import structlog
from fastapi import Depends, Request
from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from ces_common.db import UNAVAILABLE, cause_of
from ces_common.messages.identities import Identity
from ces_common.metrics import METRICS, bearer_of, is_token
from ces_common.rates import SenderRate
from ces_common.roles import Role
from ces_common.tls.pins import PATH as AUTHORITY
from ces_manager.access.tokens import ROOT
from ces_manager.api.context import Context, context_of
from ces_manager.api.failure_counts import BURST, FAILURES_PER_S, FailureCounts, network_of
from ces_manager.api.problems import problem
from ces_manager.errors import Forbidden, NoRole, Unavailable

log = structlog.get_logger()
IDENTITY = "identity"

SESSIONS = "/v1/sessions"
APPLICANTS = "/v1/applicants"  # what is posted there needs no proof, since it admits nobody
PROVEN = frozenset({"/v1/nodes/join", "/v1/nodes/renew", SESSIONS})  # what is posted there proves itself
POSTED = PROVEN | {APPLICANTS}
HEALTH = frozenset({"/healthz", "/readyz"})
UNTOLD = HEALTH | {METRICS}  # asked so often that the access log leaves them out
PAGES = frozenset({"/", "/ui"})  # which lead to the dashboard
UI = "/ui/"
OPEN = HEALTH | {"/openapi.json", "/docs", AUTHORITY} | PAGES
REQUESTS_PER_S: Final = 100.0  # of one token, in the long run
REQUESTS_AT_ONCE: Final = 1000
ASKED_AGAIN_S: Final = 1.0  # after which it is looked whether a token is still good, of an answer that goes on


class BearerAuth:
    """Refuses every request without a token that admits somebody, before anything of it is read; says to what follows
    whose it is. Whoever guesses tokens waits."""

    def __init__(self, app: ASGIApp, context: Context, metrics_token: str | None = None) -> None:
        self._app, self._context, self._metrics_token = app, context, metrics_token
        self._failures = FailureCounts(FAILURES_PER_S, BURST)
        self._requests = SenderRate(REQUESTS_PER_S, REQUESTS_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not is_open(scope["method"], scope["path"]):
            answer = await self._admit(scope)
            if answer is not None:
                await answer(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _admit(self, scope: Scope) -> JSONResponse | None:
        """How a request is refused; None for one that is not."""
        token = bearer_of(scope["headers"])
        if scope["path"] == METRICS and self._metrics_token is not None and is_token(token, self._metrics_token):
            return None
        if token is None:
            return _unauthenticated("send a token: Authorization: Bearer <token>")
        address, now = network_of(scope["client"][0]) if scope.get("client") else "", time.monotonic()
        known, wait_s = self._context.identities.knows(token), self._failures.wait_s(address, now)
        if wait_s > 0 and not known:
            text = "too many wrong tokens came from this address, or too many that are not known yet"
            return problem(429, text, headers={"Retry-After": str(math.ceil(wait_s))})
        try:
            with nullcontext() if known else self._failures.attempt(address):
                identity = await self._context.identities.of(token)
        except NoRole as error:
            return problem(403, error.detail)
        except Forbidden as error:
            self._failures.failed(address, time.monotonic())
            return _unauthenticated(error.detail)
        except Unavailable as error:
            return problem(503, error.detail)
        except UNAVAILABLE as error:
            log.error("the database does not answer", error=cause_of(error))
            return problem(503, "the database does not answer; try again in a moment")
        scope.setdefault("state", {})[IDENTITY] = identity
        # Whoever has the first token could start the manager with other limits as well.
        if identity is not ROOT and not self._requests.allows(identity.name, now):
            return problem(429, f"token {identity.name} asks too often", headers={"Retry-After": "1"})
        return None


def is_open(method: str, path: str) -> bool:
    """Whether it needs no token."""
    return path in OPEN or path.startswith(UI) or (method == "POST" and path in POSTED)


def still_admitted(request: Request) -> Callable[[], Awaitable[bool]]:
    """For an answer that goes on and on, to be asked before each part of it: whether the token that the request came
    with still admits somebody. Yes, where that cannot be found out now, and it has not expired."""
    identities, clock = context_of(request).identities, context_of(request).database.clock
    token, expires_at = bearer_of(request.scope["headers"]) or "", identity_of(request).expires_at
    asked_at, good = clock.steady(), True

    async def admitted() -> bool:
        nonlocal asked_at, good
        if good and clock.steady() - asked_at >= ASKED_AGAIN_S:
            asked_at = clock.steady()
            if expires_at is not None and expires_at <= clock.now():
                good = False
                return good
            try:
                await identities.of(token)
            except Forbidden:
                good = False
            except (Unavailable, *UNAVAILABLE):
                pass
        return good

    return admitted


def _unauthenticated(detail: str) -> JSONResponse:
    return problem(401, detail, headers={"WWW-Authenticate": "Bearer"})


def identity_of(request: Request) -> Identity:
    """Who asks. Only behind BearerAuth, and not on open addresses."""
    identity: Identity = request.scope["state"][IDENTITY]
    return identity


class Requires:
    """A dependency of a route: it needs one of these roles."""

    def __init__(self, *roles: Role) -> None:
        self.roles = roles

    def __call__(self, request: Request) -> None:
        """Raises Forbidden."""
        identity = identity_of(request)
        if not any(identity.role.includes(role) for role in self.roles):
            needed = " or ".join(self.roles)
            raise Forbidden(f"this needs the role {needed}, and token {identity.name} has {identity.role}")


VIEWER, SUBMITTER, AUDITOR, OPERATOR, ADMIN = (Depends(Requires(role)) for role in Role)
AUDITED = Depends(Requires(Role.VIEWER, Role.AUDITOR))  # what an audit reads
