"""Emulated edge hosts: each a network namespace with a management cable, and another one for its data plane.

The management cables meet at a bridge in the root namespace; nothing is forwarded or translated there, so the hosts
reach this machine and it reaches them, and that is all. The wires of the topology join the data planes. The name of
the cluster finds everything again: nothing is written down.
"""

from __future__ import annotations

from ipaddress import IPv4Network

from pyroute2 import IPRoute

from ces_common.names import link_device
from ces_testbed.addressing import (
    HOST_DEVICE,
    POOL,
    bridge_address,
    bridge_device,
    check_cluster,
    choose_subnet,
    cluster_of,
    data_plane,
    device_prefix,
    host_address,
    host_namespace,
    management_device,
    namespace_prefix,
)
from ces_testbed.delay_keeper import end_delays, keeps_delays, start_delays
from ces_testbed.delays import delayed_wires
from ces_testbed.errors import TestbedError
from ces_testbed.netlink import (
    addresses,
    delete_device,
    devices,
    ensure_address,
    ensure_bridge,
    ensure_namespace,
    exclusively,
    index_of,
    kind_of,
    namespaces,
    networks_in_use,
    remove_namespace,
    routing,
    set_up,
)
from ces_testbed.taps import KIND, make_tap, why_no_taps
from ces_testbed.topology import DATA_PLANE_SUFFIX, Topology


class Hosts:
    """The hosts of one cluster. ``up`` makes what is missing; a wire is named by its two nodes in any order."""

    def __init__(self, cluster: str, topology: Topology) -> None:
        self.cluster = check_cluster(cluster)
        self.topology = topology
        self._subnet: IPv4Network | None = None
        self._undelayed = why_no_taps()
        self._delayed = {} if self._undelayed else delayed_wires(cluster, topology)

    @property
    def delays(self) -> str | None:
        """How the delays of its wires are made, for its users; None where no wire has one."""
        count = len(delayed_wires(self.cluster, self.topology))
        if not count:
            return None
        if self._undelayed is not None:
            return f"{count} wires have a delay in the topology, but none is made: {self._undelayed}"
        return f"the delays of {count} wires are made by a program (TAP devices)"

    @property
    def gateway(self) -> str:
        """This machine's address for the hosts. Raises TestbedError before ``up``."""
        return str(bridge_address(self._known_subnet()).ip)

    def address(self, node: str) -> str:
        """A host's management address. Raises TestbedError before ``up`` and for an unknown node."""
        return str(host_address(self._known_subnet(), self._index(node)).ip)

    def host_namespace(self, node: str) -> str:
        self._index(node)
        return host_namespace(self.cluster, node)

    def data_plane(self, node: str) -> str:
        self._index(node)
        return data_plane(self.cluster, node)

    def up(self) -> None:
        """Make what is not there yet and take away what the topology no longer has. Raises TestbedError."""
        # A data plane first, so that whatever is half made can be told from the namespaces that agents make.
        desired = [
            name
            for node in self.topology.nodes
            for name in (data_plane(self.cluster, node.name), host_namespace(self.cluster, node.name))
        ]
        ports = {management_device(self.cluster, node.name): node.name for node in self.topology.nodes}
        if len(ports) < len(self.topology.nodes):
            raise TestbedError("two node names give the same device name: rename one")
        for space in _host_spaces(self.cluster):
            if space not in desired:
                remove_namespace(space)
        with routing() as ip:
            self._ensure_bridge(ip, len(ports))
            keep = {bridge_device(self.cluster), *ports}
            for device in devices(ip, device_prefix(self.cluster)):
                if device not in keep:
                    delete_device(ip, device)
            for space in desired:
                ensure_namespace(space)
            for device, node in ports.items():
                self._ensure_cable(ip, device, node)
            made = [wire for wire in self.topology.wires if self._ensure_wire(ip, *wire)]
        for each in self.topology.nodes:
            self._remove_stale_wires(each.name)
        start_delays(self.cluster, list(self._delayed.values()), again=any(wire in self._delayed for wire in made))

    def down(self) -> None:
        remove_hosts(self.cluster)
        self._subnet = None

    def partition(self, node: str) -> None:
        """Pull the host's management cable: it hears neither broker nor manager. Its wires stay."""
        self._set_management(node, up=False)

    def heal(self, node: str) -> None:
        self._set_management(node, up=True)

    def cut(self, a: str, b: str) -> None:
        """Pull a wire between two hosts."""
        self._set_wire(a, b, up=False)

    def tear(self, a: str, b: str) -> None:
        """Take a wire between two hosts away, with the devices at its ends; ``up`` brings it back."""
        for node, peer in ((a, b), (b, a)):
            with routing(self.data_plane(node)) as ip:
                delete_device(ip, link_device(peer))

    def mend(self, a: str, b: str) -> None:
        self._set_wire(a, b, up=True)

    def _set_management(self, node: str, *, up: bool) -> None:
        self._index(node)
        with routing() as ip:
            set_up(ip, management_device(self.cluster, node), up=up)

    def _set_wire(self, a: str, b: str, *, up: bool) -> None:
        if (min(a, b), max(a, b)) not in self.topology.wires:
            raise TestbedError(f"no wire joins {a} and {b}")
        for node, peer in ((a, b), (b, a)):
            with routing(self.data_plane(node)) as ip:
                set_up(ip, link_device(peer), up=up)

    def _index(self, node: str) -> int:
        for index, each in enumerate(self.topology.nodes):
            if each.name == node:
                return index
        raise TestbedError(f"the topology has no node {node!r}")

    def _known_subnet(self) -> IPv4Network:
        if self._subnet is None:
            with routing() as ip:
                self._subnet = find_subnet(ip, self.cluster)
        if self._subnet is None:
            raise TestbedError(f"the hosts of cluster {self.cluster!r} are not up")
        return self._subnet

    def _ensure_bridge(self, ip: IPRoute, hosts: int) -> None:
        with exclusively():
            present = find_subnet(ip, self.cluster)
            if present is not None and present.num_addresses >= hosts + 3:
                self._subnet = present
            else:
                delete_device(ip, bridge_device(self.cluster))
                self._subnet = choose_subnet(self.cluster, hosts, networks_in_use(ip))
            index = ensure_bridge(ip, bridge_device(self.cluster))
            ensure_address(ip, index, bridge_address(self._subnet))

    def _ensure_cable(self, ip: IPRoute, device: str, node: str) -> None:
        inside = host_namespace(self.cluster, node)
        with routing(inside) as host:
            if index_of(host, HOST_DEVICE) is None or index_of(ip, device) is None:
                delete_device(ip, device)
                delete_device(host, HOST_DEVICE)
                ip.link("add", ifname=device, kind="veth", peer={"ifname": HOST_DEVICE, "net_ns_fd": inside})
            port = index_of(ip, device)
            ip.link("set", index=port, state="up", master=index_of(ip, bridge_device(self.cluster)))
            index = index_of(host, HOST_DEVICE)
            assert index is not None
            ensure_address(host, index, host_address(self._known_subnet(), self._index(node)))
            set_up(host, HOST_DEVICE)

    def _ensure_wire(self, ip: IPRoute, a: str, b: str) -> bool:
        """Whether it had to be made."""
        a_space, b_space = data_plane(self.cluster, a), data_plane(self.cluster, b)
        a_device, b_device = link_device(b), link_device(a)
        kind = KIND if (a, b) in self._delayed else "veth"
        with routing(a_space) as one, routing(b_space) as other:
            missing = {kind_of(one, a_device), kind_of(other, b_device)} != {kind}
            if missing:
                delete_device(one, a_device)
                delete_device(other, b_device)
                if kind == KIND:
                    make_tap(a_space, a_device)
                    make_tap(b_space, b_device)
                else:
                    peer = {"ifname": b_device, "net_ns_fd": b_space}
                    ip.link("add", ifname=a_device, kind=kind, net_ns_fd=a_space, peer=peer)
            set_up(one, a_device)
            set_up(other, b_device)
        return missing

    def _remove_stale_wires(self, node: str) -> None:
        peers = {b if a == node else a for a, b in self.topology.wires if node in (a, b)}
        keep = {link_device(peer) for peer in peers}
        tunnels = {
            link_device(link.dst if link.src == node else link.src)
            for link in self.topology.links
            if node in (link.src, link.dst) and link.kind != "veth"
        }
        with routing(data_plane(self.cluster, node)) as ip:
            for device in devices(ip, "to-"):
                if device not in keep | tunnels:
                    delete_device(ip, device)


def find_subnet(ip: IPRoute, cluster: str) -> IPv4Network | None:
    """The management subnet of a cluster whose hosts are up."""
    index = index_of(ip, bridge_device(cluster))
    if index is None:
        return None
    found = [address.network for address in addresses(ip, index) if address.ip in POOL]
    return found[0] if found else None


def remove_hosts(cluster: str) -> None:
    """Take away every namespace and device of a cluster. Whoever still runs inside must be ended first."""
    spaces = namespaces(namespace_prefix(check_cluster(cluster)))
    end_delays(cluster)
    with routing() as ip:
        for device in devices(ip, device_prefix(cluster)):
            delete_device(ip, device)
    for name in spaces:
        # Deleted by hand: the kernel takes a namespace apart only later, in its own time.
        if name.endswith(DATA_PLANE_SUFFIX):
            with routing(name) as ip:
                for device in devices(ip, "to-"):
                    delete_device(ip, device)
    for name in spaces:
        remove_namespace(name)


def _host_spaces(cluster: str) -> list[str]:
    """The namespaces of hosts; agents name those of their workers with the same prefix, but without a data plane."""
    spaces = namespaces(namespace_prefix(cluster))
    return [name for name in spaces if name.endswith(DATA_PLANE_SUFFIX) or name + DATA_PLANE_SUFFIX in spaces]


def traces(cluster: str) -> list[str]:
    """What of a cluster is left on this machine: its namespaces, its devices in the root namespace, and the processes
    that are its wires."""
    with routing() as ip:
        left = namespaces(namespace_prefix(cluster)) + devices(ip, device_prefix(cluster))
    return left + [f"wires of process {pid}" for pid in keeps_delays(cluster)]


def clusters() -> list[str]:
    """The clusters that have hosts on this machine."""
    planes = (name for name in namespaces("ces-") if name.endswith(DATA_PLANE_SUFFIX))
    return sorted({cluster for name in planes if (cluster := cluster_of(name))})
