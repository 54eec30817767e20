"""Rates from counters. Takes the time from outside."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from ces_common.messages.reports import FlowUsage, LinkUsage
from ces_common.messages.wanted import NetworkWanted
from ces_edge_agent.dataplane.shaping import data_minor

PEAK_WINDOW_S = 1.0


@dataclass
class Counter:
    """A growing number of bytes, seen now and then. It may start again from zero when the kernel's object was made
    anew; what was counted before still counts."""

    total: int = 0
    _last: int = 0
    _samples: deque[tuple[float, int]] = field(default_factory=deque)  # (time, total), about one window's worth
    _reported: tuple[float, int] | None = None
    _peak: float = 0.0

    def see(self, now: float, value: int) -> None:
        """``now``: seconds on a clock that never goes back."""
        self.total += value - self._last if value >= self._last else value
        self._last = value
        self._samples.append((now, self.total))
        if self._reported is None:
            self._reported = (now, self.total)
        while len(self._samples) > 2 and now - self._samples[1][0] >= PEAK_WINDOW_S * 0.99:
            self._samples.popleft()
        start, then = self._samples[0]
        if now - start >= PEAK_WINDOW_S * 0.9:
            self._peak = max(self._peak, (self.total - then) * 8 / (now - start))

    def report(self) -> tuple[float, float]:
        """Rate and busiest window since the last report, in bit/s, as of the last sample."""
        if self._reported is None or not self._samples:
            return 0.0, 0.0
        now, total = self._samples[-1]
        since, before = self._reported
        rate = (total - before) * 8 / (now - since) if now > since else 0.0
        peak = max(self._peak, rate) if now > since else self._peak
        self._reported, self._peak = (now, total), 0.0
        return rate, peak


@dataclass(frozen=True)
class LinkCounters:
    """Of a device: bytes sent and received, packets dropped by its queues and by itself, packets with an error."""

    sent: int
    received: int
    drops: int
    errors: int = 0


@dataclass(frozen=True)
class ClassCounters:
    """Of a traffic class: bytes sent, packets dropped, bytes that wait in its queue now."""

    sent: int
    drops: int = 0
    waiting: int = 0


@dataclass
class FlowMeter:
    """A flow's class on one device. ``given``: its guaranteed rate, in bit/s."""

    number: int
    job: str
    given: int
    begins_here: bool
    counter: Counter = field(default_factory=Counter)
    drops: int | None = None
    looks: int = 0
    waited: int = 0  # looks at which more was there than the class had sent

    def see(self, now: float, counters: ClassCounters) -> None:
        self.counter.see(now, counters.sent)
        lost = self.drops is not None and counters.drops > self.drops
        self.looks, self.waited = self.looks + 1, self.waited + (lost or counters.waiting > 0)
        self.drops = counters.drops

    def report(self) -> FlowUsage:
        rate, peak = self.counter.report()
        waited = self.waited / self.looks if self.looks else 0.0
        self.looks = self.waited = 0
        return FlowUsage(
            number=self.number,
            job=self.job,
            rate=rate,
            peak=peak,
            total=self.counter.total,
            drops=self.drops or 0,
            waited=waited,
            given=self.given,
        )


class Meters:
    """What a node measures: its links, and the flows that it sends over them."""

    def __init__(self) -> None:
        self._links: dict[str, tuple[str, Counter, Counter]] = {}  # device -> peer, sent, received
        self._lost: dict[str, tuple[int, int]] = {}  # device -> drops, errors
        self._flows: dict[tuple[str, int], FlowMeter] = {}  # by device and class minor

    def watch(self, wanted: NetworkWanted, unchanged: Collection[str] = ()) -> None:
        """Measure what this document has; what is measured already goes on. ``unchanged``: jobs whose flows are as they
        were before it."""
        devices = {link.peer: link.device for link in wanted.links}
        here = {wanted.router, *(endpoint.address for endpoint in wanted.endpoints)}
        self._links = {
            link.device: (link.peer, *self._links.get(link.device, (link.peer, Counter(), Counter()))[1:])
            for link in wanted.links
        }
        before = {(meter.number, meter.job): meter for meter in self._flows.values()}
        flows = {place: meter for place, meter in self._flows.items() if meter.job in unchanged}
        for flow in wanted.classes:
            if flow.kind == "data" and flow.via in devices and flow.job not in unchanged:
                news = FlowMeter(flow.number, flow.job, flow.rate, flow.src in here)
                known = before.get((flow.number, flow.job), news)  # maybe over another device
                flows[devices[flow.via], data_minor(flow.number)] = replace(
                    known, given=news.given, begins_here=news.begins_here
                )
        self._flows = flows

    @property
    def links(self) -> set[str]:
        return set(self._links)

    @property
    def flow_devices(self) -> set[str]:
        """Devices whose classes are to be read for a report."""
        return {device for device, _ in self._flows}

    @property
    def source_devices(self) -> set[str]:
        """Those of them where flows begin, whose busiest seconds are looked for between reports too."""
        return {device for (device, _), flow in self._flows.items() if flow.begins_here}

    def see_link(self, now: float, device: str, counters: LinkCounters) -> None:
        if device in self._links:
            _, sent, received = self._links[device]
            sent.see(now, counters.sent)
            received.see(now, counters.received)
            self._lost[device] = counters.drops, counters.errors

    def see_classes(self, now: float, device: str, classes: Mapping[int, ClassCounters]) -> None:
        """``classes``: by their minor numbers."""
        for (of_device, minor), flow in self._flows.items():
            if of_device == device and minor in classes:
                flow.see(now, classes[minor])

    def report(self) -> tuple[list[LinkUsage], list[FlowUsage]]:
        links = []
        for device, (peer, sent, received) in self._links.items():
            drops, errors = self._lost.get(device, (0, 0))
            usage = LinkUsage(
                peer=peer, sent=sent.report()[0], received=received.report()[0], drops=drops, errors=errors
            )
            links.append(usage)
        return links, [flow.report() for flow in self._flows.values()]
