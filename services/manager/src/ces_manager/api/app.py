"""The application: routes, authentication, limits, errors."""

from __future__ import annotations

from fastapi import FastAPI

from ces_common.health import Ready, health_routes
from ces_manager.api import cluster, jobs, problems
from ces_manager.api.auth import BearerAuth
from ces_manager.api.context import Context
from ces_manager.api.limits import BodyLimit

DESCRIPTION = "Places distributed-training jobs on edge nodes, with bandwidth and path for every flow."


def make_app(context: Context, token: str, ready: Ready) -> FastAPI:
    app = FastAPI(title="CES", version="1", description=DESCRIPTION, redoc_url=None)
    app.state.context = context
    problems.install(app)
    app.include_router(jobs.router)
    app.include_router(cluster.router)
    app.router.routes.extend(health_routes(ready))
    app.add_middleware(BodyLimit)
    app.add_middleware(BearerAuth, token=token)
    return app
