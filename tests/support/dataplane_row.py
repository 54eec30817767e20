"""Hosts in a row as network namespaces, n1 - n2 - ..., with the documents that their agents would get."""

from __future__ import annotations

import asyncio
import secrets
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from ces_common.messages.wanted import (
    Endpoint,
    FlowClass,
    LinkDevice,
    NetworkWanted,
    PeerRoute,
    PolicyRoute,
    SubnetRoute,
    VxlanTunnel,
)
from ces_common.naming import link_device
from ces_edge_agent.dataplane import TcNetwork
from ces_edge_agent.dataplane.namespace import DIRECTORY

MBIT = 1_000_000


def ip(*arguments: str) -> str:
    """Run ip(8)."""
    return subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True).stdout


def tc(*arguments: str) -> str:
    """Run tc(8)."""
    return subprocess.run(["tc", *arguments], check=True, capture_output=True, text=True).stdout


@dataclass(frozen=True)
class Worker:
    name: str
    host: int
    job: str
    address: str
    namespace: Path


@dataclass(frozen=True)
class Flow:
    number: int
    src: Worker
    dst: Worker
    rate: int  # bit/s


class Row:
    """All names carry a random prefix. ``bandwidth`` and ``unreserved`` of every link, in bit/s. ``tunnelled``: the
    links are VXLANs between namespaces that stand for the hosts themselves; else veths straight between data planes.
    ``lan_mtu``: these hosts have one NIC of that MTU each on a switch that they share, instead of wires of their own.
    """

    def __init__(
        self,
        hosts: int,
        bandwidth: int = 100 * MBIT,
        unreserved: int = 5 * MBIT,
        tunnelled: bool = False,
        lan_mtu: int | None = None,
    ) -> None:
        self.prefix = f"dpt{secrets.token_hex(3)}"
        self.hosts = range(1, hosts + 1)
        self.bandwidth, self.unreserved, self.tunnelled = bandwidth, unreserved, tunnelled
        self.lan_mtu = lan_mtu
        self.workers: list[Worker] = []
        self.flows: list[Flow] = []
        self.networks: dict[int, TcNetwork] = {}
        self._namespaces: list[str] = []

    def name(self, host: int) -> str:
        return f"{self.prefix}-n{host}"

    def underlay(self, host: int) -> str:
        return f"{self.prefix}-u{host}"

    def build(self) -> None:
        for host in self.hosts:
            self._namespace(self.underlay(host) if self.tunnelled else self.name(host))
        if self.lan_mtu is not None:
            self._build_lan(self.lan_mtu)
            return
        for far in self.hosts[1:]:
            near = far - 1
            if self.tunnelled:
                ip("-n", self.underlay(near), "link", "add", f"eth{far}", "type", "veth",
                   "peer", "name", f"eth{near}", "netns", self.underlay(far))  # fmt: skip
                for at, other in ((near, far), (far, near)):
                    ip("-n", self.underlay(at), "addr", "add", f"{_wire(at, other)}/24", "dev", f"eth{other}")
                    ip("-n", self.underlay(at), "link", "set", f"eth{other}", "up")
            else:
                ip("-n", self.name(near), "link", "add", link_device(f"n{far}"), "type", "veth",
                   "peer", "name", link_device(f"n{near}"), "netns", self.name(far))  # fmt: skip

    def _build_lan(self, mtu: int) -> None:
        switch = f"{self.prefix}-lan"
        self._namespace(switch)
        ip("-n", switch, "link", "add", "lan", "mtu", str(mtu), "type", "bridge")
        ip("-n", switch, "link", "set", "lan", "up")
        for host in self.hosts:
            ip("-n", self.underlay(host), "link", "add", "eth0", "mtu", str(mtu), "type", "veth",
               "peer", "name", f"port{host}", "mtu", str(mtu), "netns", switch)  # fmt: skip
            ip("-n", switch, "link", "set", f"port{host}", "master", "lan", "up")
            ip("-n", self.underlay(host), "addr", "add", f"172.31.0.{host}/24", "dev", "eth0")
            ip("-n", self.underlay(host), "link", "set", "eth0", "up")

    def worker(self, name: str, host: int, job: str) -> Worker:
        """A holder on a host; its address is the next of the host's subnet."""
        number = 2 + sum(worker.host == host for worker in self.workers)
        namespace = DIRECTORY / f"{self.prefix}-{name}"
        self._namespace(namespace.name)
        worker = Worker(name, host, job, f"10.{host}.0.{number}", namespace)
        self.workers.append(worker)
        return worker

    def flow(self, number: int, src: Worker, dst: Worker, rate: int) -> None:
        """Reserve, or change the reservation of that number."""
        self.flows = [flow for flow in self.flows if flow.number != number] + [Flow(number, src, dst, rate)]

    def holders(self, host: int) -> dict[str, Path | None]:
        return {worker.name: worker.namespace for worker in self.workers if worker.host == host}

    def wanted(self, host: int) -> NetworkWanted:
        endpoints, policies, classes = [], {}, []
        for worker in self.workers:
            if worker.host == host:
                peers = [
                    PeerRoute(address=peer.address, via=self._hop(host, peer.host))
                    for peer in self.workers
                    if peer.job == worker.job and peer != worker
                ]
                endpoints.append(
                    Endpoint(
                        allocation=worker.name,
                        job=worker.job,
                        address=worker.address,
                        hostname=worker.name,
                        peers=peers,
                    )
                )
        for flow in self.flows:
            for kind, src, dst in (("data", flow.src, flow.dst), ("return", flow.dst, flow.src)):
                via = self._hop(host, dst.host)
                if via is None or not min(src.host, dst.host) <= host <= max(src.host, dst.host):
                    continue
                classes.append(
                    FlowClass(
                        job=flow.src.job,
                        number=flow.number,
                        kind=kind,
                        via=via,
                        src=src.address,
                        dst=dst.address,
                        rate=flow.rate if kind == "data" else max(flow.rate // 20, 200_000),
                        small_only=kind == "return",
                    )
                )
                if host != src.host:
                    policies[src, dst] = PolicyRoute(job=src.job, src=src.address, dst=dst.address, via=via)
        return NetworkWanted(
            node=f"n{host}",
            generation=1,
            router=f"10.{host}.0.1",
            subnet=f"10.{host}.0.0/24",
            links=[self._link(host, peer) for peer in (host - 1, host + 1) if peer in self.hosts],
            subnets=[
                SubnetRoute(subnet=f"10.{other}.0.0/24", via=via)
                for other in self.hosts
                if (via := self._hop(host, other)) is not None
            ],
            endpoints=endpoints,
            policies=list(policies.values()),
            classes=classes,
        )

    def network(self, host: int) -> TcNetwork:
        if self.tunnelled:
            return TcNetwork(f"n{host}", self.name(host), underlay=DIRECTORY / self.underlay(host))
        return TcNetwork(f"n{host}", self.name(host))

    async def open(self) -> None:
        for host in self.hosts:
            self.networks[host] = self.network(host)
            await self.networks[host].open()

    async def apply(self) -> None:
        """On all hosts; fails when a host reports a failure."""
        for host, network in self.networks.items():
            failed = await network.apply(self.wanted(host), self.holders(host))
            assert failed == {}, f"n{host}: {failed}"

    async def close(self) -> None:
        for network in self.networks.values():
            await network.close()

    def destroy(self) -> None:
        for name in {*self._namespaces, *(self.name(host) for host in self.hosts)}:
            if (DIRECTORY / name).exists():
                ip("netns", "del", name)

    def _namespace(self, name: str) -> None:
        self._namespaces.append(name)
        ip("netns", "add", name)

    def _link(self, host: int, peer: int) -> LinkDevice:
        remote = _wire(peer, host) if self.lan_mtu is None else f"172.31.0.{peer}"
        return LinkDevice(
            peer=f"n{peer}",
            device=link_device(f"n{peer}"),
            kind="vxlan" if self.tunnelled else "veth",
            bandwidth=self.bandwidth,
            unreserved=self.unreserved,
            gateway=f"10.{peer}.0.1",
            vxlan=VxlanTunnel(vni=100 + min(host, peer), remote=remote) if self.tunnelled else None,
        )

    @staticmethod
    def _hop(host: int, target: int) -> str | None:
        if host == target:
            return None
        return f"n{host + 1}" if target > host else f"n{host - 1}"


def _wire(at: int, other: int) -> str:
    """A host's own address on the wire to its neighbour."""
    return f"172.31.{min(at, other)}.{at}"


@asynccontextmanager
async def row_of(
    hosts: int, tunnelled: bool = False, lan_mtu: int | None = None, bandwidth: int = 100 * MBIT
) -> AsyncIterator[Row]:
    """A row with its networks open, gone afterwards."""
    row = Row(hosts, bandwidth, tunnelled=tunnelled, lan_mtu=lan_mtu)
    try:
        await asyncio.to_thread(row.build)
        await row.open()
        yield row
    finally:
        await row.close()
        await asyncio.to_thread(row.destroy)
