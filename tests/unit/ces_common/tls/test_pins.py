"""Tokens that say whom to trust."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from tls_server import certified, https, serving

from ces_common.tls import pins
from ces_common.tls.pins import (
    PATH,
    Untrusted,
    authority_at,
    certificates_in,
    fingerprint_of,
    pem_of,
    pinned,
    secret_of,
    trusting,
)

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


def forged(true: bytes, false: bytes) -> str:
    """A text in which a lenient reader finds the true certificate, and OpenSSL the false one: it drops what follows a
    zero byte in a line."""
    hidden = "".join(f"\0{line}\n" for line in pem_of(true).splitlines()[1:-1])
    return f"-----BEGIN CERTIFICATE-----\n{hidden}{pem_of(false).partition(chr(10))[2]}"


async def test_a_text_that_two_readers_read_differently_is_not_trusted(tmp_path: Path) -> None:
    authority, _ = certified(tmp_path / "true")
    other, file = certified(tmp_path / "false")
    (true,), (false,) = certificates_in(authority.pem), certificates_in(other.pem)
    async with https(saying(forged(true, false)), file) as url:
        with pytest.raises(Untrusted):
            await asyncio.to_thread(authority_at, url, authority.fingerprint)


@pytest.mark.parametrize("text", ["", "\n", "no certificate", "-----BEGIN CERTIFICATE-----"])
def test_a_file_without_a_certificate_does_not_mean_all_that_the_machine_trusts(text: str) -> None:
    with pytest.raises(ValueError, match="holds no certificate"):
        trusting(text)


async def test_a_server_that_answers_for_ever_holds_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pins, "ANSWER_S", 0.5)
    _, file = certified(tmp_path)

    async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while True:
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                await writer.drain()
                await asyncio.sleep(0.01)

    server = await asyncio.start_server(drip, "127.0.0.1", 0, ssl=serving(file))
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    with pytest.raises(OSError):
        await asyncio.to_thread(authority_at, url, FINGERPRINT)
    server.close()
