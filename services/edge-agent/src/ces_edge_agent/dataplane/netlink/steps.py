"""Taking one step through netlink. Adding what exists and deleting what is gone is no error."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from errno import EEXIST, ENODEV, ENOENT, ESRCH
from pathlib import Path
from socket import AF_INET
from typing import Any

import structlog
from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.rtnl.tcmsg import plugins, sched_pfifo

from ces_common.names import WORKER_DEVICE
from ces_edge_agent.dataplane.netlink import source_guard, worker_end
from ces_edge_agent.dataplane.netlink.namespace import listing, netlink, set_device_parameter
from ces_edge_agent.dataplane.netlink.observed import OWNER, match_keys, shaping_filter
from ces_edge_agent.dataplane.plan.diff import Step
from ces_edge_agent.dataplane.plan.objects import (
    HTB_MAJOR,
    ROOT,
    TC_ROOT,
    Address,
    Device,
    Filter,
    KernelObject,
    Queue,
    Route,
    Rule,
    ShapedClass,
    Shaper,
    WorkerEnd,
)
from ces_edge_agent.ports import DataPlaneError

log = structlog.get_logger()
plugins.setdefault("bfifo", sched_pfifo)  # pyroute2 only knows pfifo, which has the same options

MERGE_NS = 300_000  # longer than wireguard-go takes from one segment of a burst to the next
LINK_SCOPE = 253  # RT_SCOPE_LINK
TABLE_SHIFT, NODE_ID = 20, 0xFFF  # parts of a u32 filter's handle
_GONE = {ENOENT, ESRCH, ENODEV}


@dataclass
class Site:
    """Where steps are taken. ``sandboxes``: node's end of an endpoint's veth -> its sandbox's namespace. ``indices``:
    device -> index in the data plane's namespace, kept up to date by the steps. ``inside``: the namespace in which the
    packets of encrypted tunnels travel."""

    ipr: IPRoute
    namespace: Path
    underlay: Path
    inside: Path
    sandboxes: Mapping[str, Path]
    indices: dict[str, int] = field(default_factory=dict)

    def index(self, device: str) -> int:
        try:
            return self.indices[device]
        except KeyError:
            raise DataPlaneError(f"device {device} is not there") from None


def perform(step: Step, site: Site) -> None:
    """Raises DataPlaneError."""
    try:
        _perform(step, site)
    except NetlinkError as error:
        if step.action == "add" and error.code == EEXIST and not isinstance(step.item, Device):
            return
        raise DataPlaneError(f"cannot {step}: {os.strerror(error.code)}") from error
    except OSError as error:
        raise DataPlaneError(f"cannot {step}: {error.strerror}") from error
    except struct.error as error:
        raise DataPlaneError(f"cannot {step}: netlink has no room for a number of it: {error}") from error


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """The namespace as a file descriptor. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _gone_is_fine() -> Iterator[None]:
    try:
        yield
    except NetlinkError as error:
        if error.code not in _GONE:
            raise


def _perform(step: Step, site: Site) -> None:
    item, action = step.item, step.action
    if action == "delete":
        with _gone_is_fine():
            _delete(item, site)
        return
    match item:
        case Device():
            _device(item, action, site)
        case Address():
            site.ipr.addr("replace", index=site.index(item.device), address=item.address, prefixlen=32)
        case WorkerEnd():
            worker_end.configure(site.sandboxes[item.device], item)
        case Route():
            site.ipr.route("replace", **_route(item, site))
        case Rule():
            site.ipr.rule("add", **_rule(item))
        case Shaper():
            _shaper(item, action, site)
        case ShapedClass():
            _class(item, action, site)
        case Queue():
            verb = "add" if action == "add" else "change"
            site.ipr.tc(verb, "bfifo", **_queue(item, site), limit=item.limit)
        case Filter():
            _filter(item, action, site)


def _device(item: Device, action: str, site: Site) -> None:
    if action == "remake":
        with _gone_is_fine():
            site.ipr.link("del", index=site.indices.pop(item.name))
    if action in ("add", "remake"):
        _create(item, site)
        found = site.ipr.link_lookup(ifname=item.name)
        if not found:
            raise DataPlaneError(f"device {item.name} is not there")
        site.indices[item.name] = found[0]
        if item.tunnel is not None:
            source_guard.guard(site.ipr, site.namespace, found[0], item.name, item.tunnel.source, item.tunnel.remote)
        if item.tunnel is not None and item.tunnel.encrypted:
            _merge_segments(item.name, site)
    settings: dict[str, Any] = {"index": site.index(item.name), "state": "up"}
    if item.kind in ("vxlan", "endpoint"):
        settings["mtu"] = item.mtu
    if item.mac:
        settings["address"] = item.mac
    site.ipr.link("set", **settings)


def _merge_segments(device: str, site: Site) -> None:
    """Have the kernel wait a moment for a segment's successor. A program hands over one at a time what it decrypted;
    acknowledged one by one, segments take more than their flow's return class has. Without it flows are just slower."""
    try:
        set_device_parameter(site.namespace, device, "gro_flush_timeout", MERGE_NS)
    except OSError as error:
        log.warning("segments are not merged on an encrypted link", device=device, error=str(error))


def _create(item: Device, site: Site) -> None:
    if item.kind == "endpoint":
        with opened(site.sandboxes[item.name]) as sandbox:
            worker_end.clear(site.sandboxes[item.name])
            peer = {"ifname": WORKER_DEVICE, "net_ns_fd": sandbox, "mtu": item.mtu}
            site.ipr.link("add", ifname=item.name, kind="veth", mtu=item.mtu, address=item.mac, peer=peer)
    elif item.tunnel is not None:
        # Created from the namespace in which its packets are to travel, but directly inside ours.
        outside = site.inside if item.tunnel.encrypted else site.underlay
        own = {"vxlan_local": item.tunnel.local} if item.tunnel.local else {}
        with netlink(outside) as outer, opened(site.namespace) as target:
            outer.link(
                "add",
                ifname=item.name,
                kind="vxlan",
                mtu=item.mtu,
                address=item.mac,
                net_ns_fd=target,
                vxlan_id=item.tunnel.vni,
                vxlan_group=item.tunnel.remote,
                vxlan_port=item.tunnel.port,
                vxlan_learning=1,  # nothing is learned, for lack of room: it has the kernel look where frames come from
                vxlan_limit=source_guard.MOST_LEARNED,
                **own,
            )


def _route(item: Route, site: Site) -> dict[str, Any]:
    fields: dict[str, Any] = {"table": item.table, "dst": item.destination, "proto": OWNER}
    if not item.device:
        return fields | {"type": "unreachable"}
    fields["oif"] = site.index(item.device)
    if item.gateway is None:
        return fields | {"scope": LINK_SCOPE}
    return fields | {"gateway": item.gateway, "flags": ["onlink"]}


def _rule(item: Rule) -> dict[str, Any]:
    fields: dict[str, Any] = {"family": AF_INET, "priority": item.priority, "protocol": OWNER}
    fields |= {"table": item.table} if item.table else {"action": "unreachable"}
    if item.device:
        fields["iifname"] = item.device
    if item.source:
        fields["src"] = item.source
    if item.destination:
        fields["dst"] = item.destination
    return fields


def _shaper(item: Shaper, action: str, site: Site) -> None:
    index = site.index(item.device)
    if action == "remake":
        site.ipr.tc("del", index=index, parent=TC_ROOT)
    site.ipr.tc("add", "htb", index=index, handle=HTB_MAJOR << 16, default=item.default)


def _class(item: ShapedClass, action: str, site: Site) -> None:
    """Here bit/s become bytes/s, which the kernel and pyroute2 take."""
    rate, ceil = item.rate // 8, item.ceil // 8
    site.ipr.tc(
        "add-class" if action == "add" else "change-class",
        "htb",
        index=site.index(item.device),
        handle=_minor(item.minor),
        parent=_minor(item.parent) if item.parent != ROOT else TC_ROOT,
        rate=rate,
        ceil=ceil,
        # pyroute2 takes bursts in bytes and rounds them down to microseconds
        burst=(item.burst + 0.5) * rate / 1e6,
        cburst=(item.cburst + 0.5) * ceil / 1e6,
        quantum=item.quantum,
        prio=item.priority,
    )


def _queue(item: Queue, site: Site) -> dict[str, int]:
    return {"index": site.index(item.device), "handle": item.minor << 16, "parent": _minor(item.minor)}


def _filter(item: Filter, action: str, site: Site) -> None:
    site.ipr.tc(
        "add-filter" if action == "add" else "change-filter",
        "u32",
        **_filter_name(item, site),
        keys=match_keys(item.match),
    )


def _filter_name(item: Filter, site: Site) -> dict[str, int]:
    return {
        "index": site.index(item.device),
        "handle": item.handle,
        "parent": _minor(0),
        "prio": item.priority,
        "protocol": item.protocol,
        "target": _minor(item.minor),
    }


def _delete(item: KernelObject, site: Site) -> None:
    ipr = site.ipr
    match item:
        case Device():
            ipr.link("del", index=site.indices.pop(item.name))
            if item.tunnel is not None and item.tunnel.source:
                source_guard.unguard(site.namespace, item.name, item.tunnel.source)
        case Address():
            ipr.addr("del", index=site.index(item.device), address=item.address, prefixlen=32)
        case WorkerEnd():
            pass  # it goes with its veth
        case Route():
            ipr.route("del", **_route(item, site))
        case Rule():
            ipr.rule("del", **_rule(item))
        case Shaper():
            ipr.tc("del", index=site.index(item.device), parent=TC_ROOT)
        case ShapedClass():
            ipr.tc("del-class", index=site.index(item.device), handle=_minor(item.minor))
        case Queue():
            ipr.tc("del", index=site.index(item.device), handle=item.minor << 16, parent=_minor(item.minor))
        case Filter():
            for handle in _handles(item, site):
                ipr.tc("del-filter", "u32", **(_filter_name(item, site) | {"handle": handle}))


def _handles(item: Filter, site: Site) -> list[int]:
    """The kernel's handles of a filter: the number that it was added with, completed by that of its table."""
    if item.handle >> TABLE_SHIFT:
        return [item.handle]
    found = listing(site.ipr, "get_filters", index=site.index(item.device), parent=_minor(0))
    there = [observed for message in found if (observed := shaping_filter(message, item.device)) is not None]
    return [each.handle for each in there if each.key == item.key and each.handle & NODE_ID == item.handle]


def _minor(minor: int) -> int:
    return HTB_MAJOR << 16 | minor
