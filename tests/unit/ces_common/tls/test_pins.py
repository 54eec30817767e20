"""Tokens that say whom to trust."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from tls_server import certified, https

from ces_common.tls.pins import PATH, Untrusted, authority_at, fingerprint_of, pinned, secret_of

FINGERPRINT = "ab" * 32
PROVIDERS = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhbm4ifQ." + "aB3-" * 22


@pytest.mark.parametrize("secret", ["s3cret_-", "ces_01JD_x-y", "a.b"])
def test_a_token_is_taken_apart_as_it_was_put_together(secret: str) -> None:
    assert secret_of(pinned(secret, FINGERPRINT)) == secret
    assert fingerprint_of(pinned(secret, FINGERPRINT)) == FINGERPRINT
    assert pinned(secret, None) == secret


@pytest.mark.parametrize("token", ["secret", PROVIDERS, f"secret.{FINGERPRINT[:-1]}", f".{FINGERPRINT}", ""])
def test_a_token_without_a_fingerprint_is_all_secret(token: str) -> None:
    assert (secret_of(token), fingerprint_of(token)) == (token, None)


def saying(text: str, status: int = 200) -> Starlette:
    async def authority(_: object) -> Response:
        return PlainTextResponse(text, status)

    return Starlette(routes=[Route(PATH, authority)])


async def test_an_authority_is_taken_only_if_it_is_the_one_that_the_token_names(tmp_path: Path) -> None:
    authority, file = certified(tmp_path / "own")
    other, _ = certified(tmp_path / "other")
    async with https(saying(other.pem + authority.pem), file) as url:
        assert await asyncio.to_thread(authority_at, url, authority.fingerprint) in authority.pem
        with pytest.raises(Untrusted, match="certified by another authority"):
            await asyncio.to_thread(authority_at, url, FINGERPRINT)


@pytest.mark.parametrize(
    ("text", "status", "error"),
    [
        ("no certificate", 200, Untrusted),
        ("-----BEGIN CERTIFICATE-----\nbm8=\n-----END CERTIFICATE-----", 200, Untrusted),
        ("-----BEGIN CERTIFICATE-----\n#\n-----END CERTIFICATE-----", 200, Untrusted),
        ("", 404, Untrusted),
        ("", 503, OSError),
    ],
)
async def test_who_says_nothing_of_use_is_not_trusted(
    tmp_path: Path, text: str, status: int, error: type[Exception]
) -> None:
    _, file = certified(tmp_path)
    async with https(saying(text, status), file) as url:
        with pytest.raises(error):
            await asyncio.to_thread(authority_at, url, FINGERPRINT)


async def test_nobody_there_is_no_matter_of_trust() -> None:
    with pytest.raises(OSError):
        await asyncio.to_thread(authority_at, "https://127.0.0.1:1", FINGERPRINT)
