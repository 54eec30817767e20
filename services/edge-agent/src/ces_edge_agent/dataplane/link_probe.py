"""Measuring what a link carries: one end sends as much as the link's shaping lets through, the other counts what comes.

Nobody listens where the datagrams go (the discard port): the kernel counts frames, and a slow agent loses none of them.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from ces_common.messages.queries import LinkProbe, LinkProbed
from ces_common.messages.wanted import LinkDevice
from ces_edge_agent.dataplane.errors import DataPlaneError
from ces_edge_agent.dataplane.kernel import Kernel
from ces_edge_agent.dataplane.link_watch import LinkWatch
from ces_edge_agent.dataplane.meter import ClassCounters, LinkCounters
from ces_edge_agent.dataplane.namespace import in_namespace
from ces_edge_agent.dataplane.observe import Shown
from ces_edge_agent.dataplane.shaping import ENVELOPE

DISCARD = 9  # RFC 863
HEADERS = 28  # IPv4 and UDP
SAMPLE_S = 0.02
WINDOW = 0.5  # of the time that the probe sends: what it sends at first may only fill queues
SEND_BUFFER = 200 * 1024  # bytes; a few milliseconds at the speed of fast links, in which the sender may be busy
SEND_TIMEOUT_S = 0.1

AFTER_S = 1.0  # until what the probe left in queues is gone, and answers come through again
LATE_S = 0.01  # a look at a counter that took longer does not say when that was its value

InThread = Callable[[Callable[[], Any]], Awaitable[Any]]
Sample = tuple[float, int]  # when, bytes until then


def best_rate(samples: Sequence[Sample], window_s: float) -> float:
    """The highest rate in bit/s over the windows that begin and end at samples and are just so long, or as little
    longer as the samples allow; 0 where these cover none."""
    best, start = 0.0, 0
    for now, total in samples:
        while start + 1 < len(samples) and now - samples[start + 1][0] >= window_s:
            start += 1
        since, before = samples[start]
        if now - since >= window_s:
            best = max(best, (total - before) * 8 / (now - since))
    return best


def timed(read: Callable[[], int], clock: Callable[[], float] = time.monotonic) -> Sample | None:
    """What a counter shows, and when; None where reading it took too long to say when that was."""
    before = clock()
    total = read()
    after = clock()
    return ((before + after) / 2, total) if after - before <= LATE_S else None


async def count(read: Callable[[], Awaitable[Sample | None]], seconds: float) -> list[Sample]:
    """Look at a counter of bytes for so long, as often as is worth it. Raises DataPlaneError where this node was too
    busy to look often enough for a rate."""
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
    """``in_thread``: where the kernel is asked."""

    def __init__(self, kernel: Kernel, in_thread: InThread, watch: LinkWatch) -> None:
        self._kernel, self._in_thread, self._watch = kernel, in_thread, watch
        self._busy = False

    async def probe(self, query: LinkProbe) -> LinkProbed:
        """Raises DataPlaneError."""
        if self._busy:
            raise DataPlaneError("another link of this node is being probed")
        link = self._watch.link(query.peer)
        self._watch.excuse(query.peer, query.seconds + AFTER_S)
        self._busy = True
        try:
            if query.part == "receive":
                samples = await count(lambda: self._received(link.device), query.seconds)
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
        samples, _ = await asyncio.gather(count(lambda: self._sent(link.device), seconds), sending)
        return LinkProbed(rate=best_rate(samples, seconds * WINDOW), round_trip_s=round_trip_s)

    async def _received(self, device: str) -> Sample | None:
        def read() -> int:
            counters: dict[str, LinkCounters] = self._kernel.link_counters({device})
            return counters[device].received if device in counters else 0

        sample: Sample | None = await self._in_thread(lambda: timed(read))
        return sample

    async def _sent(self, device: str) -> Sample | None:
        """As HTB counts, which knows the frames of a burst that is handed down in one piece."""

        def read() -> int:
            classes: dict[int, ClassCounters] = self._kernel.class_counters(device)
            return classes[ENVELOPE].sent if ENVELOPE in classes else 0

        sample: Sample | None = await self._in_thread(lambda: timed(read))
        return sample


def _send(namespace: Path, source: str, target: str, size: int, seconds: float) -> None:
    """As fast as the socket takes it. Blocking. Raises DataPlaneError."""
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
