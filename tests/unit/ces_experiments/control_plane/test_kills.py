"""Services that are killed one after the other."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from ces_experiments.control_plane.kills import Kills

MORTAL = {"manager", "manager-2", "scheduler", "compute-ctl", "network-ctl"}


class Cluster:
    def __init__(self, most: int) -> None:
        self.killed: list[str] = []
        self.enough = asyncio.Event()
        self.layout = SimpleNamespace(
            managers=["manager", "manager-2"], controllers=sorted(MORTAL - {"manager", "manager-2"})
        )
        self._most, self._loop = most, asyncio.get_running_loop()

    def kill(self, name: str) -> None:
        self.killed.append(name)
        if len(self.killed) == self._most:
            self._loop.call_soon_threadsafe(self.enough.set)


async def killed(seed: int, most: int = 60) -> list[str]:
    cluster: Any = Cluster(most)
    kills = Kills(cluster, 0.0, seed)
    running = asyncio.create_task(kills.run())
    async with asyncio.timeout(60):
        await cluster.enough.wait()
    running.cancel()
    first: list[str] = cluster.killed[:most]
    return first


async def test_the_same_seed_kills_the_same_in_the_same_order_and_everybody_has_a_turn() -> None:
    first = await killed(1)
    assert first == await killed(1)
    assert first != await killed(2)
    assert set(first) == MORTAL
