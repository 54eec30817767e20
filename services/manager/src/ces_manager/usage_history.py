"""What nodes and links carried in the last hour: means of twenty seconds, in memory only, and bounded whatever agents
report."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from ces_common.messages.dashboard import UsageSamples
from ces_common.messages.energy import MOST_WATTS
from ces_common.messages.reports import Heartbeat

EVERY_S: Final = 20
KEPT: Final = 180  # means: an hour
MAX_PEERS: Final = 512  # of one node, whose links are remembered
CPU, MEMORY, POWER = "cpu", "memory", "power"
ABSENT: Final = math.nan


class _Series:
    """Values of the last means, the oldest first, and the one that is being formed."""

    def __init__(self, missed: int) -> None:
        """``missed``: how many means of the node there are from before it was first reported."""
        self.values = array("f", [ABSENT] * missed)
        self._sum, self._count = 0.0, 0

    def add(self, value: float) -> None:
        self._sum, self._count = self._sum + value, self._count + 1

    def close(self) -> None:
        self.values.append(self._sum / self._count if self._count else ABSENT)
        del self.values[: max(len(self.values) - KEPT, 0)]
        self._sum, self._count = 0.0, 0

    @property
    def empty(self) -> bool:
        return not self._count and all(math.isnan(value) for value in self.values)


class _NodeUsage:
    def __init__(self, bucket: int) -> None:
        self.bucket = bucket  # that is being formed
        self.starts = array("d")  # of the means, in seconds since the epoch
        self.own = {CPU: _Series(0), MEMORY: _Series(0), POWER: _Series(0)}
        self.peers: dict[str, _Series] = {}

    def heard(self, beat: Heartbeat, bucket: int) -> None:
        if bucket != self.bucket:
            self._close(bucket)
        self.own[CPU].add(beat.cpu)
        self.own[MEMORY].add(beat.memory)
        if beat.energy is not None and beat.energy.watts is not None:
            self.own[POWER].add(min(beat.energy.watts, MOST_WATTS))
        for link in beat.links:
            series = self.peers.get(link.peer)
            if series is None and len(self.peers) < MAX_PEERS:
                series = self.peers[link.peer] = _Series(len(self.starts))
            if series is not None:
                series.add(link.sent)

    def _close(self, bucket: int) -> None:
        self.starts.append(self.bucket * EVERY_S)
        del self.starts[: max(len(self.starts) - KEPT, 0)]
        for series in (*self.own.values(), *self.peers.values()):
            series.close()
        self.peers = {peer: series for peer, series in self.peers.items() if not series.empty}
        self.bucket = bucket


class UsageHistory:
    def __init__(self) -> None:
        self._nodes: dict[str, _NodeUsage] = {}

    def heard(self, beat: Heartbeat, now: datetime) -> None:
        bucket = int(now.timestamp() // EVERY_S)
        kept = self._nodes.get(beat.node)
        if kept is None or not kept.bucket <= bucket < kept.bucket + KEPT:
            kept = self._nodes[beat.node] = _NodeUsage(bucket)
        kept.heard(beat, bucket)

    def forget_node(self, node: str) -> None:
        self._nodes.pop(node, None)

    def forget_old(self, now: datetime) -> None:
        oldest = int(now.timestamp() // EVERY_S) - KEPT
        self._nodes = {node: kept for node, kept in self._nodes.items() if kept.bucket > oldest}

    def of_node(self, node: str) -> UsageSamples:
        """CPU in millicores, memory in bytes, power in watts where any was told."""
        kept = self._nodes.get(node)
        if kept is None:
            return UsageSamples()
        told = {name: series for name, series in kept.own.items() if name != POWER or not series.empty}
        return _samples(kept.starts, told)

    def of_link(self, src: str, dst: str) -> UsageSamples:
        """What ``src`` sent over the link, in bit/s."""
        kept = self._nodes.get(src)
        series = None if kept is None else kept.peers.get(dst)
        return UsageSamples() if kept is None or series is None else _samples(kept.starts, {"used": series})


def _samples(starts: Iterable[float], series: Mapping[str, _Series]) -> UsageSamples:
    return UsageSamples(
        every_s=EVERY_S,
        at=[datetime.fromtimestamp(start, UTC) for start in starts],
        values={name: [None if math.isnan(value) else value for value in each.values] for name, each in series.items()},
    )
