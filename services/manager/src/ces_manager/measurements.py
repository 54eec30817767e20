"""Measurements of agents, kept in memory only: the next report replaces them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ces_common.messages.api import FlowSample
from ces_common.messages.reports import MAX_FLOWS, FlowUsage, Heartbeat, LinkUsage, Progress
from ces_manager.energy_book import EnergyBook
from ces_manager.progress_history import ProgressHistory
from ces_manager.speed_meter import SpeedMeter
from ces_manager.usage_history import UsageHistory
from ces_manager.work_meter import WorkMeter

KEEP = timedelta(hours=1)
FLOWS_KEPT = timedelta(minutes=5)
CONTESTED = timedelta(minutes=1)  # for how long it is told that two machines asked for one lease
REFUSED = timedelta(minutes=1)  # the same of a key that is another node's; its agent tells it with every heartbeat
MAX_REPORTS = 300  # of one node's flows: one a second
MAX_SAMPLES = 65536  # of one node, over all its flows
MAX_PROGRESS = 512  # allocations of one node whose progress is remembered: the last to say something


@dataclass(frozen=True)
class _Report:
    at: datetime
    flows: Mapping[int, tuple[float, float, int]]  # number -> measured, waited, rate


class _NodeReports:
    """One node's reports of the last minutes, the oldest first. There is always one."""

    def __init__(self, first: _Report) -> None:
        self.reports = deque([first])
        self._samples = len(first.flows)

    def add(self, report: _Report) -> None:
        self.reports.append(report)
        self._samples += len(report.flows)
        while len(self.reports) > 1 and (
            len(self.reports) > MAX_REPORTS
            or self._samples > MAX_SAMPLES
            or report.at - self.reports[0].at > FLOWS_KEPT
        ):
            self._samples -= len(self.reports.popleft().flows)


class FlowHistory:
    """Rates of flows in the last minutes, by node; bounded, whatever agents report. Most heartbeats of a large
    fleet tell of no flow, and cost nothing here."""

    def __init__(self) -> None:
        self._nodes: dict[str, _NodeReports] = {}

    def heard(self, beat: Heartbeat, now: datetime) -> None:
        if not beat.flows:
            return
        report = _Report(now, {usage.number: (usage.measured, usage.waited, usage.rate) for usage in beat.flows})
        if kept := self._nodes.get(beat.node):
            kept.add(report)
        else:
            self._nodes[beat.node] = _NodeReports(report)

    def forget_old(self, now: datetime) -> None:
        self._nodes = {node: kept for node, kept in self._nodes.items() if now - kept.reports[-1].at <= FLOWS_KEPT}

    def forget_node(self, node: str) -> None:
        self._nodes.pop(node, None)

    def samples(self, node: str, number: int, since: datetime) -> list[FlowSample]:
        """What ``node`` sent of a flow from ``since`` on, the oldest first."""
        found = []
        kept = self._nodes.get(node)
        for report in tuple(kept.reports) if kept else ():  # more may arrive meanwhile: readers are in threads
            if report.at >= since and number in report.flows:
                measured, waited, rate = report.flows[number]
                found.append(FlowSample(at=report.at, measured=measured, waited=waited, rate=rate))
        return found


class Measurements:
    """The last heartbeat of each node, the last progress of each allocation, the busiest second of each flow, what
    flows carried in the last minutes, nodes and links in the last hour, curves of progress, and how fast malleable jobs
    are, what of energy is not written down yet, and what CPU time steps take."""

    def __init__(self) -> None:
        self._beats: dict[str, tuple[datetime, Heartbeat]] = {}
        self._contested: dict[str, datetime] = {}  # node -> when another machine last asked for its lease
        self._refused: dict[str, tuple[datetime, str]] = {}  # node -> when it last told whose key as its own
        self._progress: dict[str, dict[str, tuple[datetime, dict[str, Any]]]] = {}  # node -> allocation -> the last
        self._flows: dict[str, dict[int, tuple[datetime, FlowUsage]]] = {}  # node -> number -> the last
        self.history = FlowHistory()
        self.usage, self.curves = UsageHistory(), ProgressHistory()
        self.speeds, self.energy, self.work = SpeedMeter(), EnergyBook(), WorkMeter()

    def heard(self, beat: Heartbeat, now: datetime) -> None:
        self._beats[beat.node] = (now, beat)
        self.history.heard(beat, now)
        self.usage.heard(beat, now)
        self.energy.heard(beat)
        self.work.heard(beat, now)
        known = self._flows.setdefault(beat.node, {})
        for usage in beat.flows:
            kept = known.pop(usage.number, None)  # in the order in which they were measured last
            if kept and kept[1].job == usage.job:  # else it is another flow: numbers are used again
                usage = _continued(kept[1], usage)
            elif usage.total == 0:
                continue
            known[usage.number] = (now, usage)
        for number in list(known)[: max(len(known) - MAX_FLOWS, 0)]:
            del known[number]

    def contest(self, node: str, now: datetime) -> None:
        """Another machine asks for the node's lease."""
        self._contested[node] = now

    def contested(self, node: str) -> bool:
        """Whether another machine has asked for the node's lease in the last minute."""
        return node in self._contested

    def refuse_key(self, node: str, of: str, now: datetime) -> None:
        """The node tells another's key for encrypted links as its own."""
        self._refused[node] = now, of

    def key_refused(self, node: str) -> str | None:
        """Whose key for encrypted links the node has told as its own in the last minute."""
        kept = self._refused.get(node)
        return kept[1] if kept else None

    def progressed(self, progress: Progress, now: datetime) -> None:
        known = self._progress.setdefault(progress.node, {})
        known.pop(progress.allocation, None)  # in the order in which they spoke last
        known[progress.allocation] = (now, progress.data)
        self.curves.heard(progress.job, progress.task, progress.data, now)
        self.work.progressed(progress, now)
        if len(known) > MAX_PROGRESS:
            del known[next(iter(known))]

    def forget_old(self, now: datetime) -> None:
        self._beats = {node: kept for node, kept in self._beats.items() if now - kept[0] < KEEP}
        self.energy.keep(self._beats)
        for node, known in list(self._progress.items()):
            self._progress[node] = {key: kept for key, kept in known.items() if now - kept[0] < KEEP}
        for node, flows in list(self._flows.items()):
            self._flows[node] = {number: kept for number, kept in flows.items() if now - kept[0] < KEEP}
        self._contested = {node: at for node, at in self._contested.items() if now - at < CONTESTED}
        self._refused = {node: kept for node, kept in self._refused.items() if now - kept[0] < REFUSED}
        for history in (self.history, self.usage, self.curves, self.work):
            history.forget_old(now)

    def forget_node(self, node: str) -> None:
        self._beats.pop(node, None)
        self._progress.pop(node, None)
        self._flows.pop(node, None)
        self._contested.pop(node, None)
        self._refused.pop(node, None)
        self.history.forget_node(node)
        self.usage.forget_node(node)
        self.speeds.forget_node(node)
        self.energy.forget_node(node)
        self.work.forget_node(node)

    def beat(self, node: str) -> tuple[datetime, Heartbeat] | None:
        return self._beats.get(node)

    def progress(self, node: str, allocation: str) -> dict[str, Any] | None:
        """The last progress of a node's allocation, by that node's own word."""
        kept = self._progress.get(node, {}).get(allocation)
        return kept[1] if kept else None

    def flow(self, node: str, number: int, since: datetime) -> FlowUsage | None:
        """A flow's last usage; None if it is from before ``since``: numbers are used again."""
        kept = self._flows.get(node, {}).get(number)
        return kept[1] if kept and kept[0] >= since else None

    def link(self, src: str, dst: str) -> LinkUsage | None:
        kept = self._beats.get(src)
        return next((link for link in kept[1].links if link.peer == dst), None) if kept else None


def _continued(earlier: FlowUsage, now: FlowUsage) -> FlowUsage:
    """The busiest second of all; what the last report in which data flowed measured."""
    measured = now.measured if now.measured > 0 else earlier.measured
    return now.model_copy(update={"measured": measured, "peak": max(earlier.peak, now.peak)})
