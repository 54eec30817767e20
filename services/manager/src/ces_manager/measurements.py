"""What agents measured last: kept in memory only, since the next report replaces it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from ces_common.messages.reports import FlowUsage, Heartbeat, LinkUsage, Progress
from ces_manager.flow_history import FlowHistory

KEEP = timedelta(hours=1)
MAX_PROGRESS = 512  # allocations of one node whose progress is remembered: the last to say something


class Measurements:
    """The last heartbeat of each node, the last progress of each allocation, the busiest second of each flow, and what
    flows carried in the last minutes."""

    def __init__(self) -> None:
        self._beats: dict[str, tuple[datetime, Heartbeat]] = {}
        self._progress: dict[str, dict[str, tuple[datetime, dict[str, Any]]]] = {}  # node -> allocation -> the last
        self._flows: dict[tuple[str, int], tuple[datetime, FlowUsage]] = {}  # (node, number)
        self.history = FlowHistory()

    def heard(self, beat: Heartbeat, now: datetime) -> None:
        self._beats[beat.node] = (now, beat)
        self.history.heard(beat, now)
        for usage in beat.flows:
            key = (beat.node, usage.number)
            kept = self._flows.get(key)
            if kept and kept[1].job == usage.job:  # else it is another flow: numbers are used again
                usage = _continued(kept[1], usage)
            elif usage.total == 0:
                self._flows.pop(key, None)
                continue
            self._flows[key] = (now, usage)

    def progressed(self, progress: Progress, now: datetime) -> None:
        known = self._progress.setdefault(progress.node, {})
        known.pop(progress.allocation, None)  # in the order in which they spoke last
        known[progress.allocation] = (now, progress.data)
        if len(known) > MAX_PROGRESS:
            del known[next(iter(known))]

    def forget_old(self, now: datetime) -> None:
        for node, known in list(self._progress.items()):
            self._progress[node] = {key: kept for key, kept in known.items() if now - kept[0] < KEEP}
        self._flows = {key: kept for key, kept in self._flows.items() if now - kept[0] < KEEP}
        self.history.forget_old(now)

    def forget_node(self, node: str) -> None:
        self._beats.pop(node, None)
        self._progress.pop(node, None)
        self._flows = {key: kept for key, kept in self._flows.items() if key[0] != node}
        self.history.forget_node(node)

    def beat(self, node: str) -> tuple[datetime, Heartbeat] | None:
        return self._beats.get(node)

    def progress(self, node: str, allocation: str) -> dict[str, Any] | None:
        """The last progress of a node's allocation, by that node's own word."""
        kept = self._progress.get(node, {}).get(allocation)
        return kept[1] if kept else None

    def flow(self, node: str, number: int, since: datetime) -> FlowUsage | None:
        """A flow's last usage; None if it is from before ``since``: numbers are used again."""
        kept = self._flows.get((node, number))
        return kept[1] if kept and kept[0] >= since else None

    def link(self, src: str, dst: str) -> LinkUsage | None:
        kept = self._beats.get(src)
        return next((link for link in kept[1].links if link.peer == dst), None) if kept else None


def _continued(earlier: FlowUsage, now: FlowUsage) -> FlowUsage:
    """The busiest second of all; the rate of the last report in which data flowed."""
    rate = now.rate if now.rate > 0 else earlier.rate
    return now.model_copy(update={"rate": rate, "peak": max(earlier.peak, now.peak)})
