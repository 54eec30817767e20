"""Kernel objects from pyroute2's messages. Pure."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from socket import ntohs
from typing import Any

from ces_edge_agent.dataplane.plan.objects import (
    ANYWHERE,
    HTB_MAJOR,
    MAIN_TABLE,
    ROOT,
    TC_ROOT,
    Address,
    Device,
    Filter,
    Match,
    Queue,
    Route,
    Rule,
    ShapedClass,
    Shaper,
    Tunnel,
)

OWNER = 0xCE  # marks our routes and rules (their protocol field), rt_protos(5)
IFF_UP = 1
TABLE_UNSPEC = 0
TO_TABLE = 1  # FR_ACT_TO_TBL
UNREACHABLE = 7  # RTN_UNREACHABLE
SELECTOR = struct.Struct(">4xBBBxHhhhI")  # struct tc_u32_sel behind its attribute header
KEY = struct.Struct(">II")  # mask and value of a tc_u32_key, in network order
KEY_OFFSET = struct.Struct("=i")
KEY_SIZE = 16
TICK_S = 64e-9  # the kernel's unit of time in tc messages, PSCHED_TICKS

Message = Any  # pyroute2's messages have no types
Guards = Mapping[str, tuple[str, str]]
NO_GUARDS: Guards = {}


def device(message: Message, guards: Guards = NO_GUARDS, inside: int | None = None) -> Device | None:
    """The device; None for one that is not part of the data plane. ``guards``: device -> MAC and remote
    address of what a tunnel lets in alone. ``inside``: number of the namespace in which encrypted tunnels' packets
    travel."""
    name, up = message.get_attr("IFLA_IFNAME"), bool(message["flags"] & IFF_UP)
    if name == "lo":
        return Device(name, "loopback", mtu=0, up=up)
    mtu = message.get_attr("IFLA_MTU")
    info = message.get_attr("IFLA_LINKINFO")
    kind = info.get_attr("IFLA_INFO_KIND") if info is not None else None
    if kind == "vxlan":
        data = info.get_attr("IFLA_INFO_DATA")
        remote = data.get_attr("IFLA_VXLAN_GROUP") or data.get_attr("IFLA_VXLAN_GROUP6") or ""
        source, origin = guards.get(name, ("", ""))
        tunnel = Tunnel(
            data.get_attr("IFLA_VXLAN_ID"),
            remote,
            data.get_attr("IFLA_VXLAN_PORT"),
            source=source if origin == remote and data.get_attr("IFLA_VXLAN_LEARNING") else "",
            local=data.get_attr("IFLA_VXLAN_LOCAL") or data.get_attr("IFLA_VXLAN_LOCAL6") or "",
            encrypted=inside is not None and message.get_attr("IFLA_LINK_NETNSID") == inside,
        )
        return Device(name, "vxlan", mtu, mac=message.get_attr("IFLA_ADDRESS"), tunnel=tunnel, up=up)
    if kind == "veth" and name.startswith("w-"):
        sandbox = message.get_attr("IFLA_LINK_NETNSID")
        if sandbox is not None and sandbox < 0:
            sandbox = None  # its namespace is being taken down, and this device with it
        return Device(name, "endpoint", mtu, mac=message.get_attr("IFLA_ADDRESS"), sandbox=sandbox, up=up)
    if name.startswith("to-"):
        return Device(name, "link", mtu, up=up)
    return None


def has_carrier(message: Message) -> bool:
    """Whether both ends of the veth are up."""
    return bool(message.get_attr("IFLA_CARRIER"))


@dataclass(frozen=True, slots=True)
class Shown:
    """State of a link's device. ``fault``: why no traffic can pass, None if it can. (A VXLAN always has a carrier.)"""

    index: int
    mtu: int
    fault: str | None


def shown(message: Message) -> Shown:
    fault = None if message.get_attr("IFLA_CARRIER") else "has no carrier"
    if not message["flags"] & IFF_UP:
        fault = "is down"
    return Shown(message["index"], message.get_attr("IFLA_MTU"), fault)


def address(message: Message, names: dict[int, str]) -> Address | None:
    """The router's address, which is on the loopback device; None for any other."""
    text = message.get_attr("IFA_LOCAL")
    if names.get(message["index"]) != "lo" or text is None or text.startswith("127."):
        return None
    return Address("lo", text)


def route(message: Message, names: dict[int, str]) -> Route | None:
    if message["proto"] != OWNER:
        return None
    table = message.get_attr("RTA_TABLE") or message["table"] or MAIN_TABLE
    target = message.get_attr("RTA_DST")
    destination = f"{target}/{message['dst_len']}" if target else ANYWHERE
    if message["type"] == UNREACHABLE:
        return Route(table, destination)
    name = names.get(message.get_attr("RTA_OIF"), "?")
    return Route(table, destination, name, message.get_attr("RTA_GATEWAY"))


def rule(message: Message) -> Rule | None:
    if message.get_attr("FRA_PROTOCOL") != OWNER:
        return None
    table = message.get_attr("FRA_TABLE") if message["action"] == TO_TABLE else TABLE_UNSPEC
    return Rule(
        message.get_attr("FRA_PRIORITY"),
        table,
        message.get_attr("FRA_IIFNAME") or "",
        message.get_attr("FRA_SRC"),
        message.get_attr("FRA_DST"),
    )


def qdisc(message: Message, names: dict[int, str]) -> Shaper | Queue | None:
    kind, name = message.get_attr("TCA_KIND"), names.get(message["index"])
    if name is None or message["handle"] == 0:
        return None  # the kernel's default qdisc
    major = message["handle"] >> 16
    options = message.get_attr("TCA_OPTIONS")
    if message["parent"] == TC_ROOT:
        if kind != "htb" or major != HTB_MAJOR:
            return Shaper(name, default=-1)  # equals none of ours, so that it is replaced
        return Shaper(name, options.get_attr("TCA_HTB_INIT")["defcls"])
    if kind != "bfifo" or message["parent"] >> 16 != HTB_MAJOR or message["parent"] & 0xFFFF != major:
        return None
    return Queue(name, major, options["limit"])


def shaped_class(message: Message, name: str) -> ShapedClass | None:
    """The class, its rates converted from the kernel's bytes/s to bit/s; None for a class that is not HTB's."""
    if message.get_attr("TCA_KIND") != "htb":
        return None
    options = message.get_attr("TCA_OPTIONS")
    parameters = options.get_attr("TCA_HTB_PARMS")
    return ShapedClass(
        device=name,
        minor=message["handle"] & 0xFFFF,
        parent=ROOT if message["parent"] == TC_ROOT else message["parent"] & 0xFFFF,
        rate=8 * (options.get_attr("TCA_HTB_RATE64") or parameters["rate"]),
        ceil=8 * (options.get_attr("TCA_HTB_CEIL64") or parameters["ceil"]),
        burst=_microseconds(parameters["buffer"]),
        cburst=_microseconds(parameters["cbuffer"]),
        quantum=parameters["quantum"],
        priority=parameters["prio"],
    )


def _microseconds(ticks: int) -> int:
    return round(ticks * TICK_S * 1e6)


def shaping_filter(message: Message, name: str) -> Filter | None:
    """The filter; None for the hash tables that the kernel lists among filters."""
    options = message.get_attr("TCA_OPTIONS")
    if message.get_attr("TCA_KIND") != "u32" or options is None or message["handle"] & 0xFFF == 0:
        return None
    selector = options.get_attr("TCA_U32_SEL")
    if selector is None:
        return None
    return Filter(
        device=name,
        priority=message["info"] >> 16,
        protocol=ntohs(message["info"] & 0xFFFF),
        match=frozenset(_match(bytes(selector.data), selector.offset)),
        minor=(options.get_attr("TCA_U32_CLASSID") or 0) & 0xFFFF,
        handle=message["handle"],
    )


def match_keys(match: Match) -> list[str]:
    """A match in pyroute2's notation: value/mask+offset."""
    return [f"{value:#04x}/{mask:#04x}+{offset}" for offset, mask, value in sorted(match)] or ["0x0/0x0+0"]


def _match(data: bytes, offset: int) -> Iterator[tuple[int, int, int]]:
    """Read from the raw bytes, since pyroute2 0.9 decodes the keys four bytes too early."""
    _, _, count, *_ = SELECTOR.unpack_from(data, offset)
    for number in range(count):
        start = offset + SELECTOR.size + number * KEY_SIZE
        mask, value = KEY.unpack_from(data, start)
        (first,) = KEY_OFFSET.unpack_from(data, start + KEY.size)
        for place, shift in enumerate((24, 16, 8, 0)):
            if mask >> shift & 0xFF:
                yield first + place, mask >> shift & 0xFF, value >> shift & 0xFF
