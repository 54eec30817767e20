"""Waiting for what a cluster is about to do."""

from __future__ import annotations

import time
from collections.abc import Callable

from ces_client import Client
from ces_testbed.errors import TestbedError

LOOK_S = 0.25
PATIENCE_S = 180.0


def wait_for(condition: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
    """Raises TestbedError."""
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            raise TestbedError(f"not within {patience_s:g} s: {what}")
        time.sleep(LOOK_S)


def settled(client: Client, tasks: int) -> bool:
    """Whether exactly ``tasks`` tasks hold something of a node."""
    return sum(len(node.allocations) for node in client.nodes.list()) == tasks
