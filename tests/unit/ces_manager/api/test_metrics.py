"""Requests are counted by their routes, and by nothing that strangers make up."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import APIRouter, FastAPI
from prometheus_client import REGISTRY
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ces_manager.api.metrics import NO_ROUTE, OTHER, RequestMetrics


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    app, router = FastAPI(), APIRouter(prefix="/made")

    @router.get("/up/{name}")
    async def up(name: str) -> str:
        return name

    @router.post("/up/{name}/fails")
    async def fails(name: str) -> str:
        raise RuntimeError(name)

    async def page(_: Request) -> Response:
        return Response("page")

    app.include_router(router)
    app.router.routes.append(Route("/made-pages/{path:path}", page))
    app.add_middleware(RequestMetrics, routes=list(app.routes))
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://manager") as client:
        yield client


def counted(method: str, route: str, status: int) -> float:
    labels = {"method": method, "route": route, "status": str(status)}
    return REGISTRY.get_sample_value("ces_http_requests_total", labels) or 0.0


@pytest.mark.parametrize(
    ("method", "path", "as_method", "route", "status"),
    [
        ("GET", "/made/up/anna", "GET", "/made/up/{name}", 200),
        ("POST", "/made/up/anna", "POST", "/made/up/{name}", 405),
        ("POST", "/made/up/anna/fails", "POST", "/made/up/{name}/fails", 500),
        ("GET", "/made-pages/a/b.js", "GET", "/made-pages/{path:path}", 200),
        ("GET", "/made/up-by-a-stranger", "GET", NO_ROUTE, 404),
        ("BREW", "/made/up/anna", OTHER, "/made/up/{name}", 405),
    ],
)
async def test_a_request_counts_for_its_route(
    http: httpx.AsyncClient, method: str, path: str, as_method: str, route: str, status: int
) -> None:
    before = counted(as_method, route, status)
    assert (await http.request(method, path)).status_code == status
    assert counted(as_method, route, status) == before + 1
    took = REGISTRY.get_sample_value("ces_http_request_seconds_count", {"method": as_method, "route": route})
    assert took


async def test_no_label_holds_what_was_asked_for(http: httpx.AsyncClient) -> None:
    await http.get("/made/up/somebody-was-here")
    await http.get("/somebody-was-there")
    labels = {text for family in REGISTRY.collect() for each in family.samples for text in each.labels.values()}
    assert not [text for text in labels if "somebody" in text]
