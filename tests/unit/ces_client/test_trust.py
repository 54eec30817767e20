"""Whom ``ces login`` and the SDK trust, and what they say to everybody else: nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from ces_command import ces
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from tls_server import certified, https

from ces_client import Client
from ces_client.context import load_context
from ces_client.errors import Unreachable
from ces_common.tls.certificates import Authority
from ces_common.tls.pins import PATH, pinned

WHO = {"name": "ci", "role": "submitter", "tenants": ["default"], "max_priority": 0}


class Manager:
    """Says that ``authority`` certifies it, and keeps what it is sent."""

    def __init__(self, authority: Authority) -> None:
        self._authority = authority
        self.tokens: list[str | None] = []

    async def answer(self, request: Request) -> Response:
        if request.url.path == PATH:
            return PlainTextResponse(self._authority.pem)
        self.tokens.append(request.headers.get("authorization"))
        return JSONResponse(WHO if request.url.path == "/v1/whoami" else {"items": [], "next": None})

    @property
    def app(self) -> Starlette:
        return Starlette(routes=[Route("/{path:path}", self.answer)])


async def command(*arguments: str, code: int = 0) -> str:
    """What a command says, beside a server of this test."""
    done = await asyncio.to_thread(ces, *arguments, code=code)
    return " ".join((done.stdout + done.stderr).split())


async def test_a_token_that_names_the_authority_is_all_that_login_needs(tmp_path: Path) -> None:
    authority, file = certified(tmp_path)
    token, manager = pinned("secret", authority.fingerprint), Manager(authority)
    async with https(manager.app, file) as url:
        assert "as ci, submitter" in await command("login", url, "--token", token)
        assert load_context().ca is not None
        await command("get", "nodes")
        for written in (url, url.replace("https", "HTTPS")):
            with Client(written, token) as client:
                assert (await asyncio.to_thread(client.whoami)).name == "ci"
    assert set(manager.tokens) == {f"Bearer {token}"}


async def test_whoever_answers_in_the_managers_place_is_told_nothing(tmp_path: Path) -> None:
    """With a certificate of their own, and with the true authority's in their mouth."""
    authority, _ = certified(tmp_path / "true")
    other, file = certified(tmp_path / "false")
    token = pinned("secret", authority.fingerprint)
    for said, complaint in ((other, "certified by another authority"), (authority, "CERTIFICATE_VERIFY_FAILED")):
        false = Manager(said)
        async with https(false.app, file) as url:
            assert complaint in await command("login", url, "--token", token, code=2)
            with Client(url, token, patience_s=0.5) as client, pytest.raises(Unreachable):
                await asyncio.to_thread(client.whoami)
        assert false.tokens == []


async def test_a_token_that_names_nobody_needs_somebodys_word(tmp_path: Path) -> None:
    authority, file = certified(tmp_path)
    manager = Manager(authority)
    async with https(manager.app, file) as url:
        said = await command("login", url, "--token", "secret", code=2)
        assert f"its authority is sha256:{authority.fingerprint}" in said
        assert manager.tokens == []
        wrong = await command("login", url, "--token", "secret", "--fingerprint", "ab" * 32, code=2)
        assert "certified by another authority" in wrong
        assert "64 hexadecimal digits" in await command("login", url, "--token", "s", "--fingerprint", "ab", code=2)
        as_openssl = "SHA256:" + ":".join(authority.fingerprint[i : i + 2].upper() for i in range(0, 64, 2))
        assert "as ci" in await command("login", url, "--token", "secret", "--fingerprint", as_openssl)
        assert "as ci" in await command("login", url, "--token", "secret", "--ca", str(tmp_path / "authority.pem"))


async def test_plain_http_to_another_machine_must_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "use https://, or add --insecure" in await command("login", "http://192.0.2.1:1", "--token", "s", code=2)
    monkeypatch.setenv("CES_URL", "http://192.0.2.1:1")
    monkeypatch.setenv("CES_TOKEN", "s")
    assert "CES_INSECURE=true" in await command("get", "nodes", code=2)
    monkeypatch.setenv("CES_INSECURE", "true")
    assert load_context().url == "http://192.0.2.1:1"


async def test_plain_http_to_a_server_of_tls_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority, file = certified(tmp_path)
    async with https(Manager(authority).app, file) as url:
        plain = url.replace("https:", "http:")
        monkeypatch.setattr("ces_client.cli.machine.LOGIN_S", 0.2)
        assert f"it may speak TLS: `ces login {url}`" in await command("login", plain, "--token", "s", code=2)
