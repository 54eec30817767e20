"""Keeps forged frames out of tunnels.

Linux takes a VXLAN frame from any address on the underlay that names the right network identifier. Two things stop
that, both on the tunnel's own device, so that the host's firewall is not touched: a permanent forwarding entry, by
which the kernel drops frames with the neighbour's MAC address that come from elsewhere (with learning on, see vxlan(7)
in the kernel's documentation), and a chain of nftables that drops frames with any other MAC address.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterable, Iterator
from errno import EEXIST, ENOENT
from pathlib import Path
from typing import Final

from pyroute2 import IPRoute

from ces_edge_agent.dataplane.netlink.namespace import in_namespace, listing

TABLE: Final = "ces"
MOST_LEARNED: Final = 2  # forwarding entries that a tunnel may have: these are its default and the neighbour's
AF_BRIDGE, NUD_PERMANENT, NTF_SELF = 7, 0x80, 0x02
_NETLINK_NETFILTER, _SUBSYSTEM, _FAMILY = 12, 10, 5  # NFNL_SUBSYS_NFTABLES, NFPROTO_NETDEV
_BEGIN, _END, _ERROR, _DONE = 0x10, 0x11, 2, 3
_NEW_TABLE, _NEW_CHAIN, _GET_CHAIN, _DEL_CHAIN, _NEW_RULE = 0, 3, 4, 5, 6
_REQUEST, _ACK, _DUMP, _EXCLUSIVE, _CREATE, _APPEND = 0x1, 0x4, 0x300, 0x200, 0x400, 0x800
_NESTED = 0x8000
_DROP, _ACCEPT = 0, 1
_VERDICT, _REGISTER = 0, 1
_SOURCE_MAC = 6  # its offset in an Ethernet header
_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_READ_SIZE = 1 << 16
_ANSWER_S = 5.0


def guard(ipr: IPRoute, namespace: Path, index: int, device: str, mac: str, remote: str) -> None:
    """Let nothing in through a tunnel's device but frames with this MAC address from this remote address. To be called
    while the device is down. Raises NetlinkError, OSError."""
    ipr.fdb("replace", ifindex=index, lladdr=mac, dst=remote, state=NUD_PERMANENT, flags=NTF_SELF)
    _transact(namespace, _only_from(device, mac))


def unguard(namespace: Path, device: str, mac: str) -> None:
    """Undo it, once the device is gone: newer kernels keep the chain for the next device of that name. Raises
    OSError."""
    _transact(namespace, [_message(_DEL_CHAIN, _ACK, _text(1, TABLE) + _text(3, f"{device} {mac}"))])


def chains(namespace: Path) -> set[tuple[str, str]]:
    """Device and MAC address of each chain; none where the kernel has no nftables."""
    try:
        return in_namespace(namespace, _chains)
    except OSError:
        return set()


def entries(ipr: IPRoute) -> dict[int, dict[str, str]]:
    """Index of each tunnel's device -> MAC -> remote address, of its permanent forwarding entries. Raises
    NetlinkError."""
    found: dict[int, dict[str, str]] = {}
    for entry in listing(ipr, "get_neighbours", family=AF_BRIDGE):
        remote = entry.get_attr("NDA_DST")
        if entry["state"] & NUD_PERMANENT and remote is not None:
            found.setdefault(entry["ifindex"], {})[entry.get_attr("NDA_LLADDR")] = remote
    return found


def _only_from(device: str, mac: str) -> list[bytes]:
    """The messages that make a chain on the device, which drops all but what comes from the MAC address."""
    table = _text(1, TABLE)
    name = f"{device} {mac}"
    hook = _nest(4, _number(1, 0) + _number(2, 0) + _text(3, device))  # ingress, in the first place
    load = _expression("payload", _number(1, _REGISTER) + _number(2, 0) + _number(3, _SOURCE_MAC) + _number(4, 6))
    wanted = _nest(3, _attribute(1, bytes.fromhex(mac.replace(":", ""))))
    compare = _expression("cmp", _number(1, _REGISTER) + _number(2, 0) + wanted)
    verdict = _nest(2, _nest(2, _number(1, _ACCEPT)))
    accept = _expression("immediate", _number(1, _VERDICT) + verdict)
    chain = table + _text(3, name) + hook + _text(7, "filter") + _number(5, _DROP)
    rule = table + _text(2, name) + _nest(4, load + compare + accept)
    return [
        _message(_NEW_TABLE, _CREATE, _text(1, TABLE)),
        _message(_NEW_CHAIN, _CREATE | _EXCLUSIVE, chain),
        _message(_NEW_RULE, _CREATE | _APPEND | _ACK, rule),
    ]


def _transact(namespace: Path, messages: Iterable[bytes]) -> None:
    """Do all or nothing; what is there already is fine. Raises OSError."""
    begin, end = (
        _HEADER.pack(_HEADER.size + 4, what, _REQUEST, number, 0) + struct.pack(">BBH", 0, 0, _SUBSYSTEM)
        for number, what in ((1, _BEGIN), (2, _END))
    )
    with in_namespace(namespace, _open) as opened:
        opened.send(b"".join([begin, *messages, end]))
        answers = list(_messages(opened.recv(_READ_SIZE)))
    for error in (_error(body) for kind, body in answers if kind == _ERROR):
        if error not in (0, EEXIST, ENOENT):
            raise OSError(error, f"nftables: {os.strerror(error)}")


def _chains() -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    with _open() as opened:
        opened.send(_message(_GET_CHAIN, _DUMP, b""))
        while True:
            for kind, body in _messages(opened.recv(_READ_SIZE)):
                if kind == _DONE:
                    return found
                if kind == _ERROR:
                    raise OSError(_error(body), "nftables")
                if (chain := _chain(body[4:])) is not None:
                    found.add(chain)


def _chain(body: bytes) -> tuple[str, str] | None:
    fields = _attributes(body)
    device, _, mac = _string(fields.get(3, b"")).rpartition(" ")
    hooked = _string(_attributes(fields.get(4, b"")).get(3, b""))
    drops = fields.get(5) == struct.pack(">I", _DROP)
    whole = fields.get(6) == struct.pack(">I", 1)  # it has its rule
    ours = _string(fields.get(1, b"")) == TABLE and hooked == device
    return (device, mac) if ours and drops and whole else None


def _error(body: bytes) -> int:
    return int(-struct.unpack_from("=i", body)[0])


def _open() -> socket.socket:
    opened = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_NETFILTER)
    opened.settimeout(_ANSWER_S)
    return opened


def _message(what: int, flags: int, attributes: bytes) -> bytes:
    body = struct.pack(">BBH", _FAMILY, 0, 0) + attributes
    return _HEADER.pack(_HEADER.size + len(body), _SUBSYSTEM << 8 | what, _REQUEST | flags, 3, 0) + body


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Type and body of each message."""
    while len(data) >= _HEADER.size:
        length, kind, *_ = _HEADER.unpack_from(data)
        yield kind, data[_HEADER.size : length]
        data = data[_aligned(max(length, _HEADER.size)) :]


def _attributes(data: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    while len(data) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(data)
        found[kind & ~_NESTED] = data[_ATTRIBUTE.size : length]
        data = data[_aligned(max(length, _ATTRIBUTE.size)) :]
    return found


def _expression(name: str, data: bytes) -> bytes:
    return _nest(1, _text(1, name) + _nest(2, data))


def _attribute(kind: int, value: bytes) -> bytes:
    length = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(length, kind) + value.ljust(_aligned(length) - _ATTRIBUTE.size, b"\0")


def _nest(kind: int, value: bytes) -> bytes:
    return _attribute(kind | _NESTED, value)


def _number(kind: int, value: int) -> bytes:
    return _attribute(kind, struct.pack(">I", value))


def _text(kind: int, value: str) -> bytes:
    return _attribute(kind, value.encode() + b"\0")


def _string(value: bytes) -> str:
    return value.rstrip(b"\0").decode()


def _aligned(length: int) -> int:
    return (length + 3) & ~3
