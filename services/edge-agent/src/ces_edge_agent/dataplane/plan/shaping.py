"""How a link is shared: HTB classes, their queues and filters, computed from rates.

A class has rate = ceil, so it borrows nothing and cannot take what another was given. The class of an elastic flow has
a higher ceil: it sends beyond its rate while all classes together stay below the link's rate, and HTB serves borrowing
classes only when no class has anything to send within its own rate. Minor numbers come from flows' numbers on the
device: 2n for a flow's data, 2n+1 for its return class. All rates are bit/s.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from ipaddress import IPv4Address

from ces_common.messages.desired import FlowClass, LinkDevice
from ces_common.shares import LEAST_RATE
from ces_edge_agent.dataplane.plan.class_numbers import LAST
from ces_edge_agent.dataplane.plan.objects import (
    MAIN_TABLE,
    ROOT,
    Filter,
    KernelObject,
    Match,
    Queue,
    Route,
    ShapedClass,
    Shaper,
)

ENVELOPE = 0xFFFF  # minor of the class around all others
BEST_EFFORT = 0xFFFE
ARP = 0xFFFD

ARP_RATE = 256_000
BURST_S = 0.015  # what may pass at line speed, as time at the class's rate: as late as a busy machine's timer
QUANTUM_S = 0.001  # what a borrowing class may send in its turn
QUEUE_S = 0.05  # the longest that a packet waits in a class's queue
ELASTIC_QUEUE_S = 0.2  # the same for a queue sized by a borrowing class's ceil, when it is back at its own rate
QUEUE_FRAMES = 16  # at least: TCP needs some packets on the way to detect a loss without a timer
GSO_S = 0.005  # the longest that one burst of a sender occupies its class; ten fit into the queue
GSO_MAX = 65536
FRAME_OVERHEAD = 14  # Ethernet header, which HTB counts
QUANTUM_MAX = 60_000

ETH_IP = 0x0800
ETH_ARP = 0x0806
PROBE = 0xFFFC  # minor of the class of active probes
PROBE_RATE = 8_000  # bit/s that active probes always have
PROBE_QUEUE = 1 << 19  # bytes: more than the sender's socket buffer, so that no probe is dropped here
LOWEST = 7  # priority: borrows after all others
PROTOCOL_AT, ICMP, UDP = 9, 1, 17  # offset of the protocol in an IPv4 header, and two protocols
SMALL = 128  # an IP packet shorter than this is an acknowledgement or the like; a power of two, to fit a mask
SMALL_QUEUE = 8 * (SMALL + FRAME_OVERHEAD)  # bytes
TCP = 6


def whole_bytes(rate: int) -> int:
    """The rate rounded down to whole bytes a second, the kernel's unit, so that it reads back unchanged."""
    return rate // 8 * 8


def gso_size(rate: int, mtu: int) -> int:
    """Largest burst in bytes that a sender may hand down at once if its flow has this rate. A 64 KiB burst would keep
    a 1 Mbit/s class busy for half a second, and one that does not fit into the queue is lost altogether."""
    return max(2 * mtu, min(GSO_MAX, int(rate / 8 * GSO_S)))


def data_minor(number: int) -> int:
    return 2 * number


def is_of_flow(item: KernelObject) -> bool:
    """Whether it is a flow's class, queue or filter, rather than the link's."""
    return isinstance(item, (ShapedClass, Queue, Filter)) and item.minor <= data_minor(LAST) + 1


def link_shape(link: LinkDevice, mtu: int) -> Iterator[KernelObject]:
    """The shaping that a link always has, whatever flows there are."""
    frame = mtu + FRAME_OVERHEAD
    yield Shaper(link.device, BEST_EFFORT)
    yield _class(link.device, ENVELOPE, ROOT, link.bandwidth, frame, priority=0)
    # Without neighbour discovery nothing else gets through, so a flood must not delay it.
    yield from _leaf(link.device, ARP, ARP_RATE, frame, 8 * frame, priority=0)
    yield Filter(link.device, 3, ETH_ARP, frozenset(), ARP)
    yield from _leaf(link.device, BEST_EFFORT, link.best_effort, frame, 2 * GSO_MAX, priority=7)


def flow_shape(flow: FlowClass, device: str, mtu: int, number: int) -> Iterator[KernelObject]:
    """A flow's class on a device; ``number``: the flow's among the device's classes."""
    minor = data_minor(number) + (flow.kind == "return")
    frame = mtu + FRAME_OVERHEAD
    # Acknowledgements that waited for seconds in a slow return class would set off their senders' timers.
    smallest_queue = SMALL_QUEUE if flow.small_only else max(2 * gso_size(flow.rate, mtu), QUEUE_FRAMES * frame)
    priority = 1 if flow.kind == "data" else 0
    yield from _leaf(device, minor, flow.rate, frame, smallest_queue, priority, flow.ceil)
    yield Filter(device, 1 if flow.small_only else 2, ETH_IP, pair_match(flow.src, flow.dst, flow.small_only), minor)


def probe_shape(link: LinkDevice, router: str, mtu: int) -> Iterator[KernelObject]:
    """What probes of a neighbour need: a route that keeps to the link's wire, and traffic classes. ``router``: this
    node's address, the source of probes.

    Echo requests share the class of address resolution, so that no flood delays them. An active probe borrows what is
    idle, up to the link's capacity, after all others."""
    yield Route(MAIN_TABLE, f"{link.gateway}/32", link.device, link.gateway)
    frame = mtu + FRAME_OVERHEAD
    capacity = max(whole_bytes(link.bandwidth), PROBE_RATE)
    yield ShapedClass(
        device=link.device,
        minor=PROBE,
        parent=ENVELOPE,
        rate=PROBE_RATE,
        ceil=capacity,
        burst=math.ceil(frame * 8 / PROBE_RATE * 1e6),
        cburst=burst_us(capacity, frame),
        quantum=frame,
        priority=LOWEST,
    )
    yield Queue(link.device, PROBE, PROBE_QUEUE)
    pair = pair_match(router, link.gateway, small_only=False)
    for protocol, minor in ((ICMP, ARP), (UDP, PROBE)):
        yield Filter(link.device, 1, ETH_IP, pair | {(PROTOCOL_AT, 0xFF, protocol)}, minor)


def pair_match(src: str, dst: str, small_only: bool) -> Match:
    """IPv4 packets from ``src`` to ``dst``; only TCP packets below 128 bytes if ``small_only``."""
    match = [(12 + place, 0xFF, byte) for place, byte in enumerate(IPv4Address(src).packed)]
    match += [(16 + place, 0xFF, byte) for place, byte in enumerate(IPv4Address(dst).packed)]
    if small_only:  # total length is at offset 2, protocol at 9
        match += [(2, 0xFF, 0), (3, 0x100 - SMALL, 0), (9, 0xFF, TCP)]
    return frozenset(match)


def lowest_rates(flows: Iterable[FlowClass]) -> dict[str, int]:
    """Sender's address -> lowest rate of its data classes, or the ceil of one whose rate is 0. Return classes do not
    count: what they carry of a reader's requests for data is small."""
    rates: dict[str, int] = {}
    for flow in flows:
        if flow.kind == "data":
            rate = flow.rate or flow.ceil or 0
            rates[flow.src] = min(rates.get(flow.src, rate), rate)
    return rates


def lowered(item: ShapedClass, rate: int) -> ShapedClass:
    """The class at a lower rate; one that borrows keeps its ceil."""
    rate = max(whole_bytes(rate), LEAST_RATE)
    burst = burst_us(rate, item.quantum)  # a quantum is a frame at least
    if item.ceil > item.rate:
        return replace(item, rate=rate, burst=burst)
    return replace(item, rate=rate, ceil=rate, burst=burst, cburst=burst)


def burst_us(rate: int, frame: int) -> int:
    """The burst of a class, as microseconds at its rate; at least the time of one frame (in bytes)."""
    return math.ceil(max(BURST_S, frame * 8 / rate) * 1e6)


def _leaf(
    device: str, minor: int, rate: int, frame: int, smallest_queue: int, priority: int, ceil: int | None = None
) -> Iterator[KernelObject]:
    yield _class(device, minor, ENVELOPE, rate, frame, priority, ceil)
    yield Queue(device, minor, max(_queue_size(rate, ceil), smallest_queue))


def _queue_size(rate: int, ceil: int | None) -> int:
    """Bytes that a class's queue holds; ``ceil`` is None if it does not borrow."""
    rate_bytes, ceil_bytes = rate // 8, (ceil or 0) // 8
    if ceil is None:
        return int(rate_bytes * QUEUE_S)
    if rate_bytes == 0:  # without a rate of its own it sends as fast as others allow, as through a plain switch
        return int(ceil_bytes * QUEUE_S)
    return int(min(ceil_bytes * QUEUE_S, rate_bytes * ELASTIC_QUEUE_S))


def _class(
    device: str, minor: int, parent: int, rate: int, frame: int, priority: int, ceil: int | None = None
) -> ShapedClass:
    rate = max(whole_bytes(rate), LEAST_RATE)  # the kernel counts a burst's time in 32 bits
    ceil = max(rate, whole_bytes(ceil or 0))
    return ShapedClass(
        device=device,
        minor=minor,
        parent=parent,
        rate=rate,
        ceil=ceil,
        burst=burst_us(rate, frame),
        cburst=burst_us(ceil, frame),
        quantum=min(max(int(rate / 8 * QUANTUM_S), frame), QUANTUM_MAX),
        priority=priority,
    )
