"""Joining a cluster whose manager is busy."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.responses import JSONResponse

from ces_common.health import serve_http
from ces_common.messages.api import JoinAnswer
from ces_edge_agent import enrolment
from ces_edge_agent.settings import AgentSettings


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
        return JSONResponse(JoinAnswer(node="n", jwt="j", nats_urls=["nats://x"], subnet="10.0.0.0/24").model_dump())

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
        return JoinAnswer(node="n", jwt="j", nats_urls=["nats://x"], subnet="10.0.0.0/24").model_dump()

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
