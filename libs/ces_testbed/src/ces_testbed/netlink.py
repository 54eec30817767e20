"""The few netlink steps that a testbed is made of: namespaces, veth pairs, a bridge. Each may be repeated."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Interface, IPv4Network
from pathlib import Path

from pyroute2 import IPRoute, netns
from pyroute2.netlink.exceptions import NetlinkError

from ces_testbed.errors import TestbedError

NAMESPACES = Path("/run/netns")


@contextmanager
def exclusively() -> Iterator[None]:
    """One testbed at a time chooses its subnet."""
    NAMESPACES.mkdir(parents=True, exist_ok=True)
    handle = os.open(NAMESPACES, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def routing(namespace: str | None = None) -> Iterator[IPRoute]:
    """A netlink socket in a namespace (None: the one that this process is in). Raises TestbedError."""
    if namespace is not None and not (NAMESPACES / namespace).exists():
        raise TestbedError(f"there is no network namespace {namespace}")
    try:
        socket = IPRoute(netns=namespace, flags=0) if namespace else IPRoute()
    except OSError as error:
        raise TestbedError(f"netlink cannot be reached in {namespace or 'the root namespace'}: {error}") from error
    try:
        with socket:
            yield socket
    except NetlinkError as error:
        raise TestbedError(f"{namespace or 'root namespace'}: {error}") from error


def namespaces(prefix: str) -> list[str]:
    return sorted(name for name in netns.listnetns() if name.startswith(prefix))


def ensure_namespace(name: str) -> None:
    """Visible as /run/netns/<name>, its loopback up."""
    if name in netns.listnetns() and not is_namespace(name):
        netns.remove(name)  # a bare file: its maker was interrupted
    if name not in netns.listnetns():
        try:
            netns.create(name)
        except OSError as error:
            raise TestbedError(f"the network namespace {name} could not be made: {error}") from error
    with routing(name) as ip:
        set_up(ip, "lo")


def is_namespace(name: str) -> bool:
    """Whether the name is mounted: what makes it a namespace and not an empty file."""
    return os.stat(NAMESPACES / name).st_dev != os.stat(NAMESPACES).st_dev


def remove_namespace(name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        netns.remove(name)


def index_of(ip: IPRoute, device: str) -> int | None:
    found = ip.link_lookup(ifname=device)
    return found[0] if found else None


def kind_of(ip: IPRoute, device: str) -> str | None:
    """As the kernel calls it, such as ``veth``; None where there is no such device, or it is of no kind."""
    index = index_of(ip, device)
    if index is None:
        return None
    (link,) = ip.get_links(index)
    info = link.get_attr("IFLA_LINKINFO")
    return None if info is None else info.get_attr("IFLA_INFO_KIND")


def devices(ip: IPRoute, prefix: str) -> list[str]:
    names = (link.get("ifname") for link in ip.get_links())
    return sorted(name for name in names if name and name.startswith(prefix))


def delete_device(ip: IPRoute, device: str) -> None:
    """A veth takes its other end with it. One that is gone already is fine."""
    index = index_of(ip, device)
    if index is None:
        return
    try:
        ip.link("del", index=index)
    except NetlinkError as error:
        if error.code != errno.ENODEV:
            raise


def set_up(ip: IPRoute, device: str, *, up: bool = True) -> None:
    index = index_of(ip, device)
    if index is None:
        raise TestbedError(f"there is no device {device}")
    ip.link("set", index=index, state="up" if up else "down")


def ensure_bridge(ip: IPRoute, device: str) -> int:
    index = index_of(ip, device)
    if index is None:
        ip.link("add", ifname=device, kind="bridge")
        index = index_of(ip, device)
    assert index is not None
    ip.link("set", index=index, state="up")
    return index


def addresses(ip: IPRoute, index: int) -> list[IPv4Interface]:
    return [
        IPv4Interface(f"{found.get('address')}/{found['prefixlen']}") for found in ip.get_addr(family=2, index=index)
    ]


def ensure_address(ip: IPRoute, index: int, address: IPv4Interface) -> None:
    """Exactly this IPv4 address."""
    present = addresses(ip, index)
    for other in present:
        if other != address:
            ip.addr("del", index=index, address=str(other.ip), prefixlen=other.network.prefixlen)
    if address not in present:
        ip.addr("add", index=index, address=str(address.ip), prefixlen=address.network.prefixlen)


def networks_in_use(ip: IPRoute) -> list[IPv4Network]:
    """Every IPv4 network that the machine has an address in or a route to, the default route left out."""
    found = {IPv4Interface(f"{a.get('address')}/{a['prefixlen']}").network for a in ip.get_addr(family=2)}
    for route in ip.get_routes(family=2):
        if route.get("dst"):
            found.add(IPv4Network(f"{route.get('dst')}/{route['dst_len']}", strict=False))
    return sorted(found)
