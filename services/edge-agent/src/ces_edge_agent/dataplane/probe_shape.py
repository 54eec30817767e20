"""What probes of a neighbour have on a link: a way that keeps to its wire, and traffic classes. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from ces_common.messages.wanted import LinkDevice
from ces_edge_agent.dataplane.objects import MAIN_TABLE, Filter, KernelObject, Queue, Route, ShapedClass
from ces_edge_agent.dataplane.shaping import ARP, BURST_S, ENVELOPE, ETH_IP, FRAME_OVERHEAD, pair_match

PROBE = 0xFFFC  # minor of the class of active probes
PROBE_RATE = 1_000  # bytes/s: theirs whatever else there is
PROBE_QUEUE = 1 << 19  # bytes: more than the sender's socket lets it have on the way, so that no probe is dropped here
LOWEST = 7  # priority: who borrows goes first
PROTOCOL_AT, ICMP, UDP = 9, 1, 17  # place of the protocol in an IPv4 header, and two numbers


def probe_shape(link: LinkDevice, router: str, mtu: int) -> Iterator[KernelObject]:
    """``router``: this node's address, which probes are sent from. Echoes share the class of address resolution, so
    that no flood delays them. An active probe borrows what is idle, up to the link's capacity, after all others."""
    yield Route(MAIN_TABLE, f"{link.gateway}/32", link.device, link.gateway)
    frame = mtu + FRAME_OVERHEAD
    capacity = max(link.bandwidth // 8, PROBE_RATE)
    yield ShapedClass(
        device=link.device,
        minor=PROBE,
        parent=ENVELOPE,
        rate=PROBE_RATE,
        ceil=capacity,
        burst=ceil(frame / PROBE_RATE * 1e6),
        cburst=ceil(max(BURST_S, frame / capacity) * 1e6),
        quantum=frame,
        priority=LOWEST,
    )
    yield Queue(link.device, PROBE, PROBE_QUEUE)
    pair = pair_match(router, link.gateway, small_only=False)
    for protocol, minor in ((ICMP, ARP), (UDP, PROBE)):
        yield Filter(link.device, 1, ETH_IP, pair | {(PROTOCOL_AT, 0xFF, protocol)}, minor)
