"""Rates from counters. Takes the time from outside."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

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
    """Of a device: bytes sent and received, packets dropped by its queues and by itself."""

    sent: int
    received: int
    drops: int


class Meters:
    """What a node measures: its links, and the flows that begin here."""

    def __init__(self) -> None:
        self._links: dict[str, tuple[str, Counter, Counter]] = {}  # device -> peer, sent, received
        self._drops: dict[str, int] = {}
        self._flows: dict[tuple[str, int], tuple[int, Counter]] = {}  # device and class minor -> flow number

    def watch(self, wanted: NetworkWanted) -> None:
        """Measure what this document has; what is measured already goes on."""
        devices = {link.peer: link.device for link in wanted.links}
        here = {endpoint.address for endpoint in wanted.endpoints}
        self._links = {
            link.device: (link.peer, *self._links.get(link.device, (link.peer, Counter(), Counter()))[1:])
            for link in wanted.links
        }
        flows = {}
        for flow in wanted.classes:
            if flow.kind == "data" and flow.src in here and flow.via in devices:
                key = devices[flow.via], data_minor(flow.number)
                flows[key] = self._flows.get(key, (flow.number, Counter()))
        self._flows = flows

    @property
    def links(self) -> set[str]:
        return set(self._links)

    @property
    def flow_devices(self) -> set[str]:
        """Devices whose classes are to be read."""
        return {device for device, _ in self._flows}

    def see_link(self, now: float, device: str, counters: LinkCounters) -> None:
        if device in self._links:
            _, sent, received = self._links[device]
            sent.see(now, counters.sent)
            received.see(now, counters.received)
            self._drops[device] = counters.drops

    def see_classes(self, now: float, device: str, sent: Mapping[int, int]) -> None:
        """``sent``: class minor -> bytes."""
        for (of_device, minor), (_, counter) in self._flows.items():
            if of_device == device and minor in sent:
                counter.see(now, sent[minor])

    def report(self) -> tuple[list[LinkUsage], list[FlowUsage]]:
        links = [
            LinkUsage(peer=peer, sent=sent.report()[0], received=received.report()[0], drops=self._drops.get(device, 0))
            for device, (peer, sent, received) in self._links.items()
        ]
        flows = []
        for number, counter in self._flows.values():
            rate, peak = counter.report()
            flows.append(FlowUsage(number=number, rate=rate, peak=peak, total=counter.total))
        return links, flows
