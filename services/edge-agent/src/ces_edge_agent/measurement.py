"""Measurements that nothing must wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from ces_edge_agent.ports import DataPlaneError, RuntimeUnavailable

log = structlog.get_logger()
T = TypeVar("T")


async def measured(measurement: Callable[[], Awaitable[T]], default: T, within_s: float) -> T:
    """A measurement, or the default if it fails or takes too long."""
    try:
        async with asyncio.timeout(within_s):
            return await measurement()
    except (TimeoutError, RuntimeUnavailable, DataPlaneError) as error:
        log.warning("nothing measured", error=str(error) or "it took too long")
        return default
