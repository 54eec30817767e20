"""Health over HTTP."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from ces_common.health import KEPT_S, health_app, serve_http


@asynccontextmanager
async def serving(
    missing: str | None, remark: str | None = None, token: str | None = None
) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        serve_http(health_app("scheduler", lambda: missing, token, remark), "127.0.0.1", 0) as port,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client,
    ):
        yield client


async def test_health_of_a_ready_service() -> None:
    async with serving(None) as client:
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        assert (await client.get("/readyz")).status_code == 200
        metrics = (await client.get("/metrics")).text
        assert "python_info" in metrics
        assert 'ces_build_info{service="scheduler",version="' in metrics
        assert "\nces_ready 1.0\n" in metrics


def test_clients_let_go_of_idle_connections_long_before_the_service_closes_them() -> None:
    held_s = httpx.Limits().keepalive_expiry
    assert held_s is not None
    assert 2 * held_s < KEPT_S


async def test_health_of_one_that_is_not() -> None:
    async with serving("the database") as client:
        assert (await client.get("/healthz")).status_code == 200
        answer = await client.get("/readyz")
        assert (answer.status_code, answer.json()["missing"]) == (503, "the database")


async def test_metrics_of_one_that_is_not_ready_say_so() -> None:
    async with serving("the database") as client:
        assert "\nces_ready 0.0\n" in (await client.get("/metrics")).text


async def test_metrics_need_the_token_that_there_is_and_health_needs_none() -> None:
    async with serving(None, token="what-prometheus-knows") as client:
        refused = await client.get("/metrics")
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert "python_info" not in refused.text
        for wrong in ("Bearer what-prometheus-guesses", "Basic what-prometheus-knows", "what-prometheus-knows", ""):
            assert (await client.get("/metrics", headers={"Authorization": wrong})).status_code == 401
        known = {"Authorization": "Bearer what-prometheus-knows"}
        assert "python_info" in (await client.get("/metrics", headers=known)).text
        assert (await client.get("/readyz")).status_code == 200


async def test_health_of_one_that_is_ready_but_not_as_it_was_meant() -> None:
    async with serving(None, "the policy is refused") as client:
        answer = await client.get("/readyz")
        assert (answer.status_code, answer.json()) == (200, {"status": "ready", "remark": "the policy is refused"})


async def test_a_taken_port_is_an_error_and_not_the_end_of_the_process() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError):
            async with serve_http(health_app("scheduler", lambda: None), "127.0.0.1", port):
                pass


async def test_no_half_of_an_answer_waits_for_the_clients_word() -> None:
    """asyncio sets this by itself only on some sockets."""
    made: list[socket.socket] = []
    create = socket.create_server

    def created(*arguments: Any, **more: Any) -> socket.socket:
        made.append(create(*arguments, **more))
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "create_server", created)
        async with serving(None):
            [listener] = made
            assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY), "which its connections inherit"
