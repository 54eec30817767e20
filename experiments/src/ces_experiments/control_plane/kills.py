"""Central services are killed one after the other while a load is on them. Their supervisor starts them again."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

from ces_testbed.cluster import Cluster


class Kills:
    """``count``: by service. Same seed, same services in the same order."""

    def __init__(self, cluster: Cluster, every_s: float, seed: int) -> None:
        self._cluster, self._every_s = cluster, every_s
        self._chance = random.Random(seed)
        self.count: Counter[str] = Counter()

    async def run(self) -> None:
        """Until it is cancelled."""
        mortal = [*self._cluster.layout.managers, *self._cluster.layout.controllers]
        while True:
            await asyncio.sleep(self._every_s)
            name = self._chance.choice(mortal)
            await asyncio.to_thread(self._cluster.kill, name)
            self.count[name] += 1
