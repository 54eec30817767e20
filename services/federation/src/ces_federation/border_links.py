"""What this region and the others tell each other of the border links between them. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ces_common.hosts import SUBNET_BITS
from ces_common.messages.regions import Gateway, Summary
from ces_common.messages.split import BorderSetup, FarEnd, NearEnd
from ces_federation.peers import Peer


def setups(peers: Mapping[str, Peer], summaries: Mapping[str, Summary]) -> list[BorderSetup]:
    """This region's border links, as its manager is to have them. ``summaries``: of regions whose word counts now. The
    other end is believed where that region names the same two nodes, and addresses of its own block."""
    return [
        BorderSetup(
            region=name,
            gateway=peer.border.gateway,
            there=peer.border.there,
            bandwidth=peer.border.bandwidth,
            far=_far_end(peer, summaries.get(name)),
        )
        for name, peer in sorted(peers.items())
        if peer.border is not None
    ]


def _far_end(peer: Peer, summary: Summary | None) -> FarEnd | None:
    if summary is None or summary.gateway is None or peer.border is None:
        return None
    told = summary.gateway
    if (told.gateway, told.there) != (peer.border.there, peer.border.gateway):
        return None
    if told.subnet.prefixlen != SUBNET_BITS or not told.subnet.subnet_of(summary.block):
        return None
    return FarEnd(subnet=told.subnet, network=told.network, bandwidth=told.bandwidth)


def gateway_of(name: str, peer: Peer, near: Mapping[str, NearEnd]) -> Gateway | None:
    """What the region ``name`` is told of this one's end; None where there is none, or it has not joined."""
    if peer.border is None or name not in near:
        return None
    return Gateway(
        gateway=peer.border.gateway,
        there=peer.border.there,
        subnet=near[name].subnet,
        network=near[name].network,
        bandwidth=peer.border.bandwidth,
    )
