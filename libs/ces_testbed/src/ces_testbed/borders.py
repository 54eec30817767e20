"""The wires between regions on one machine: each joins the data planes of two gateways. They go with these."""

from __future__ import annotations

from collections.abc import Mapping

from ces_common.names import border_node, link_device
from ces_testbed.addressing import data_plane
from ces_testbed.netlink import delete_device, index_of, routing, set_up
from ces_testbed.spec import RegionPlace


def join_regions(places: Mapping[str, RegionPlace]) -> None:
    """Make every wire that is missing. ``places``: by the names of the regions, whose hosts are up."""
    for one, place in places.items():
        for other, ends in place.borders.items():
            if one < other:
                _join(one, ends.gateway, other, ends.there)


def _join(one: str, gateway: str, other: str, there: str) -> None:
    here, far = data_plane(one, gateway), data_plane(other, there)
    device, peer = link_device(border_node(other, there)), link_device(border_node(one, gateway))
    with routing(here) as first, routing(far) as second:
        if index_of(first, device) is None or index_of(second, peer) is None:
            delete_device(first, device)
            delete_device(second, peer)
            ends = {"ifname": peer, "net_ns_fd": far}
            first.link("add", ifname=device, kind="veth", peer=ends)
        set_up(first, device)
        set_up(second, peer)
