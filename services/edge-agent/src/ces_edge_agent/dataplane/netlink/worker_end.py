"""The worker's end of its veth, inside the sandbox's namespace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ces_common.names import WORKER_DEVICE
from ces_edge_agent.dataplane.netlink.namespace import netlink
from ces_edge_agent.dataplane.plan.objects import ANYWHERE, WorkerEnd
from ces_edge_agent.ports import DataPlaneError

GATEWAY = "169.254.1.1"  # nobody has this address: the worker has a permanent neighbour entry for it
PERMANENT = 0x80  # NUD_PERMANENT
LOOPBACK = "lo"


def clear(namespace: Path) -> None:
    """Delete a device of ours that an earlier allocation left. Raises DataPlaneError and NetlinkError."""
    with netlink(namespace) as ipr:
        for index in ipr.link_lookup(ifname=WORKER_DEVICE):
            ipr.link("del", index=index)


def configure(namespace: Path, desired: WorkerEnd) -> None:
    """Configure the worker's device; idempotent. Raises DataPlaneError and NetlinkError."""
    with netlink(namespace) as ipr:
        indices = {message.get_attr("IFLA_IFNAME"): message["index"] for message in ipr.get_links()}
        if WORKER_DEVICE not in indices:
            raise DataPlaneError(f"device {WORKER_DEVICE} is not in {namespace}")
        device = indices[WORKER_DEVICE]
        ipr.link("set", index=indices[LOOPBACK], state="up")
        ipr.link("set", index=device, mtu=desired.mtu, gso_max_size=desired.gso, state="up")
        _address(ipr, device, desired.address)
        ipr.neigh("replace", ifindex=device, dst=GATEWAY, lladdr=desired.gateway_mac, state=PERMANENT)
        ipr.route("replace", dst=ANYWHERE, gateway=GATEWAY, oif=device, flags=["onlink"], prefsrc=desired.address)


def _address(ipr: Any, device: int, address: str) -> None:
    present = {message.get_attr("IFA_LOCAL") for message in ipr.get_addr(index=device, family=2)}
    if address not in present:
        ipr.addr("add", index=device, address=address, prefixlen=32)
    for stale in present - {address}:
        ipr.addr("del", index=device, address=stale, prefixlen=32)
