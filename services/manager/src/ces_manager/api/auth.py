"""Authentication by the admin token. Health, metrics and the API's description are open, and so is what agents ask, who
prove themselves by a join token or by their keys."""

from __future__ import annotations

import hmac
import stat
from pathlib import Path

from starlette.types import ASGIApp, Receive, Scope, Send

from ces_common.service import BadSetup
from ces_manager.api.problems import problem

AGENTS = frozenset({"/v1/nodes/join", "/v1/nodes/renew"})
OPEN = frozenset({"/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"}) | AGENTS
LEAST_LENGTH = 16


def read_secret(path: Path, what: str) -> str:
    """A secret from its file. Raises BadSetup when it is missing, short, or others could read it."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        secret = path.read_text().strip()
    except OSError as error:
        raise BadSetup(f"{what}: {path} cannot be read: {error.strerror}") from error
    if mode & 0o077:
        raise BadSetup(f"{what}: {path} can be read by others (mode {mode:o}): chmod 600 it")
    if len(secret) < LEAST_LENGTH:
        raise BadSetup(f"{what}: {path} holds less than {LEAST_LENGTH} characters")
    return secret


class BearerAuth:
    """Refuses every request without the token, before anything of it is read."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._token = app, token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in OPEN and not self._allowed(scope):
            answer = problem(
                401,
                "send the admin token: Authorization: Bearer <token>",
                headers={"WWW-Authenticate": "Bearer"},
            )
            await answer(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _allowed(self, scope: Scope) -> bool:
        for name, value in scope["headers"]:
            if name == b"authorization":
                kind, _, given = value.partition(b" ")
                return kind.lower() == b"bearer" and hmac.compare_digest(given.strip(), self._token)
        return False
