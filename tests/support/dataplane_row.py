"""The network benchmark's row of hosts with data planes in this process, over wires or over tunnels between hosts."""

from __future__ import annotations

import asyncio
import secrets
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

from ces_common.messages.desired import DesiredNetwork, EncryptedTunnel, LinkDevice, PeerRoute, Reader, VxlanTunnel
from ces_edge_agent.dataplane.netlink.namespace import DIRECTORY
from ces_edge_agent.dataplane.tc_network import TcNetwork
from ces_edge_agent.dataplane.wireguard.tunnels import TunnelSettings
from ces_experiments.network import row as bench
from ces_experiments.network.row import Worker

MBIT = 1_000_000
PORT = 51872  # of encrypted packets, in the namespaces that stand for hosts
KEY_LIFE_S = 86400.0


def ip(*arguments: str) -> str:
    """Run ip(8)."""
    return subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True).stdout


def tc(*arguments: str) -> str:
    """Run tc(8)."""
    return subprocess.run(["tc", *arguments], check=True, capture_output=True, text=True).stdout


class Row(bench.Row):
    """``tunnelled``: the links are VXLANs between namespaces that stand for the hosts themselves; else veths straight
    between data planes. ``lan_mtu``: these hosts have one NIC of that MTU each on a switch that they share, instead of
    wires of their own. ``encrypted``: the tunnels travel inside WireGuard; ``keys``: host -> public keys that its
    neighbours are told."""

    def __init__(
        self,
        hosts: int,
        bandwidth: int = 100 * MBIT,
        tunnelled: bool = False,
        lan_mtu: int | None = None,
        encrypted: bool = False,
    ) -> None:
        super().__init__(f"dpt{secrets.token_hex(3)}-", bandwidth, range(1, hosts + 1))
        self.tunnelled, self.lan_mtu, self.encrypted = tunnelled or encrypted, lan_mtu, encrypted
        self.networks: dict[int, TcNetwork] = {}
        self.keys: dict[int, list[str]] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="ces-row-") if encrypted else None

    def underlay(self, host: int) -> str:
        return f"{self.prefix}u{host}"

    def add_namespace(self, name: str) -> None:
        """Without a netlink socket of this process: tests call it from their event loop."""
        ip("netns", "add", name)

    def build(self) -> None:
        if not self.tunnelled:
            super().build()
            return
        for host in self.hosts:
            self.add_namespace(self.underlay(host))
        if self.lan_mtu is not None:
            self._build_lan(self.lan_mtu)
            return
        for near, far in pairwise(self.hosts):
            ip("-n", self.underlay(near), "link", "add", f"eth{far}", "type", "veth",
               "peer", "name", f"eth{near}", "netns", self.underlay(far))  # fmt: skip
            for at, other in ((near, far), (far, near)):
                ip("-n", self.underlay(at), "addr", "add", f"{_wire(at, other)}/24", "dev", f"eth{other}")
                ip("-n", self.underlay(at), "link", "set", f"eth{other}", "up")

    def _build_lan(self, mtu: int) -> None:
        switch = f"{self.prefix}lan"
        self.add_namespace(switch)
        ip("-n", switch, "link", "add", "lan", "mtu", str(mtu), "type", "bridge")
        ip("-n", switch, "link", "set", "lan", "up")
        for host in self.hosts:
            ip("-n", self.underlay(host), "link", "add", "eth0", "mtu", str(mtu), "type", "veth",
               "peer", "name", f"port{host}", "mtu", str(mtu), "netns", switch)  # fmt: skip
            ip("-n", switch, "link", "set", f"port{host}", "master", "lan", "up")
            ip("-n", self.underlay(host), "addr", "add", f"172.31.0.{host}/24", "dev", "eth0")
            ip("-n", self.underlay(host), "link", "set", "eth0", "up")

    def link(self, host: int, peer: int) -> LinkDevice:
        link = super().link(host, peer)
        if not self.tunnelled:
            return link
        vni = self.vni(host, peer)
        if self.encrypted:
            wireguard = EncryptedTunnel(keys=self.keys.get(peer, []), address=self.address(peer, host), port=PORT)
            tunnel = VxlanTunnel(vni=vni, remote=link.gateway)
            return link.model_copy(update={"kind": "wireguard", "vxlan": tunnel, "wireguard": wireguard})
        tunnel = VxlanTunnel(vni=vni, remote=self.address(peer, host), local=self.address(host, peer))
        return link.model_copy(update={"kind": "vxlan", "vxlan": tunnel})

    def vni(self, host: int, peer: int) -> int:
        return 100 + min(host, peer)

    def address(self, host: int, peer: int) -> str:
        """Of a host, where that of a neighbour reaches it."""
        return _wire(host, peer) if self.lan_mtu is None else f"172.31.0.{host}"

    def network(self, host: int) -> TcNetwork:
        if not self.tunnelled:
            return TcNetwork(f"n{host}", self.namespace(host))
        tunnels = None
        if self._folder is not None:
            tunnels = TunnelSettings(Path(self._folder.name, f"n{host}.json"), PORT, KEY_LIFE_S)
        return TcNetwork(f"n{host}", self.namespace(host), underlay=DIRECTORY / self.underlay(host), tunnels=tunnels)

    def data(self, host: int, job: str) -> Worker:
        """The host itself, as a flow's source: data that lies on it, which a worker reads."""
        return Worker(f"@n{host}", host, job, f"10.{host}.0.1", self.namespace(host))

    def desired(self, host: int, generation: int = 1) -> DesiredNetwork:
        desired = super().desired(host, generation)
        read = {(flow.dst.address, flow.src.address) for flow in self.flows.values() if flow.src not in self.workers}
        asking = {each.src: each for each in desired.classes if (each.src, each.dst) in read}
        endpoints = [
            endpoint.model_copy(update={"peers": [*endpoint.peers, PeerRoute(address=each.dst, via=each.via)]})
            if (each := asking.get(endpoint.address)) is not None
            else endpoint
            for endpoint in desired.endpoints
        ]
        classes = [
            each.model_copy(update={"small_only": False}) if each in asking.values() else each
            for each in desired.classes
        ]
        readers = [
            Reader(job=flow.src.job, address=flow.dst.address)
            for flow in self.flows.values()
            if flow.src == self.data(host, flow.src.job)
        ]
        return desired.model_copy(
            update={
                "endpoints": endpoints,
                "classes": classes,
                "readers": readers,
                "link_keys": self.keys.get(host, []),
            }
        )

    async def open(self) -> None:
        for host in self.hosts:
            self.networks[host] = self.network(host)
            await self.networks[host].open()
        await self.tell_keys()

    async def tell_keys(self) -> None:
        """Have the documents say what the hosts tell of their keys now."""
        for host, network in self.networks.items():
            told = await network.encryption()
            self.keys[host] = told.keys if told is not None else []

    async def apply(self) -> None:
        """On all hosts; fails when a host reports a failure."""
        for host, network in self.networks.items():
            failed = await network.apply(self.desired(host), self.sandboxes(host))
            assert failed == {}, f"n{host}: {failed}"

    async def close(self) -> None:
        for network in self.networks.values():
            await network.close()

    def destroy(self) -> None:
        super().destroy()
        if self._folder is not None:
            self._folder.cleanup()


def _wire(at: int, other: int) -> str:
    """A host's own address on the wire to its neighbour."""
    return f"172.31.{min(at, other)}.{at}"


@asynccontextmanager
async def row_of(
    hosts: int,
    tunnelled: bool = False,
    lan_mtu: int | None = None,
    bandwidth: int = 100 * MBIT,
    encrypted: bool = False,
) -> AsyncIterator[Row]:
    """A row with its networks open, gone afterwards."""
    row = Row(hosts, bandwidth, tunnelled=tunnelled, lan_mtu=lan_mtu, encrypted=encrypted)
    try:
        await asyncio.to_thread(row.build)
        await row.open()
        yield row
    finally:
        await row.close()
        await asyncio.to_thread(row.destroy)
