"""The manager's metrics: who may read them, and how the API's requests are counted."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import cache
from typing import Final

from prometheus_client import Counter, Histogram
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ces_common.health import Ready
from ces_common.metrics import METRICS, SHORT, Exposition, registry_of
from ces_common.roles import Role
from ces_manager.api.auth import IDENTITY
from ces_manager.api.context import Context
from ces_manager.api.problems import problem
from ces_manager.api.statuses import tell_status
from ces_manager.live.cluster_metrics import ClusterMetrics

REQUESTS = Counter("ces_http_requests_total", "Requests answered", ["method", "route", "status"])
LATENCY = Histogram("ces_http_request_seconds", "Time until an answer began", ["method", "route"], buckets=SHORT)
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE"})
NO_ROUTE: Final = "none"  # refused before one was looked for, or there is none: paths that strangers make up
OTHER: Final = "other"


def metrics_route(context: Context, ready: Ready, *, links: bool) -> Route:
    """``links``: with some series for each link."""

    @cache
    def exposition() -> Exposition:  # made when somebody asks: to describe the API needs no database
        registry = registry_of("manager", lambda: ready() is None)
        cluster = ClusterMetrics(context.database, context.measurements, links=links)
        registry.register(cluster)
        return Exposition(registry, cluster.look)

    async def metrics(request: Request) -> Response:
        """They name all tenants and nodes."""
        identity = request.scope.get("state", {}).get(IDENTITY)
        if identity is not None and not identity.role.includes(Role.OPERATOR):
            return problem(403, f"metrics need the role operator, and token {identity.name} has {identity.role}")
        return await exposition().answer(request.headers.get("accept", ""))

    return Route(METRICS, metrics)


class RequestMetrics:
    """Counts requests by the route that answered them, never by their path: anybody may make those up. ``routes``:
    those that do not say themselves which they are, as the framework's own do."""

    def __init__(self, app: ASGIApp, routes: Iterable[BaseRoute]) -> None:
        self._app = app
        self._templates = {route.endpoint: route.path for route in routes if isinstance(route, Route)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        await tell_status(self._app, scope, receive, send, lambda status: self._count(scope, status, began))

    def _count(self, scope: Scope, status: int, began: float) -> None:
        method, route = scope["method"] if scope["method"] in METHODS else OTHER, self._route_of(scope)
        REQUESTS.labels(method, route, str(status)).inc()
        LATENCY.labels(method, route).observe(time.perf_counter() - began)

    def _route_of(self, scope: Scope) -> str:
        """The template of the route that answers, such as ``/v1/jobs/{job}``."""
        if "route" in scope:
            template: str = scope["route"].path
            return template
        return self._templates.get(scope["endpoint"], NO_ROUTE) if "endpoint" in scope else NO_ROUTE
