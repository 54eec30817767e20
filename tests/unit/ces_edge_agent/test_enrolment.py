"""Joining a cluster whose manager is busy."""

from __future__ import annotations

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
