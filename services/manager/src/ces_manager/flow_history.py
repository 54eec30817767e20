"""What flows carried in the last minutes, at each node: kept in memory only, and bounded whatever agents say."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from ces_common.messages.api import FlowSample
from ces_common.messages.reports import Heartbeat

KEEP = timedelta(minutes=5)
MAX_REPORTS = 300  # of one node: one a second
MAX_SAMPLES = 65536  # of one node, over all its flows


@dataclass(frozen=True)
class _Report:
    at: datetime
    flows: Mapping[int, tuple[float, float, int]]  # number -> rate, waited, given


class FlowHistory:
    def __init__(self) -> None:
        self._reports: dict[str, deque[_Report]] = {}  # by node, the oldest first

    def heard(self, beat: Heartbeat, now: datetime) -> None:
        kept = self._reports.setdefault(beat.node, deque(maxlen=MAX_REPORTS))
        kept.append(_Report(now, {usage.number: (usage.rate, usage.waited, usage.given) for usage in beat.flows}))
        samples = sum(len(report.flows) for report in kept)
        while len(kept) > 1 and (samples > MAX_SAMPLES or now - kept[0].at > KEEP):
            samples -= len(kept.popleft().flows)

    def forget_old(self, now: datetime) -> None:
        self._reports = {node: kept for node, kept in self._reports.items() if now - kept[-1].at <= KEEP}

    def forget_node(self, node: str) -> None:
        self._reports.pop(node, None)

    def samples(self, node: str, number: int, since: datetime) -> list[FlowSample]:
        """What ``node`` sent of a flow from ``since`` on, the oldest first."""
        found = []
        for report in tuple(self._reports.get(node, ())):  # more may arrive meanwhile: readers are in threads
            if report.at >= since and number in report.flows:
                rate, waited, given = report.flows[number]
                found.append(FlowSample(at=report.at, rate=rate, waited=waited, given=given))
        return found
