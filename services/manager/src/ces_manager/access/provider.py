"""An OpenID provider: its keys, and the tokens that it signs (OpenID Connect Discovery 1.0, RFC 7517, RFC 7519)."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, Final

import httpx
import structlog
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet, import_key
from joserfc.jwt import JWTClaimsRegistry

from ces_common.messages.identities import Identity
from ces_manager.access.grants import GrantsFile, identity_of
from ces_manager.errors import Forbidden, Unavailable
from ces_manager.settings import provider_url

log = structlog.get_logger()
DISCOVERY: Final = "/.well-known/openid-configuration"
ALGORITHMS: Final = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
LARGEST_ANSWER: Final = 1024 * 1024  # bytes
ANSWER_S: Final = 5.0
KEYS_S: Final = 300.0  # after which its keys are asked for again
OLDEST_KEYS_S: Final = 3600.0  # for how long they are believed while it does not answer
MOST_KEYS: Final = 100
AGAIN_S: Final = 10.0  # between two looks for a key that it did not have
LEEWAY_S: Final = 30  # by which its clock may differ
JWT: Final = re.compile(r"(?=.{1,8192}$)[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)


class Provider:
    """``audience``: whom its tokens must be for."""

    def __init__(
        self,
        url: str,
        audience: str,
        grants: GrantsFile,
        clock: Callable[[], float] = time.monotonic,
        *,
        ca: Path | None = None,
    ) -> None:
        self._url, self._grants, self._clock = url, grants, clock
        self._tls = ssl.create_default_context(cafile=ca)
        self._keys = KeySet([])
        self._looked = self._failed = float("-inf")
        self._lock = asyncio.Lock()
        self._claims = JWTClaimsRegistry(
            leeway=LEEWAY_S,
            iss={"essential": True, "value": url},
            aud={"essential": True, "value": audience},
            exp={"essential": True},
        )

    async def identity(self, token: str) -> Identity:
        """Whom it is about. Raises Forbidden for a token that is not good here, Unavailable where the provider must be
        asked for its keys, and does not answer."""
        age_s = self._clock() - self._looked
        if age_s >= KEYS_S:
            with suppress(Unavailable) if age_s < OLDEST_KEYS_S else nullcontext():
                await self._look()
        try:
            claims = self._checked(token)
        except _UnknownKey as unknown:
            if self._clock() - self._looked < AGAIN_S:
                raise Forbidden(f"{self._url} has not signed this token") from unknown
            await self._look()  # it may have a new one
            try:
                claims = self._checked(token)
            except _UnknownKey as error:
                raise Forbidden(f"{self._url} has not signed this token") from error
        return identity_of(claims, self._grants)

    def _checked(self, token: str) -> dict[str, Any]:
        """Its claims. Raises _UnknownKey, Forbidden."""
        try:
            read = jwt.decode(token, self._keys, algorithms=ALGORITHMS)
        except Exception as error:  # whatever a stranger's bytes make the library raise
            raise _UnknownKey from error
        try:
            self._claims.validate(read.claims)
        except JoseError as error:
            raise Forbidden(f"this token of {self._url} is not good: {error.description or error.error}") from error
        return dict(read.claims)

    async def _look(self) -> None:
        """Ask for its keys; once for all who wait for them. Raises Unavailable."""
        came = self._clock()
        async with self._lock:
            if self._looked >= came:  # somebody else asked meanwhile
                return
            if self._clock() - self._failed < AGAIN_S:
                raise Unavailable(f"the OpenID provider {self._url} did not answer lately; try again in a moment")
            try:
                self._keys = await _keys_of(self._url, self._tls)
            except Exception as error:  # whatever its bytes make libraries raise
                self._failed = self._clock()
                log.warning("the OpenID provider does not tell its keys", provider=self._url, error=repr(error))
                raise Unavailable(f"the OpenID provider {self._url} does not answer as it should") from error
            self._looked = self._clock()


class _UnknownKey(Exception):
    """No key that is known has signed it."""


async def _keys_of(url: str, tls: ssl.SSLContext) -> KeySet:
    """Those of its keys that are understood (RFC 7517, section 5). Raises anything."""
    async with httpx.AsyncClient(timeout=ANSWER_S, trust_env=False, verify=tls) as http, asyncio.timeout(ANSWER_S):
        told = await _document(http, url.rstrip("/") + DISCOVERY)
        if told["issuer"] != url:
            raise ValueError(f"it calls itself {told['issuer']!r}")
        listed = (await _document(http, provider_url(told["jwks_uri"])))["keys"]
    keys = []
    for key in listed[:MOST_KEYS]:
        try:
            keys.append(import_key(key))
        except Exception as error:
            log.info("a key of the OpenID provider is not understood", provider=url, error=repr(error))
    if not keys:
        raise ValueError("it has no key that is understood")
    return KeySet(keys)


async def _document(http: httpx.AsyncClient, url: str) -> Any:
    """Raises httpx.HTTPError, httpx.InvalidURL, ValueError."""
    async with http.stream("GET", url) as answer:
        answer.raise_for_status()
        body = b""
        async for part in answer.aiter_bytes():
            body += part
            if len(body) > LARGEST_ANSWER:
                raise ValueError(f"{url} answers with more than {LARGEST_ANSWER} bytes")
    return json.loads(body)
