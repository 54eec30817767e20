"""Simulated agents that do as they should, in a cluster where one does not: no job goes to them, and their heartbeats
tell how the manager is."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import httpx

from ces_experiments.common.spread import milliseconds
from ces_experiments.control_plane.simulated_agents import SimulatedNode

EVERY_S = 1.0
APART_S = 0.013  # by which each beats less often than the one before it: so that they do not all beat at once


def honest_nodes(count: int, host: str) -> list[SimulatedNode]:
    """``host``: the address from which they speak to the manager."""
    return [
        SimulatedNode(f"h{number:02}", lambda _: 1.0, interval_s=EVERY_S + number * APART_S, host_address=host)
        for number in range(1, count + 1)
    ]


async def kept_free(http: httpx.AsyncClient, names: Sequence[str]) -> None:
    """No task goes to these nodes. Raises httpx.HTTPStatusError."""
    for name in names:
        (await http.post(f"/v1/nodes/{name}/cordon")).raise_for_status()


def while_attacked(
    nodes: Sequence[SimulatedNode], spans: Sequence[tuple[str, float, float]]
) -> dict[str, dict[str, Any]]:
    """By attack: how long the heartbeats took that were sent during it."""
    ends = [end for _, _, end in spans]
    by_attack: dict[str, list[float]] = {attack: [] for attack, _, _ in spans}
    for node in nodes:
        for sent, took_s in node.beats:
            place = bisect_left(ends, sent)
            if place < len(spans) and spans[place][1] <= sent:
                by_attack[spans[place][0]].append(took_s)
    return {attack: milliseconds(took) for attack, took in by_attack.items()}


class Window:
    """What befalls the honest agents' heartbeats from now on. Those that still wait at its end are left out, so it ends
    with :meth:`found`."""

    def __init__(self, nodes: Sequence[SimulatedNode]) -> None:
        self._nodes, self.start = nodes, time.monotonic()
        self._unanswered, self._lapses = self._counts()

    def _counts(self) -> tuple[int, int]:
        return sum(node.unanswered for node in self._nodes), sum(node.lease.lapses for node in self._nodes)

    def found(self) -> dict[str, Any]:
        beats = [took_s for node in self._nodes for sent, took_s in node.beats if sent >= self.start]
        unanswered, lapses = self._counts()
        return {
            "seconds": time.monotonic() - self.start,
            "heartbeat_ms": milliseconds(beats),
            "unanswered": unanswered - self._unanswered,
            "lapses": lapses - self._lapses,
        }
