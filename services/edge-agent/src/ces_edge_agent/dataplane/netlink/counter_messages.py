"""Counters in the kernel's answers, parsed from the raw bytes: netlink(7), rtnetlink(7), tc's messages. Pure.

Counters are read far more often than anything changes, and decoding whole messages with pyroute2 takes ten times as
long as finding the few numbers that are needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from ces_edge_agent.dataplane.meters import ClassCounters, LinkCounters
from ces_edge_agent.dataplane.plan.objects import HTB_MAJOR, TC_ROOT

MESSAGE = Struct("=IHHII")  # struct nlmsghdr: length, type, flags, sequence, port
ATTRIBUTE = Struct("=HH")  # struct rtattr: length, type
TRAFFIC = Struct("=BxxxiIII")  # struct tcmsg: family, device, handle, parent, info
LINK = Struct("=BxHiII")  # struct ifinfomsg: family, hardware, device, flags, changed
ALIGNMENT = 4
KIND_MASK = 0x3FFF  # without the flags of an attribute's type

STATS2, STATS_BASIC, STATS_QUEUE = 7, 1, 3  # TCA_...
BASIC = Struct("=Q")  # struct gnet_stats_basic: bytes
QUEUE = Struct("=III")  # struct gnet_stats_queue: packets and bytes that wait, packets dropped
IFNAME, LINKINFO, INFO_KIND, STATS64 = 3, 18, 1, 23  # IFLA_...
# struct rtnl_link_stats64: packets, bytes, errors and drops, received and sent each
LINK_STATS = Struct("=QQQQQQQQ")
ETHERNET = 14  # bytes of a header


class MalformedMessage(ValueError):
    """Bytes that are not a complete answer of the kernel."""


class Message(NamedTuple):
    """A message whose content is ``data[start:end]``."""

    kind: int
    data: bytes
    start: int
    end: int


def messages(data: bytes) -> Iterator[Message]:
    """The messages of one datagram. Raises MalformedMessage."""
    place = 0
    while place < len(data):
        if place + MESSAGE.size > len(data):
            raise MalformedMessage(f"{len(data) - place} bytes where a message begins")
        length, kind, _, _, _ = MESSAGE.unpack_from(data, place)
        if not MESSAGE.size <= length <= len(data) - place:
            raise MalformedMessage(f"a message of {length} bytes in {len(data) - place}")
        yield Message(kind, data, place + MESSAGE.size, place + length)
        place += -(-length // ALIGNMENT) * ALIGNMENT


def class_counters(message: Message) -> tuple[int, ClassCounters] | None:
    """A traffic class's minor and counters; None for a class of another qdisc, which may have none. Raises
    MalformedMessage."""
    _, _, handle, _, _ = _fixed(TRAFFIC, message)
    if handle >> 16 != HTB_MAJOR:
        return None
    stats = _within(message.data, message.start + TRAFFIC.size, message.end, STATS2)
    (sent,) = _numbers(BASIC, message.data, stats, STATS_BASIC)
    _, waiting, drops = _numbers(QUEUE, message.data, stats, STATS_QUEUE)
    return handle & 0xFFFF, ClassCounters(sent, drops, waiting)


def root_drops(message: Message) -> tuple[int, int] | None:
    """A device's index and the packets dropped by its root qdisc and all below; None for any other qdisc. Raises
    MalformedMessage."""
    _, index, _, parent, _ = _fixed(TRAFFIC, message)
    if parent != TC_ROOT:
        return None
    stats = _within(message.data, message.start + TRAFFIC.size, message.end, STATS2)
    _, _, drops = _numbers(QUEUE, message.data, stats, STATS_QUEUE)
    return index, drops


def link_counters(message: Message) -> tuple[int, LinkCounters]:
    """A device's index and its own counters. Raises MalformedMessage."""
    _, _, index, _, _ = _fixed(LINK, message)
    data, attributes = message.data, (message.start + LINK.size, message.end)
    packets, _, received, sent, *lost = _numbers(LINK_STATS, data, attributes, STATS64)
    bad_received, bad_sent, dropped_received, dropped_sent = lost
    info = _find(data, *attributes, LINKINFO)
    kind = info and _find(data, *info, INFO_KIND)
    # A VXLAN counts what it receives without Ethernet headers, and a veth with them.
    if kind and data[slice(*kind)].rstrip(b"\0") == b"vxlan":
        received += packets * ETHERNET
    return index, LinkCounters(sent, received, dropped_received + dropped_sent, bad_received + bad_sent)


def device_index(message: Message) -> int:
    """The index in a description of a device. Raises MalformedMessage."""
    _, _, index, _, _ = _fixed(LINK, message)
    return int(index)


def _fixed(layout: Struct, message: Message) -> tuple[int, ...]:
    """The fixed header of a message. Raises MalformedMessage."""
    if message.end - message.start < layout.size:
        raise MalformedMessage(
            f"a message of type {message.kind} with {message.end - message.start} of {layout.size} bytes"
        )
    return layout.unpack_from(message.data, message.start)


def _find(data: bytes, start: int, end: int, kind: int) -> tuple[int, int] | None:
    """Start and end of the first attribute of a kind; None if there is none. Raises MalformedMessage."""
    while start + ATTRIBUTE.size <= end:
        length, found = ATTRIBUTE.unpack_from(data, start)
        if not ATTRIBUTE.size <= length <= end - start:
            raise MalformedMessage(f"an attribute of {length} bytes in {end - start}")
        if found & KIND_MASK == kind:
            return start + ATTRIBUTE.size, start + length
        start += -(-length // ALIGNMENT) * ALIGNMENT
    if start < end:
        raise MalformedMessage(f"{end - start} bytes where an attribute begins")
    return None


def _within(data: bytes, start: int, end: int, kind: int) -> tuple[int, int]:
    """Like ``_find``, for an attribute that must be there."""
    found = _find(data, start, end, kind)
    if found is None:
        raise MalformedMessage(f"no attribute {kind}")
    return found


def _numbers(layout: Struct, data: bytes, attributes: tuple[int, int], kind: int) -> tuple[int, ...]:
    start, end = _within(data, *attributes, kind)
    if end - start < layout.size:
        raise MalformedMessage(f"{end - start} bytes of {layout.size} in attribute {kind}")
    return layout.unpack_from(data, start)
