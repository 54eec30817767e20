"""A worker's end of its veth, inside the holder's namespace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ces_common.naming import WORKER_DEVICE
from ces_edge_agent.dataplane.errors import DataPlaneError
from ces_edge_agent.dataplane.namespace import netlink
from ces_edge_agent.dataplane.objects import ANYWHERE, WorkerEnd

GATEWAY = "169.254.1.1"  # nobody's address: the worker knows its hardware address and never asks for it
PERMANENT = 0x80  # NUD_PERMANENT
LOOPBACK = "lo"


def clear(namespace: Path) -> None:
    """Remove a device of ours that an earlier allocation left. Raises DataPlaneError and NetlinkError."""
    with netlink(namespace) as ipr:
        for index in ipr.link_lookup(ifname=WORKER_DEVICE):
            ipr.link("del", index=index)


def settle(namespace: Path, wanted: WorkerEnd) -> None:
    """Set up the worker's device as wanted; doing it again changes nothing. Raises DataPlaneError and NetlinkError."""
    with netlink(namespace) as ipr:
        indices = {message.get_attr("IFLA_IFNAME"): message["index"] for message in ipr.get_links()}
        if WORKER_DEVICE not in indices:
            raise DataPlaneError(f"device {WORKER_DEVICE} is not in {namespace}")
        device = indices[WORKER_DEVICE]
        ipr.link("set", index=indices[LOOPBACK], state="up")
        ipr.link("set", index=device, mtu=wanted.mtu, gso_max_size=wanted.gso, state="up")
        _address(ipr, device, wanted.address)
        ipr.neigh("replace", ifindex=device, dst=GATEWAY, lladdr=wanted.gateway_mac, state=PERMANENT)
        ipr.route("replace", dst=ANYWHERE, gateway=GATEWAY, oif=device, flags=["onlink"], prefsrc=wanted.address)


def _address(ipr: Any, device: int, address: str) -> None:
    present = {message.get_attr("IFA_LOCAL") for message in ipr.get_addr(index=device, family=2)}
    if address not in present:
        ipr.addr("add", index=device, address=address, prefixlen=32)
    for stale in present - {address}:
        ipr.addr("del", index=device, address=stale, prefixlen=32)
