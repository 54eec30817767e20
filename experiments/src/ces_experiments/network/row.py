"""Hosts in a row as network namespaces, n1 - n2 - ..., workers on them, and the documents their agents get."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from ces_common.messages.desired import (
    DesiredNetwork,
    EncryptedTunnel,
    Endpoint,
    FlowClass,
    LinkDevice,
    PeerRoute,
    PolicyRoute,
    SubnetRoute,
    VxlanTunnel,
)
from ces_common.names import link_device
from ces_common.shares import HEADROOM, LinkKind, best_effort_rate, fitted, return_rate
from ces_testbed.netlink import NAMESPACES, ensure_namespace, namespaces, remove_namespace, routing

PREFIX = "netbench-"
HOSTS = (1, 2, 3)
PORT = 51872  # of encrypted packets, on each host


@dataclass(frozen=True)
class Worker:
    name: str
    host: int
    job: str
    address: str
    namespace: str

    @property
    def file(self) -> Path:
        """Of its network namespace."""
        return NAMESPACES / self.namespace


@dataclass(frozen=True)
class Flow:
    """``rate`` and ``ceil``, what an elastic flow may send in all, in bit/s."""

    number: int
    src: Worker
    dst: Worker
    rate: int
    ceil: int | None = None


@dataclass
class Row:
    """``bandwidth`` of every link and direction, in bit/s. All names begin with the prefix. ``kind`` of every link:
    wires straight between data planes, or tunnels over wires between namespaces that stand for the hosts. ``keys``:
    host -> public keys by which its neighbours encrypt; ``folder``: for the hosts' own."""

    prefix: str
    bandwidth: int
    hosts: Sequence[int] = HOSTS
    kind: LinkKind = "veth"
    folder: Path | None = None
    keys: dict[int, list[str]] = field(default_factory=dict)
    workers: list[Worker] = field(default_factory=list)
    flows: dict[int, Flow] = field(default_factory=dict)

    @property
    def best_effort(self) -> int:
        """What all traffic without a reservation has of a link."""
        return best_effort_rate(self.bandwidth)

    def namespace(self, host: int) -> str:
        """Of a host's data plane."""
        return f"{self.prefix}n{host}"

    def underlay(self, host: int) -> str:
        """Stands for the host itself, where links are tunnels."""
        return f"{self.prefix}u{host}"

    def add_namespace(self, name: str) -> None:
        ensure_namespace(name)

    def build(self) -> None:
        """The hosts with their wires."""
        place = self.namespace if self.kind == "veth" else self.underlay
        for host in self.hosts:
            for name in {self.namespace(host), place(host)}:
                self.add_namespace(name)
        for near, far in pairwise(self.hosts):
            with routing(place(near)) as ip:
                peer = {"ifname": link_device(f"n{near}"), "net_ns_fd": place(far)}
                ip.link("add", ifname=link_device(f"n{far}"), kind="veth", peer=peer)
            if self.kind != "veth":
                for at, other in ((near, far), (far, near)):
                    with routing(place(at)) as ip:
                        (index,) = ip.link_lookup(ifname=link_device(f"n{other}"))
                        ip.addr("add", index=index, address=_wire(at, other), prefixlen=24)
                        ip.link("set", index=index, state="up")

    def destroy(self) -> None:
        """Whatever it was made of, if it was."""
        for name in namespaces(self.prefix):
            remove_namespace(name)

    def worker(self, name: str, host: int, job: str) -> Worker:
        """A sandbox on a host; its address is the next of the host's subnet."""
        number = 2 + sum(worker.host == host for worker in self.workers)
        worker = Worker(name, host, job, f"10.{host}.0.{number}", f"{self.prefix}{name}")
        self.add_namespace(worker.namespace)
        self.workers.append(worker)
        return worker

    def reserve(self, number: int, src: Worker, dst: Worker, rate: int, ceil: int | None = None) -> None:
        """A new flow, or another rate for the flow of that number."""
        self.flows[number] = Flow(number, src, dst, rate, ceil)

    def sandboxes(self, host: int) -> dict[str, Path]:
        """Allocation -> the file of its network namespace."""
        return {worker.name: worker.file for worker in self.workers if worker.host == host}

    def desired(self, host: int, generation: int = 1) -> DesiredNetwork:
        """What network-ctl would ask of a host for these flows."""
        links = [self.link(host, peer) for peer in (host - 1, host + 1) if peer in self.hosts]
        classes = [each for link in links for each in self._classes(host, link)]
        passing = [each for each in classes if each.src not in {w.address for w in self.workers if w.host == host}]
        policies = {(c.src, c.dst): PolicyRoute(job=c.job, src=c.src, dst=c.dst, via=c.via) for c in passing}
        return DesiredNetwork(
            node=f"n{host}",
            generation=generation,
            router=f"10.{host}.0.1",
            subnet=f"10.{host}.0.0/24",
            links=links,
            subnets=[SubnetRoute(subnet=f"10.{far}.0.0/24", via=via) for far in self.hosts if (via := _hop(host, far))],
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

    def link(self, host: int, peer: int) -> LinkDevice:
        """A host's link to a neighbour."""
        gateway, vni = f"10.{peer}.0.1", 100 + min(host, peer)
        tunnel = encrypted = None
        if self.kind == "vxlan":
            tunnel = VxlanTunnel(vni=vni, remote=_wire(peer, host), local=_wire(host, peer))
        elif self.kind == "wireguard":
            tunnel = VxlanTunnel(vni=vni, remote=gateway)
            encrypted = EncryptedTunnel(keys=self.keys.get(peer, []), address=_wire(peer, host), port=PORT)
        return LinkDevice(
            peer=f"n{peer}",
            device=link_device(f"n{peer}"),
            kind=self.kind,
            bandwidth=self.bandwidth,
            best_effort=self.best_effort,
            gateway=gateway,
            vxlan=tunnel,
            wireguard=encrypted,
        )

    def _classes(self, host: int, link: LinkDevice) -> list[FlowClass]:
        there = [flow for flow in self.flows.values() if _passes(host, flow.src, flow.dst, link.peer)]
        back = [flow for flow in self.flows.values() if _passes(host, flow.dst, flow.src, link.peer)]
        room = link.bandwidth - link.best_effort - sum(flow.rate for flow in there)
        returns = fitted([return_rate(flow.rate) for flow in back], room)
        return [
            FlowClass(
                job=f.src.job, number=f.number, kind="data", via=link.peer, src=f.src.address, dst=f.dst.address,
                rate=f.rate, ceil=f.ceil,
            )
            for f in there
        ] + [
            FlowClass(
                job=f.src.job, number=f.number, kind="return", via=link.peer, src=f.dst.address, dst=f.src.address,
                rate=rate, ceil=f.ceil and return_rate(f.ceil), small_only=True,
            )
            for f, rate in zip(back, returns, strict=True)
        ]  # fmt: skip


def filled(rate: int, flows: int) -> int:
    """The link that ``flows`` flows of a rate fill: what plans may promise of it is promised."""
    return -int(-rate * flows // (1 - HEADROOM))


@contextmanager
def row_of(bandwidth: int, kind: LinkKind = "veth") -> Iterator[Row]:
    """The hosts with their wires; whatever a row was made of is gone afterwards."""
    _sweep()
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder:
        row = Row(f"{PREFIX}{os.getpid()}-", bandwidth, kind=kind, folder=Path(folder))
        try:
            row.build()
            yield row
        finally:
            row.destroy()


def _sweep() -> None:
    """Remove what runs left that were killed."""
    for name in namespaces(PREFIX):
        pid = name.removeprefix(PREFIX).partition("-")[0]
        if not Path("/proc", pid).exists():
            remove_namespace(name)


def _wire(at: int, other: int) -> str:
    """A host's own address on the wire to its neighbour."""
    return f"172.31.{min(at, other)}.{at}"


def _hop(host: int, target: int) -> str | None:
    """The neighbour on the way to a host; None for the host itself."""
    return None if host == target else f"n{host + (1 if target > host else -1)}"


def _passes(host: int, src: Worker, dst: Worker, peer: str) -> bool:
    return min(src.host, dst.host) <= host <= max(src.host, dst.host) and _hop(host, dst.host) == peer
