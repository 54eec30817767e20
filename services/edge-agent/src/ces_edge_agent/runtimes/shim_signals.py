"""How the agent speaks to the shim of a worker, and sees it end, by descriptors: process ids are used again."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from ces_edge_agent.runtimes import record


def tell(directory: Path, number: signal.Signals) -> bool:
    """Signal the shim of the worker in ``directory``; False if it has ended."""
    watch = _watch(directory)
    if watch is None:
        return False
    try:
        signal.pidfd_send_signal(watch, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(watch)
    return True


async def ended(directory: Path, timeout_s: float) -> bool:
    """Wait for the shim to end; False if it took longer."""
    watch = _watch(directory)
    if watch is None:
        return True
    loop = asyncio.get_running_loop()
    done = asyncio.Event()
    loop.add_reader(watch, done.set)
    try:
        async with asyncio.timeout(timeout_s):
            await done.wait()
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(watch)
        os.close(watch)
    return True


def _watch(directory: Path) -> int | None:
    """A pidfd of the shim; None if it has ended."""
    pid = record.claimant(directory)
    if pid is None:
        return None
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    if record.claimant(directory) == pid:
        return fd
    os.close(fd)
    return None
