"""Waiting for what comes in its own time and tells nobody."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import httpx

PATIENCE_S = 180.0  # on a machine that does other things beside
SHORTEST_S, LONGEST_S = 0.02, 0.25


def pause_after(waited_s: float) -> float:
    """How long to pause before the next look: a twentieth of the time waited so far, within bounds. Each look takes CPU
    time from the cluster that is looked at."""
    return min(max(waited_s / 20, SHORTEST_S), LONGEST_S)


def wait_for(
    condition: Callable[[], bool], what: str, timeout_s: float = PATIENCE_S, pause_s: float | None = None
) -> None:
    """Return once the condition holds; it is looked at every ``pause_s``, or ever more rarely (:func:`pause_after`).
    Raises AssertionError after ``timeout_s``."""
    began = time.monotonic()
    while not condition():
        waited_s = time.monotonic() - began
        if waited_s > timeout_s:
            raise AssertionError(f"not within {timeout_s:g} s: {what}")
        time.sleep(pause_after(waited_s) if pause_s is None else pause_s)


def wait_until(condition: Callable[[], bool], timeout_s: float, pause_s: float) -> bool:
    """Whether the condition came true in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause_s)
    return True


def answers(url: str) -> bool:
    """Whether somebody answers there, and says that all is well."""
    try:
        return httpx.get(url, timeout=10, trust_env=False, verify=False).status_code == 200
    except httpx.TransportError:
        return False


async def until(condition: Callable[[], bool]) -> None:
    """Like ``wait_for``, in an event loop."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.01)
