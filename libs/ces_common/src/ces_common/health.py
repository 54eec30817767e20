"""/healthz (the process turns), /readyz (it can do its work) and /metrics, for services without an API of their own."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import structlog
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ces_common.metrics import METRICS, Exposition, refusal, registry_of

log = structlog.get_logger()

KEPT_S = 15
"""Seconds after which an idle connection is closed: long after clients let go of it (httpx: 5 s), since one that asks
in the very moment in which it is closed gets no answer."""

Ready = Callable[[], str | None]  # None when ready, else what is missing
COMPILING = "the solver is being compiled"  # missing for a minute or more, once for each machine


def health_routes(ready: Ready, remark: str | None = None) -> list[Route]:
    """/healthz and /readyz. ``remark``: what an operator should know of a service that does its work all the same."""

    async def healthz(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def readyz(_: Request) -> Response:
        missing = ready()
        if missing is None:
            return JSONResponse({"status": "ready"} | ({"remark": remark} if remark is not None else {}))
        return JSONResponse({"status": "not ready", "missing": missing}, status_code=503)

    return [Route("/healthz", healthz), Route("/readyz", readyz)]


class _Server(uvicorn.Server):
    """Signals are the service's business, not the web server's."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serve_http(app: ASGIApp, host: str, port: int, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Serve an app while the context lasts; gives the port. ``tls``: with the server's certificate, which may be
    replaced while it serves; None: plain HTTP. Raises OSError when the port is taken."""
    # bound here, since the web server would end the process where it cannot
    listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    # asyncio sets this only on sockets that name their protocol, and each answer would wait 40 ms for the client's
    # acknowledgement of its first half.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=2,
        timeout_keep_alive=KEPT_S,
        ssl_context_factory=None if tls is None else lambda *_: tls,
    )
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:
        if task.done():
            task.result()
            raise OSError(f"the HTTP server did not start on {host}:{port}")
        await asyncio.sleep(0.01)
    bound = server.servers[0].sockets[0].getsockname()[1]
    log.info("http listening", host=host, port=bound)
    try:
        yield bound
    finally:
        server.should_exit = True
        await task


def health_app(service: str, ready: Ready, metrics_token: str | None = None, remark: str | None = None) -> Starlette:
    """``metrics_token``: who has it may read the metrics; None: whoever asks on this machine."""
    exposition = Exposition(registry_of(service, lambda: ready() is None))

    async def metrics(request: Request) -> Response:
        refused = refusal(request, metrics_token)
        return await exposition.answer(request.headers.get("accept", "")) if refused is None else refused

    return Starlette(routes=[*health_routes(ready, remark), Route(METRICS, metrics)])
