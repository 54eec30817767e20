"""The agents that a benchmark of the control plane simulates."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ces_common.bus.port import BusUnavailable
from ces_experiments.control_plane.simulated_agents import SimulatedNode


class SilentBus:
    """Takes everything in and answers nothing."""

    async def connect(self) -> None: ...

    async def close(self) -> None: ...

    async def kv_subscribe(self, _node: str, _handler: Any) -> None: ...

    async def publish(self, _subject: str, _data: bytes) -> None: ...

    async def request(self, subject: str, _data: bytes = b"") -> bytes:
        if "fetch" in subject:
            return b""
        raise BusUnavailable("silent")


async def test_a_node_that_is_stopped_in_the_moment_it_hears_of_work_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    node = SimulatedNode("a", lambda _: 60.0)
    monkeypatch.setattr(node, "_bus", SilentBus())
    running = asyncio.create_task(node.run())
    for _ in range(10):
        await asyncio.sleep(0)
    node._wake.set()
    running.cancel()
    done, _ = await asyncio.wait({running}, timeout=60)
    assert done == {running}
