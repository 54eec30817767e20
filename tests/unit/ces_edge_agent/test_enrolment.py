"""Joining a cluster: when the manager is busy, and when somebody else answers in its place."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse
from tls_server import certified, https

from ces_common.health import serve_http
from ces_common.messages.cards import Card
from ces_common.messages.membership import JoinAnswer, JoinRequest
from ces_common.tls.certificates import Authority
from ces_common.tls.pins import PATH, pinned
from ces_edge_agent import enrolment
from ces_edge_agent.settings import AgentSettings

HERE = "nats://127.0.0.1:4222"
ADMITTED = JoinAnswer(node="n", jwt="j", nats_urls=[HERE], subnet="10.0.0.0/24").model_dump()


@pytest.mark.parametrize("status", [429, 503])
async def test_a_node_comes_again_where_the_manager_has_no_time_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(enrolment, "RETRY_S", 0.01)
    app, asked = FastAPI(), list[int]()

    @app.post("/v1/nodes/join")
    async def join() -> JSONResponse:
        asked.append(len(asked))
        if len(asked) < 3:
            return JSONResponse({}, status)
        return JSONResponse(
            JoinAnswer(node="n", jwt="j", nats_urls=["nats://127.0.0.1:4222"], subnet="10.0.0.0/24").model_dump()
        )

    async with serve_http(app, "127.0.0.1", 0) as port:
        url = f"http://127.0.0.1:{port}"
        settings = AgentSettings(node="n", manager_url=url, state_dir=tmp_path, join_token="t")
        membership = await enrolment.ensure_joined(settings)
    assert membership.exists()
    assert len(asked) == 3


@pytest.fixture
async def manager_url() -> AsyncIterator[str]:
    """A manager that admits every node."""
    app = FastAPI()

    @app.post("/v1/nodes/join")
    async def join() -> dict[str, object]:
        return ADMITTED

    async with serve_http(app, "127.0.0.1", 0) as port:
        yield f"http://127.0.0.1:{port}"


async def test_a_tokens_file_is_gone_once_the_node_has_joined(manager_url: str, tmp_path: Path) -> None:
    token = tmp_path / "join-token"
    token.write_text("t\n")
    settings = AgentSettings(node="n", manager_url=manager_url, state_dir=tmp_path / "state", join_token_file=token)
    await enrolment.ensure_joined(settings)
    assert not token.exists()
    assert (await enrolment.ensure_joined(settings)).exists()


async def test_a_tokens_file_that_an_earlier_end_left_is_gone_too(manager_url: str, tmp_path: Path) -> None:
    token = tmp_path / "join-token"
    token.write_text("t")
    settings = AgentSettings(node="n", manager_url=manager_url, state_dir=tmp_path / "state", join_token_file=token)
    await enrolment.ensure_joined(settings)
    token.write_text("t")
    await enrolment.ensure_joined(settings)
    assert not token.exists()


async def test_a_token_that_cannot_be_deleted_is_told_and_ends_nothing(
    manager_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    token = tmp_path / "join-token"
    token.write_text("very-secret")

    def refuses(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    settings = AgentSettings(node="n", manager_url=manager_url, state_dir=tmp_path / "state", join_token_file=token)
    monkeypatch.setattr(Path, "unlink", refuses)
    assert (await enrolment.ensure_joined(settings)).exists()
    said = capsys.readouterr().out
    assert "delete it" in said
    assert "very-secret" not in said


async def test_a_refused_token_is_kept(tmp_path: Path) -> None:
    app = FastAPI()

    @app.post("/v1/nodes/join")
    async def join() -> JSONResponse:
        return JSONResponse({"error": "no"}, 403)

    token = tmp_path / "join-token"
    token.write_text("t")
    async with serve_http(app, "127.0.0.1", 0) as port:
        url = f"http://127.0.0.1:{port}"
        settings = AgentSettings(node="n", manager_url=url, state_dir=tmp_path / "state", join_token_file=token)
        with pytest.raises(enrolment.JoinRefused):
            await enrolment.ensure_joined(settings)
    assert token.exists()


class Manager:
    """Admits every node, and says that ``authority`` certifies it."""

    def __init__(self, authority: Authority, nats_url: str = "tls://127.0.0.1:4222") -> None:
        self._authority, self._nats_url = authority, nats_url
        self.tokens: list[str] = []

    @property
    def app(self) -> FastAPI:
        app = FastAPI()

        @app.get(PATH, response_class=PlainTextResponse)
        async def authority() -> str:
            return self._authority.pem

        @app.post("/v1/nodes/join")
        async def join(request: JoinRequest) -> dict[str, object]:
            self.tokens.append(request.token)
            return JoinAnswer(node="n", jwt="j", nats_urls=[self._nats_url], subnet="10.0.0.0/24").model_dump()

        return app


def settings_of(url: str, folder: Path, token: str, **more: Any) -> AgentSettings:
    return AgentSettings(node="n", manager_url=url, state_dir=folder / "state", join_token=token, **more)


async def test_the_token_says_whom_to_trust_and_its_secret_alone_is_sent(tmp_path: Path) -> None:
    authority, file = certified(tmp_path)
    manager = Manager(authority)
    async with https(manager.app, file) as url:
        membership = await enrolment.ensure_joined(settings_of(url, tmp_path, pinned("s", authority.fingerprint)))
    assert manager.tokens == ["s"]
    assert membership.authority is not None
    assert membership.authority.read_text() in authority.pem


async def test_a_brought_along_authority_is_used_instead(tmp_path: Path) -> None:
    authority, file = certified(tmp_path)
    manager = Manager(authority)
    async with https(manager.app, file) as url:
        settings = settings_of(url, tmp_path, pinned("s", "ab" * 32), ca=tmp_path / "authority.pem")
        membership = await enrolment.ensure_joined(settings)
    assert manager.tokens == ["s"]
    assert membership.authority is None


async def test_who_answers_in_the_managers_place_gets_no_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(enrolment, "RETRY_S", 0.01)
    authority, _ = certified(tmp_path / "true")
    other, file = certified(tmp_path / "false")
    token = pinned("very-secret", authority.fingerprint)
    names_itself, names_the_true_one = Manager(other), Manager(authority)
    async with https(names_itself.app, file) as url:
        with pytest.raises(enrolment.JoinRefused, match="certified by another authority"):
            await enrolment.ensure_joined(settings_of(url, tmp_path, token))
    async with https(names_the_true_one.app, file) as url:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):  # it goes on trying: the true one may answer again
                await enrolment.ensure_joined(settings_of(url, tmp_path, token))
    assert "CERTIFICATE_VERIFY_FAILED" in capsys.readouterr().out
    assert names_itself.tokens == names_the_true_one.tokens == []


async def test_nothing_goes_to_another_machine_in_the_clear_unless_it_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(enrolment.JoinRefused, match=r"use https://, or set CES_INSECURE"):
        await enrolment.ensure_joined(settings_of("http://192.0.2.1:1", tmp_path, "s"))
    authority, file = certified(tmp_path)
    async with https(Manager(authority, "nats://192.0.2.1:4222").app, file) as url:
        token = pinned("s", authority.fingerprint)
        with pytest.raises(enrolment.JoinRefused, match=r"use tls://, or set CES_INSECURE"):
            await enrolment.ensure_joined(settings_of(url, tmp_path, token))
        settings = settings_of(url, tmp_path, token, insecure=True)
        assert (await enrolment.ensure_joined(settings)).exists()
    capsys.readouterr()
    await enrolment.ensure_joined(settings)  # a member from before stays one
    assert "in the clear: anybody on the way" in capsys.readouterr().out


async def test_cards_that_are_mere_numbers_are_only_counted(tmp_path: Path) -> None:
    """A manager of before admits no node that names cards."""
    app, asked = FastAPI(), list[dict[str, Any]]()

    @app.post("/v1/nodes/join")
    async def join(request: Request) -> dict[str, object]:
        asked.append(await request.json())
        return ADMITTED

    known = Card(id="gpu0", model="T4", memory=2**30)
    async with serve_http(app, "127.0.0.1", 0) as port:
        for number, cards in enumerate(([Card(id="gpu0"), Card(id="gpu1")], [known, Card(id="gpu1")])):
            folder = tmp_path / str(number)
            settings = AgentSettings(node="n", manager_url=f"http://127.0.0.1:{port}", state_dir=folder, join_token="t")
            await enrolment.ensure_joined(settings, cards)
    assert "cards" not in asked[0]
    assert [each["id"] for each in asked[1]["cards"]] == ["gpu0"]
    assert [each["gpu"] for each in asked] == [2, 2]
