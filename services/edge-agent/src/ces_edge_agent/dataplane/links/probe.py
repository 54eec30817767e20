"""Active measurement of a link: one end sends as much as the link's shaping lets through, the other counts what
arrives.

The datagrams go to the discard port, where nobody listens: the kernel counts frames, so a slow agent loses none.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ces_common.messages.agent_queries import LinkProbe, LinkProbed
from ces_common.messages.desired import LinkDevice
from ces_edge_agent.dataplane.links.watch import LinkWatch
from ces_edge_agent.dataplane.netlink.kernel import Kernel
from ces_edge_agent.dataplane.netlink.namespace import in_namespace
from ces_edge_agent.dataplane.netlink.observed import Shown
from ces_edge_agent.dataplane.plan.shaping import ENVELOPE
from ces_edge_agent.ports import DataPlaneError

DISCARD = 9  # RFC 863
HEADERS = 28  # IPv4 and UDP
SAMPLE_S = 0.02
WINDOW = 0.5  # share of the probe's time over which the rate is taken: the first data may only fill queues
SEND_BUFFER = 200 * 1024  # bytes: bridges a few milliseconds on a fast link in which the sender does not run
SEND_TIMEOUT_S = 0.1

AFTER_S = 1.0  # until the probe's data has left the queues, and answers come through again
LATE_S = 0.01  # a sample that took longer is too uncertain in time

InThread = Callable[[Callable[[], Any]], Awaitable[Any]]
Sample = tuple[float, int]  # time, bytes until then


def best_rate(samples: Sequence[Sample], window_s: float) -> float:
    """The highest rate in bit/s over any window between two samples that is at least this long, and no longer than
    necessary; 0 if the samples cover no window."""
    best, start = 0.0, 0
    for now, total in samples:
        while start + 1 < len(samples) and now - samples[start + 1][0] >= window_s:
            start += 1
        since, before = samples[start]
        if now - since >= window_s:
            best = max(best, (total - before) * 8 / (now - since))
    return best


def timed(read: Callable[[], int], clock: Callable[[], float] = time.monotonic) -> Sample | None:
    """A sample of a counter; None if reading it took too long to say when the value was true."""
    before = clock()
    total = read()
    after = clock()
    return ((before + after) / 2, total) if after - before <= LATE_S else None


async def count(read: Callable[[], Awaitable[Sample | None]], seconds: float) -> list[Sample]:
    """Samples of a byte counter over a time in seconds. Raises DataPlaneError if this node was too busy to take
    enough of them."""
    samples: list[Sample] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sample = await read()
        if sample is not None:
            samples.append(sample)
        await asyncio.sleep(SAMPLE_S)
    if not samples or samples[-1][0] - samples[0][0] < seconds * WINDOW:
        raise DataPlaneError("this node is too busy to measure a link")
    return samples


class LinkProber:
    """Measures one link at a time. ``in_thread`` runs blocking calls to the kernel."""

    def __init__(self, kernel: Kernel, in_thread: InThread, watch: LinkWatch) -> None:
        self._kernel, self._in_thread, self._watch = kernel, in_thread, watch
        self._busy = False

    async def probe(self, query: LinkProbe) -> LinkProbed:
        """Send or count, as the query says. Raises DataPlaneError."""
        if self._busy:
            raise DataPlaneError("another link of this node is being probed")
        link = self._watch.link(query.peer)
        self._watch.excuse(query.peer, query.seconds + AFTER_S)
        self._busy = True
        try:
            if query.part == "receive":
                samples = await count(partial(self._sample, self._received, link.device), query.seconds)
                return LinkProbed(rate=best_rate(samples, query.seconds * WINDOW))
            return await self._send(link, query.seconds)
        finally:
            self._busy = False

    async def _send(self, link: LinkDevice, seconds: float) -> LinkProbed:
        shown: dict[str, Shown] = await self._in_thread(lambda: self._kernel.shown([link.device]))
        if link.device not in shown or not self._watch.router:
            raise DataPlaneError(f"the link to {link.peer} is not in place")
        round_trip_s = self._watch.round_trips().get(link.peer)
        size = shown[link.device].mtu - HEADERS
        sending = asyncio.to_thread(_send, self._kernel.path, self._watch.router, link.gateway, size, seconds)
        samples, _ = await asyncio.gather(count(partial(self._sample, self._sent, link.device), seconds), sending)
        return LinkProbed(rate=best_rate(samples, seconds * WINDOW), round_trip_s=round_trip_s)

    async def _sample(self, read: Callable[[str], int], device: str) -> Sample | None:
        sample: Sample | None = await self._in_thread(lambda: timed(partial(read, device)))
        return sample

    def _received(self, device: str) -> int:
        counters = self._kernel.link_counters({device})
        return counters[device].received if device in counters else 0

    def _sent(self, device: str) -> int:
        """HTB's counter, which counts the frames of a burst that is handed down in one piece."""
        classes = self._kernel.class_counters(device)
        return classes[ENVELOPE].sent if ENVELOPE in classes else 0


def _send(namespace: Path, source: str, target: str, size: int, seconds: float) -> None:
    """Send datagrams as fast as the socket takes them. Blocking. Raises DataPlaneError."""
    try:
        sender = in_namespace(namespace, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        with sender:
            sender.bind((source, 0))
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
            sender.settimeout(SEND_TIMEOUT_S)
            datagram, end = bytes(size), time.monotonic() + seconds
            while time.monotonic() < end:
                try:
                    sender.sendto(datagram, (target, DISCARD))
                except TimeoutError:
                    continue
    except OSError as error:
        raise DataPlaneError(f"the probe could not be sent from {source} to {target}: {error.strerror}") from error
