"""Which wires of a testbed have a delay, and how it is made. Pure."""

from __future__ import annotations

from ces_common.messages.base import Message
from ces_common.names import link_device
from ces_testbed.addressing import data_plane
from ces_testbed.topology import Topology


class DelayedWire(Message):
    """Its ends, each a device in a namespace, and the microseconds that frames take from ``a`` to ``b`` and back.
    ``rate``: bit/s that are sent over it at most, one way."""

    a_space: str
    a_device: str
    b_space: str
    b_device: str
    there_us: int
    back_us: int
    rate: int


def delayed_wires(cluster: str, topology: Topology) -> dict[tuple[str, str], DelayedWire]:
    """Those of the topology's wires that have a delay at least one way."""
    delays: dict[tuple[str, str], int] = {}
    rates: dict[tuple[str, str], int] = {}
    for link in topology.links:
        for way in ((link.src, link.dst), *([(link.dst, link.src)] if link.both else [])):
            delays[way], rates[way] = link.delay, link.bandwidth
    return {
        (a, b): DelayedWire(
            a_space=data_plane(cluster, a),
            a_device=link_device(b),
            b_space=data_plane(cluster, b),
            b_device=link_device(a),
            there_us=delays.get((a, b), 0),
            back_us=delays.get((b, a), 0),
            rate=max(rates.get((a, b), 0), rates.get((b, a), 0)),
        )
        for a, b in topology.wires
        if delays.get((a, b)) or delays.get((b, a))
    }
