"""Links as they are without CES: one queue for all that is sent over each, as fast as the link is. For comparisons."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.rtnl.tcmsg import plugins, sched_pfifo

from ces_common.names import link_device
from ces_testbed.cluster import Cluster
from ces_testbed.netlink import index_of, routing
from ces_testbed.services import agent_name

QUEUE_S = 0.05
"""Of a link's rate: as much as CES's own queues hold."""
ROOT, MAJOR, CLASS = 0xFFFFFFFF, 0x10000, 0x10001
BURST_S = 0.015
FRAME = 1514
plugins.setdefault("bfifo", sched_pfifo)  # pyroute2 only knows pfifo, which has the same options


@contextmanager
def plain_links(cluster: Cluster) -> Iterator[None]:
    """The agents stand still meanwhile, since they would repair what they find, and report nothing: for seconds, not
    for as long as the manager waits for them. They find their own classes missing then, and make them again."""
    agents = [cluster.supervisor.pid(agent_name(node.name)) for node in cluster.spec.topology.nodes]
    try:
        for pid in agents:
            _tell(pid, signal.SIGSTOP)
        for link in cluster.spec.topology.links:
            for node, peer in ((link.src, link.dst), *([(link.dst, link.src)] if link.both else [])):
                _one_queue(cluster.hosts.data_plane(node), link_device(peer), link.bandwidth)
        yield
    finally:
        for pid in agents:
            _tell(pid, signal.SIGCONT)


def _tell(pid: int | None, number: signal.Signals) -> None:
    if pid is not None:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _one_queue(namespace: str, device: str, bandwidth: int) -> None:
    rate = bandwidth // 8
    with routing(namespace) as ip:
        index = index_of(ip, device)
        with suppress(NetlinkError):  # it has the kernel's own
            ip.tc("del", index=index, parent=ROOT)
        ip.tc("add", "htb", index=index, handle=MAJOR, default=CLASS & 0xFFFF)
        burst = max(rate * BURST_S, FRAME)
        ip.tc("add-class", "htb", index=index, handle=CLASS, parent=MAJOR, rate=rate, ceil=rate, burst=burst)
        ip.tc("add", "bfifo", index=index, handle=2 * MAJOR, parent=CLASS, limit=int(rate * QUEUE_S))
