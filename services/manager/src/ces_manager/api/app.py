"""The application: routes, authentication, limits, errors."""

from __future__ import annotations

from typing import Any

from fastapi import Depends, FastAPI
from fastapi.security import HTTPBearer
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware

from ces_common.health import Ready, health_routes
from ces_common.messages.api import Problem
from ces_manager.api import (
    adjustments,
    applicants,
    audits,
    cluster,
    dashboard,
    decompositions,
    energy,
    etags,
    jobs,
    policy,
    problems,
    regions,
    secrets,
    sessions,
    tokens,
    users,
    work,
)
from ces_manager.api.access_log import AccessLog
from ces_manager.api.auth import BearerAuth
from ces_manager.api.context import Context
from ces_manager.api.description_page import description_route
from ces_manager.api.failed_attempts import FailedAttempts
from ces_manager.api.limits import BodyLimit, StreamLimit, ZeroCharacters
from ces_manager.api.metrics import RequestMetrics, metrics_route
from ces_manager.api.pages import page_routes

ROUTERS = (
    *(jobs.router, cluster.router, applicants.router, dashboard.router, audits.router, energy.router),
    *(regions.router, tokens.router, sessions.router, secrets.router, work.router, policy.router),
    *(decompositions.router, adjustments.router, users.router),
)
COMPRESSED = 2048  # bytes from which an answer is; what shows a secret is shorter
LEVEL = 1  # of nine: the manager has other things to do
DESCRIPTION = "Places distributed-training jobs on edge nodes, with bandwidth and path for every flow."
REFUSAL = {"description": "Refused", "content": {problems.MEDIA_TYPE: {"schema": Problem.model_json_schema()}}}
REFUSALS: dict[int | str, dict[str, Any]] = {"default": REFUSAL}
# It refuses nothing (BearerAuth does), but tells readers of the description how to send the token.
TOKEN = Depends(HTTPBearer(auto_error=False, description="An access token"))


def make_app(
    context: Context,
    ready: Ready,
    *,
    ui: bool = True,
    metrics_token: str | None = None,
    metrics_of_links: bool = True,
) -> FastAPI:
    """``ui``: with the dashboard. ``metrics_token``: by which metrics may be read, and nothing else."""
    app = FastAPI(
        title="CES",
        version="1",
        description=DESCRIPTION,
        docs_url=None,  # the framework's pages load programs from elsewhere
        redoc_url=None,
        responses=REFUSALS,
        dependencies=[TOKEN],
    )
    app.state.context = context
    problems.install(app)
    etags.install(app)
    for router in ROUTERS:
        app.include_router(router)
    metrics = metrics_route(context, ready, links=metrics_of_links)
    app.router.routes.extend([*health_routes(ready), metrics, description_route(app.openapi)])
    if ui:
        app.router.routes.extend(page_routes())
    # What is followed line by line is sent as it comes; the dashboard's files are compressed already.
    as_it_comes = (*DEFAULT_EXCLUDED_CONTENT_TYPES, "text/plain")
    app.add_middleware(GZipMiddleware, minimum_size=COMPRESSED, compresslevel=LEVEL, exclude_content_types=as_it_comes)
    app.add_middleware(StreamLimit)  # behind the token's check
    app.add_middleware(BodyLimit)
    app.add_middleware(ZeroCharacters)
    app.add_middleware(BearerAuth, context=context, metrics_token=metrics_token)
    app.add_middleware(FailedAttempts)
    app.add_middleware(AccessLog)
    app.add_middleware(RequestMetrics, routes=list(app.routes))
    return app
