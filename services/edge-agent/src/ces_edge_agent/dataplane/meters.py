"""Rates of links and flows from their byte counters. The time is passed in. Rates are bit/s."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from ces_common.messages.desired import DesiredNetwork
from ces_common.messages.reports import FlowUsage, LinkUsage
from ces_edge_agent.dataplane.plan.class_numbers import class_numbers
from ces_edge_agent.dataplane.plan.shaping import data_minor

PEAK_WINDOW_S = 1.0


@dataclass
class Counter:
    """A growing number of bytes, sampled now and then. When the kernel's object was recreated the number starts again
    from zero; ``total`` goes on."""

    total: int = 0
    _last: int = 0
    _samples: deque[tuple[float, int]] = field(default_factory=deque)  # (time, total), over about one window
    _reported: tuple[float, int] | None = None
    _peak: float = 0.0

    def sample(self, now: float, value: int) -> None:
        """Take a sample. ``now``: seconds on a clock that never goes back."""
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
        """Average and peak rate since the last report, up to the last sample."""
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
    """A device's bytes sent and received, packets dropped by its queues and itself, and packets with an error."""

    sent: int
    received: int
    drops: int
    errors: int = 0


@dataclass(frozen=True)
class ClassCounters:
    """A traffic class's bytes sent, packets dropped, and bytes waiting in its queue now."""

    sent: int
    drops: int = 0
    waiting: int = 0


@dataclass
class FlowMeter:
    """A flow's class on one device. ``rate``: guaranteed, in bit/s."""

    number: int
    job: str
    rate: int
    begins_here: bool
    counter: Counter = field(default_factory=Counter)
    drops: int | None = None
    samples: int = 0
    waited: int = 0  # samples at which packets waited or had been dropped

    def sample(self, now: float, counters: ClassCounters) -> None:
        self.counter.sample(now, counters.sent)
        lost = self.drops is not None and counters.drops > self.drops
        self.samples, self.waited = self.samples + 1, self.waited + (lost or counters.waiting > 0)
        self.drops = counters.drops

    def report(self) -> FlowUsage:
        measured, peak = self.counter.report()
        waited = self.waited / self.samples if self.samples else 0.0
        self.samples = self.waited = 0
        return FlowUsage(
            number=self.number,
            job=self.job,
            measured=measured,
            peak=peak,
            total=self.counter.total,
            drops=self.drops or 0,
            waited=waited,
            rate=self.rate,
        )


class Meters:
    """All meters of a node: its links, and the flows that it sends over them."""

    def __init__(self) -> None:
        self._links: dict[str, tuple[str, Counter, Counter]] = {}  # device -> peer, sent, received
        self._lost: dict[str, tuple[int, int]] = {}  # device -> drops, errors
        self._flows: dict[tuple[str, int], FlowMeter] = {}  # by device and class minor

    def watch(self, desired: DesiredNetwork, unchanged: Collection[str] = ()) -> None:
        """Measure this document's links and flows from now on; existing meters go on. ``unchanged``: attempts whose
        flows are as before the document."""
        devices = {link.peer: link.device for link in desired.links}
        here = {desired.router, *(endpoint.address for endpoint in desired.endpoints)}
        self._links = {
            link.device: (link.peer, *self._links.get(link.device, (link.peer, Counter(), Counter()))[1:])
            for link in desired.links
        }
        before = {(meter.number, meter.job): meter for meter in self._flows.values()}
        flows = {place: meter for place, meter in self._flows.items() if meter.job in unchanged}
        numbers = class_numbers(desired.classes)
        for flow in desired.classes:
            number = numbers.get((flow.via, flow.number))
            if number and flow.kind == "data" and flow.via in devices and flow.job not in unchanged:
                news = FlowMeter(flow.number, flow.job, flow.rate, flow.src in here)
                known = before.get((flow.number, flow.job), news)  # perhaps on another device
                flows[devices[flow.via], data_minor(number)] = replace(
                    known, rate=news.rate, begins_here=news.begins_here
                )
        self._flows = flows

    @property
    def links(self) -> set[str]:
        return set(self._links)

    @property
    def flow_devices(self) -> set[str]:
        """Devices whose classes must be sampled for a report."""
        return {device for device, _ in self._flows}

    @property
    def source_devices(self) -> set[str]:
        """The flow devices where flows begin. They are sampled between reports too, to find the peaks."""
        return {device for (device, _), flow in self._flows.items() if flow.begins_here}

    def sample_link(self, now: float, device: str, counters: LinkCounters) -> None:
        if device in self._links:
            _, sent, received = self._links[device]
            sent.sample(now, counters.sent)
            received.sample(now, counters.received)
            self._lost[device] = counters.drops, counters.errors

    def sample_classes(self, now: float, device: str, classes: Mapping[int, ClassCounters]) -> None:
        """``classes``: minor -> counters."""
        for (of_device, minor), flow in self._flows.items():
            if of_device == device and minor in classes:
                flow.sample(now, classes[minor])

    def report(self) -> tuple[list[LinkUsage], list[FlowUsage]]:
        links = []
        for device, (peer, sent, received) in self._links.items():
            drops, errors = self._lost.get(device, (0, 0))
            usage = LinkUsage(
                peer=peer, sent=sent.report()[0], received=received.report()[0], drops=drops, errors=errors
            )
            links.append(usage)
        return links, [flow.report() for flow in self._flows.values()]
