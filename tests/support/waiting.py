"""Waiting for what comes in its own time and tells nobody."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import httpx

PATIENCE_S = 90.0  # on a machine that does other things beside


def wait_for(condition: Callable[[], bool], what: str, timeout_s: float = PATIENCE_S, pause_s: float = 0.05) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s:g} s: {what}")
        time.sleep(pause_s)


def answers(url: str) -> bool:
    """Whether somebody answers there, and says that all is well."""
    try:
        return httpx.get(url, timeout=10, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


async def until(condition: Callable[[], bool]) -> None:
    """Like ``wait_for``, in an event loop."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.01)
