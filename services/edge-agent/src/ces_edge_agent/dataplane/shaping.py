"""How a link is shared: HTB classes, their queues and filters, computed from rates.

A class has rate = ceil, so it borrows nothing and cannot take what another was given. That of an elastic flow has a
higher ceil: it sends beyond its rate while all classes together stay below the link's, and HTB asks for those that
borrow only when no class has anything to send within its own rate. Minor numbers come from flow
numbers: 2n for a flow's data, 2n+1 for its return class.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from ipaddress import IPv4Address
from math import ceil

from ces_common.messages.wanted import FlowClass, LinkDevice
from ces_common.shares import LEAST_RATE
from ces_edge_agent.dataplane.errors import DataPlaneError
from ces_edge_agent.dataplane.objects import ROOT, Filter, KernelObject, Match, Queue, ShapedClass, Shaper

LAST_FLOW = 32000
ENVELOPE = 0xFFFF  # the class that all others are part of
UNRESERVED = 0xFFFE
ARP = 0xFFFD

ARP_RATE = 32_000  # bytes/s
BURST_S = 0.015  # what may pass at line speed, as time at the class's rate: as late as a busy machine's timer
QUANTUM_S = 0.001  # what a class that borrows may send in its turn
QUEUE_S = 0.05  # the longest that a packet waits in a class's queue
ELASTIC_QUEUE_S = 0.2  # of a class that borrows: what fits its highest rate may wait so long once nothing is idle
QUEUE_FRAMES = 16  # but at least so many: TCP needs some on the way to find a loss without waiting for a timer
GSO_S = 0.005  # the longest that one burst of a sender occupies its class; ten fit into the queue
GSO_MAX = 65536
FRAME_OVERHEAD = 14  # Ethernet header: HTB counts it
QUANTUM_MAX = 60_000

ETH_IP = 0x0800
ETH_ARP = 0x0806
SMALL = 128  # an IP packet shorter than this is an acknowledgement or the like; a power of two, to fit a mask
SMALL_QUEUE = 8 * (SMALL + FRAME_OVERHEAD)  # bytes
TCP = 6


def gso_size(rate: int, mtu: int) -> int:
    """Largest burst in bytes that a sender may hand down at once if its flow has ``rate`` bit/s. A 64 KiB burst would
    keep a 1 Mbit/s class busy for half a second, and one that does not fit into the queue is lost altogether."""
    return max(2 * mtu, min(GSO_MAX, int(rate / 8 * GSO_S)))


def data_minor(number: int) -> int:
    return 2 * number


def flow_minor(flow: FlowClass) -> int:
    """Raises DataPlaneError for a number that has no class."""
    if not 1 <= flow.number <= LAST_FLOW:
        raise DataPlaneError(f"flow number {flow.number} is not within 1..{LAST_FLOW}")
    return data_minor(flow.number) + (flow.kind == "return")


def is_of_flow(item: KernelObject) -> bool:
    """A class, or what belongs to one, that is a flow's and not the link's."""
    return isinstance(item, (ShapedClass, Queue, Filter)) and item.minor <= data_minor(LAST_FLOW) + 1


def link_shape(link: LinkDevice, mtu: int) -> Iterator[KernelObject]:
    """What a link has whatever flows there are."""
    frame = mtu + FRAME_OVERHEAD
    yield Shaper(link.device, UNRESERVED)
    yield _class(link.device, ENVELOPE, ROOT, link.bandwidth // 8, frame, priority=0)
    # Without neighbour discovery nothing else gets through, so a flood must not delay it.
    yield from _leaf(link.device, ARP, ARP_RATE, frame, 8 * frame, priority=0)
    yield Filter(link.device, 3, ETH_ARP, frozenset(), ARP)
    yield from _leaf(link.device, UNRESERVED, link.unreserved // 8, frame, 2 * GSO_MAX, priority=7)


def flow_shape(flow: FlowClass, device: str, mtu: int) -> Iterator[KernelObject]:
    """A flow's class on a device. Raises DataPlaneError for a number that has no class."""
    minor = flow_minor(flow)
    frame = mtu + FRAME_OVERHEAD
    # Acknowledgements that waited for seconds in a slow return class would set off their senders' timers.
    smallest_queue = SMALL_QUEUE if flow.small_only else max(2 * gso_size(flow.rate, mtu), QUEUE_FRAMES * frame)
    most = None if flow.ceiling is None else flow.ceiling // 8
    priority = 1 if flow.kind == "data" else 0
    yield from _leaf(device, minor, flow.rate // 8, frame, smallest_queue, priority, most)
    yield Filter(device, 1 if flow.small_only else 2, ETH_IP, pair_match(flow.src, flow.dst, flow.small_only), minor)


def pair_match(src: str, dst: str, small_only: bool) -> Match:
    """IPv4 packets from ``src`` to ``dst``; only TCP packets below 128 bytes if ``small_only``."""
    wanted = [(12 + place, 0xFF, byte) for place, byte in enumerate(IPv4Address(src).packed)]
    wanted += [(16 + place, 0xFF, byte) for place, byte in enumerate(IPv4Address(dst).packed)]
    if small_only:  # total length is at offset 2, protocol at 9
        wanted += [(2, 0xFF, 0), (3, 0x100 - SMALL, 0), (9, 0xFF, TCP)]
    return frozenset(wanted)


def lowest_rates(flows: Iterable[FlowClass]) -> dict[str, int]:
    """Sender's address -> the lowest rate in bit/s of any class that takes its large packets; that which it may borrow
    where it is promised none. (A request for data is no such packet, though the class that takes it would take those as
    well.)"""
    rates: dict[str, int] = {}
    for flow in flows:
        if flow.kind == "data":
            rate = flow.rate or flow.ceiling or 0
            rates[flow.src] = min(rates.get(flow.src, rate), rate)
    return rates


def _leaf(
    device: str, minor: int, rate: int, frame: int, smallest_queue: int, priority: int, most: int | None = None
) -> Iterator[KernelObject]:
    yield _class(device, minor, ENVELOPE, rate, frame, priority, most)
    yield Queue(device, minor, max(_longest_queue(rate, most), smallest_queue))


def _longest_queue(rate: int, most: int | None) -> int:
    """In bytes, of a class of ``rate`` bytes/s that may send ``most`` in all."""
    if most is None:
        return int(rate * QUEUE_S)
    if rate == 0:  # it never waits for its own rate: it sends as fast as others let it, as through a plain switch
        return int(most * QUEUE_S)
    return int(min(most * QUEUE_S, rate * ELASTIC_QUEUE_S))


def _class(
    device: str, minor: int, parent: int, rate: int, frame: int, priority: int, most: int | None = None
) -> ShapedClass:
    """Rates in bytes/s; ``most``: what it may send in all while others leave room."""
    rate = max(rate, LEAST_RATE // 8)  # the kernel counts a burst's time in 32 bits
    most = max(rate, most or 0)
    return ShapedClass(
        device=device,
        minor=minor,
        parent=parent,
        rate=rate,
        ceil=most,
        burst=_burst(rate, frame),
        cburst=_burst(most, frame),
        quantum=min(max(int(rate * QUANTUM_S), frame), QUANTUM_MAX),
        priority=priority,
    )


def lowered(item: ShapedClass, rate: int) -> ShapedClass:
    """The class at a lower rate in bytes/s; one that borrows may go on borrowing."""
    rate = max(rate, LEAST_RATE // 8)
    burst = _burst(rate, item.quantum)  # a frame at least
    if item.ceil > item.rate:
        return replace(item, rate=rate, burst=burst)
    return replace(item, rate=rate, ceil=rate, burst=burst, cburst=burst)


def _burst(rate: int, frame: int) -> int:
    """In microseconds at the rate; a whole frame at least."""
    return ceil(max(BURST_S, frame / rate) * 1e6)
