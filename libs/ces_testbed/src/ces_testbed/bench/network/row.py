"""Three hosts in a row as network namespaces, n1 - n2 - n3, workers on them, and the documents their agents get."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ces_common.messages.wanted import (
    Endpoint,
    FlowClass,
    LinkDevice,
    NetworkWanted,
    PeerRoute,
    PolicyRoute,
    SubnetRoute,
)
from ces_common.naming import link_device
from ces_common.shares import HEADROOM, fitted, return_rate, unreserved_rate
from ces_testbed.netlink import NAMESPACES, ensure_namespace, namespaces, remove_namespace, routing

PREFIX = "netbench-"
HOSTS = (1, 2, 3)


@dataclass(frozen=True)
class Worker:
    name: str
    host: int
    job: str
    address: str
    namespace: str


@dataclass(frozen=True)
class Flow:
    """``rate`` and ``ceiling``, what an elastic flow may send in all, in bit/s."""

    number: int
    src: Worker
    dst: Worker
    rate: int
    ceiling: int | None = None


@dataclass
class Row:
    """``bandwidth`` of every link and direction, in bit/s."""

    prefix: str
    bandwidth: int
    workers: list[Worker] = field(default_factory=list)
    flows: dict[int, Flow] = field(default_factory=dict)

    def namespace(self, host: int) -> str:
        return f"{self.prefix}n{host}"

    def worker(self, name: str, host: int, job: str) -> Worker:
        """A holder on a host; its address is the next of the host's subnet."""
        number = 2 + sum(worker.host == host for worker in self.workers)
        worker = Worker(name, host, job, f"10.{host}.0.{number}", f"{self.prefix}{name}")
        ensure_namespace(worker.namespace)
        self.workers.append(worker)
        return worker

    def reserve(self, number: int, src: Worker, dst: Worker, rate: int, ceiling: int | None = None) -> None:
        """A new flow, or another rate for the flow of that number."""
        self.flows[number] = Flow(number, src, dst, rate, ceiling)

    def holders(self, host: int) -> dict[str, str]:
        """Allocation -> the file of its network namespace."""
        return {w.name: str(NAMESPACES / w.namespace) for w in self.workers if w.host == host}

    def wanted(self, host: int, generation: int) -> NetworkWanted:
        """What network-ctl would ask of a host for these flows."""
        links = [self._link(peer) for peer in (host - 1, host + 1) if peer in HOSTS]
        classes = [each for link in links for each in self._classes(host, link)]
        passing = [each for each in classes if each.src not in {w.address for w in self.workers if w.host == host}]
        policies = {(c.src, c.dst): PolicyRoute(job=c.job, src=c.src, dst=c.dst, via=c.via) for c in passing}
        return NetworkWanted(
            node=f"n{host}",
            generation=generation,
            router=f"10.{host}.0.1",
            subnet=f"10.{host}.0.0/24",
            links=links,
            subnets=[SubnetRoute(subnet=f"10.{far}.0.0/24", via=via) for far in HOSTS if (via := _hop(host, far))],
            endpoints=[self._endpoint(worker) for worker in self.workers if worker.host == host],
            policies=list(policies.values()),
            classes=classes,
        )

    def _endpoint(self, worker: Worker) -> Endpoint:
        peers = [
            PeerRoute(address=peer.address, via=_hop(worker.host, peer.host))
            for peer in self.workers
            if peer.job == worker.job and peer != worker
        ]
        return Endpoint(
            allocation=worker.name, job=worker.job, address=worker.address, hostname=worker.name, peers=peers
        )

    def _link(self, peer: int) -> LinkDevice:
        return LinkDevice(
            peer=f"n{peer}",
            device=link_device(f"n{peer}"),
            kind="veth",
            bandwidth=self.bandwidth,
            unreserved=unreserved_rate(self.bandwidth),
            gateway=f"10.{peer}.0.1",
        )

    def _classes(self, host: int, link: LinkDevice) -> list[FlowClass]:
        there = [flow for flow in self.flows.values() if _passes(host, flow.src, flow.dst, link.peer)]
        back = [flow for flow in self.flows.values() if _passes(host, flow.dst, flow.src, link.peer)]
        room = link.bandwidth - link.unreserved - sum(flow.rate for flow in there)
        returns = fitted([return_rate(flow.rate) for flow in back], room)
        return [
            FlowClass(
                job=f.src.job, number=f.number, kind="data", via=link.peer, src=f.src.address, dst=f.dst.address,
                rate=f.rate, ceiling=f.ceiling,
            )
            for f in there
        ] + [
            FlowClass(
                job=f.src.job, number=f.number, kind="return", via=link.peer, src=f.dst.address, dst=f.src.address,
                rate=rate, ceiling=f.ceiling and return_rate(f.ceiling), small_only=True,
            )
            for f, rate in zip(back, returns, strict=True)
        ]  # fmt: skip


def filled(rate: int, flows: int) -> int:
    """The link that ``flows`` flows of a rate fill: what plans may promise of it is promised."""
    return -int(-rate * flows // (1 - HEADROOM))


@contextmanager
def row_of(bandwidth: int) -> Iterator[Row]:
    """The hosts with their wires; whatever a row was made of is gone afterwards."""
    _sweep()
    row = Row(f"{PREFIX}{os.getpid()}-", bandwidth)
    try:
        for host in HOSTS:
            ensure_namespace(row.namespace(host))
        for near, far in ((1, 2), (2, 3)):
            with routing(row.namespace(near)) as ip:
                peer = {"ifname": link_device(f"n{near}"), "net_ns_fd": row.namespace(far)}
                ip.link("add", ifname=link_device(f"n{far}"), kind="veth", peer=peer)
        yield row
    finally:
        for name in namespaces(row.prefix):
            remove_namespace(name)


def _sweep() -> None:
    """Remove what runs left that were killed."""
    for name in namespaces(PREFIX):
        pid = name.removeprefix(PREFIX).partition("-")[0]
        if not Path("/proc", pid).exists():
            remove_namespace(name)


def _hop(host: int, target: int) -> str | None:
    """The neighbour on the way to a host; None for the host itself."""
    return None if host == target else f"n{host + (1 if target > host else -1)}"


def _passes(host: int, src: Worker, dst: Worker, peer: str) -> bool:
    return min(src.host, dst.host) <= host <= max(src.host, dst.host) and _hop(host, dst.host) == peer
