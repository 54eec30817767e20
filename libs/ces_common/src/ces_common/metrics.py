"""Metrics over HTTP for Prometheus: what they are written in, who may read them, and how often they are worked out."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable, Iterable
from importlib.metadata import version
from ipaddress import ip_address
from typing import Final

from prometheus_client import REGISTRY, CollectorRegistry, Gauge, disable_created_metrics
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ces_common.tls.pins import secret_of

# One more series for each counter and histogram, of which nobody asks anything.
disable_created_metrics()  # type: ignore[no-untyped-call]

METRICS: Final = "/metrics"
KEPT_S: Final = 1.0
"""For how long what was written is given to whoever asks next: no number of readers costs more than one."""

# Seconds: the usual range, for what mostly takes milliseconds and now and then seconds.
SHORT: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
# Seconds: for what jobs wait for, from a moment to a week.
LONG: Final = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 4 * 3600.0, 24 * 3600.0, 7 * 24 * 3600.0)


class _Whole(Collector):
    """All that this process counts anywhere."""

    def collect(self) -> Iterable[Metric]:
        return REGISTRY.collect()


def registry_of(service: str, ready: Callable[[], bool]) -> CollectorRegistry:
    """All that this process counts, and what it says of itself."""
    registry = CollectorRegistry()
    registry.register(_Whole())
    build = Gauge(
        "ces_build_info", "Which service this is, and of which version", ["service", "version"], registry=registry
    )
    build.labels(service, version("ces-common")).set(1)
    Gauge("ces_ready", "Whether the service can do its work", registry=registry).set_function(ready)
    return registry


class Exposition:
    """What there is to read, in the format that the reader's ``Accept`` asks for: OpenMetrics, or Prometheus's text.
    ``look``: called before it is written, to have at hand what is not counted all the time. Written in a thread, by one
    reader at a time."""

    def __init__(self, registry: CollectorRegistry, look: Callable[[], Awaitable[None]] | None = None) -> None:
        self._registry, self._look = registry, look
        self._turn = asyncio.Lock()
        self._written: dict[str, tuple[float, bytes]] = {}  # by content type, and when

    async def answer(self, accept: str) -> Response:
        encode, kind = choose_encoder(accept)
        async with self._turn:
            at, text = self._written.get(kind, (0.0, b""))
            if not text or time.monotonic() - at >= KEPT_S:
                if self._look is not None:
                    await self._look()
                text = await asyncio.to_thread(encode, self._registry)
                self._written[kind] = time.monotonic(), text
        return Response(text, headers={"Content-Type": kind, "Cache-Control": "no-store"})


def is_token(given: str | None, token: str) -> bool:
    """Whether a bearer token is this one."""
    return given is not None and hmac.compare_digest(given.encode(), secret_of(token).encode())


def bearer_of(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The secret of the bearer token that came with a request; None without one."""
    for name, value in headers:
        if name == b"authorization":
            kind, _, given = value.partition(b" ")
            return secret_of(given.strip().decode("latin-1")) if kind.lower() == b"bearer" else None
    return None


def refusal(request: Request, token: str | None) -> Response | None:
    """Why a service without an API does not tell somebody its metrics; None where it does. Without a token of its own
    it tells this machine alone."""
    if token is not None:
        if is_token(bearer_of(request.scope["headers"]), token):
            return None
        detail = "send the token in CES_METRICS_TOKEN_FILE: Authorization: Bearer <token>"
        return JSONResponse({"detail": detail}, status_code=401, headers={"WWW-Authenticate": "Bearer"})
    if request.client is not None and _is_this_machine(request.client.host):
        return None
    detail = "metrics are told to this machine alone, unless CES_METRICS_TOKEN_FILE is set here"
    return JSONResponse({"detail": detail}, status_code=403)


def _is_this_machine(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False
