"""The data plane's namespace in the kernel: its objects, facts and counters. Blocking; for use by one thread."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from socket import AF_INET

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkDumpInterrupted, NetlinkError

from ces_common.messages.desired import DesiredNetwork
from ces_common.names import endpoint_device
from ces_edge_agent.dataplane.meters import ClassCounters, LinkCounters
from ces_edge_agent.dataplane.netlink import namespace as namespaces
from ces_edge_agent.dataplane.netlink import observed, source_guard
from ces_edge_agent.dataplane.netlink.counter_reader import CounterReader
from ces_edge_agent.dataplane.netlink.steps import Site, opened, perform
from ces_edge_agent.dataplane.plan.derivation import LOCAL_RULE, LOCAL_TABLE, Facts
from ces_edge_agent.dataplane.plan.diff import Step
from ces_edge_agent.dataplane.plan.objects import HTB_MAJOR, MAIN_TABLE, Device, KernelObject, Key, Shaper, WorkerEnd
from ces_edge_agent.ports import DataPlaneError, SandboxNamespaces

NOWHERE: frozenset[str] = frozenset()
DUMPS = 3  # tries, if something changes during a dump
KERNEL_RULES = {(LOCAL_TABLE, LOCAL_RULE), (MAIN_TABLE, 32766), (253, 32767)}  # table and priority
PARAMETERS = {
    "net/ipv4/ip_forward": "1",
    "net/ipv4/conf/all/rp_filter": "0",
    "net/ipv4/conf/default/rp_filter": "0",
    "net/ipv4/conf/all/send_redirects": "0",
    "net/ipv4/conf/default/send_redirects": "0",
    "net/ipv4/conf/all/accept_redirects": "0",
    "net/ipv4/conf/default/accept_redirects": "0",
    "net/ipv6/conf/all/disable_ipv6": "1",
    "net/ipv6/conf/default/disable_ipv6": "1",
    "net/ipv4/ping_group_range": "0\t2147483647",  # who may send probes: any user in here, where only the agent is
    # To a peer with a very short round trip, TCP would send 64 KiB in one burst whatever its pacing rate: more than the
    # queue of a slow class holds. With 0, a burst is what the pacing rate lets out in a millisecond, or two segments.
    "net/ipv4/tcp_tso_rtt_log": "0",
}


@dataclass
class Snapshot:
    """The namespace at one moment. ``indices``: device -> index; ``sandboxes``: node's end of an endpoint's veth ->
    namespace of its sandbox."""

    facts: Facts
    objects: list[KernelObject]
    indices: dict[str, int]
    sandboxes: dict[str, Path]


class Kernel:
    """``underlay``: the namespace from which VXLAN packets are sent, by default the agent's own; those of encrypted
    tunnels are sent from ``inside`` a namespace that has nothing but WireGuard."""

    def __init__(self, name: str, underlay: Path = namespaces.OWN) -> None:
        self._name, self._underlay = name, underlay
        self._ipr: IPRoute | None = None
        self._counters = CounterReader(self.path)
        self._identity: tuple[int, int] | None = None
        self._numbers: dict[tuple[int, int], int] = {}  # identity of a sandbox's namespace -> its number
        # Worker's ends configured by this run, with the index of the node's end. They are not read back: nobody else
        # can change them, and each would cost entering its namespace.
        self._configured: dict[Key, tuple[WorkerEnd, int]] = {}

    @property
    def path(self) -> Path:
        return namespaces.DIRECTORY / self._name

    @property
    def inside(self) -> Path:
        return namespaces.DIRECTORY / f"{self._name}-wg"

    @property
    def identity(self) -> tuple[int, int] | None:
        """Device and inode of the namespace that was opened last."""
        return self._identity

    def open(self) -> None:
        """Create and configure the namespace unless that is done. Raises DataPlaneError."""
        path = namespaces.ensure(self._name)
        try:
            identity = namespaces.identity(path)
        except OSError as error:
            raise DataPlaneError(f"network namespace {path}: {error.strerror}") from error
        if self._ipr is not None and identity == self._identity:
            return
        self.close()
        namespaces.set_parameters(path, PARAMETERS)
        self._ipr, self._identity = namespaces.open_netlink(path), identity

    def close(self) -> None:
        if self._ipr is not None:
            self._ipr.close()
        self._ipr = None
        self._counters.close()
        self._configured.clear()
        self._numbers.clear()

    def remove(self) -> None:
        """Delete our devices, which takes effect at once, and then the namespace. Raises DataPlaneError."""
        if self.path.exists():
            self.open()
            try:
                for message in self._list("get_links"):
                    device = observed.device(message)
                    if device is not None and device.kind in ("endpoint", "vxlan"):
                        self._socket.link("del", index=message["index"])
            except NetlinkError as error:
                raise DataPlaneError(f"the data plane cannot be taken down: {error}") from error
        self.close()
        namespaces.remove(self._name)

    def snapshot(self, desired: DesiredNetwork, sandboxes: SandboxNamespaces) -> Snapshot:
        """The objects that exist, and the facts that the document's derivation needs. Raises DataPlaneError."""
        try:
            for _ in range(DUMPS):
                try:
                    return self._snapshot(desired, sandboxes)
                except NetlinkDumpInterrupted:
                    continue
            return self._snapshot(desired, sandboxes)
        except (NetlinkError, OSError) as error:
            raise DataPlaneError(f"the data plane cannot be read: {error}") from error

    def perform(self, step: Step, site: Site) -> None:
        """Take one step. Raises DataPlaneError."""
        perform(step, site)
        if isinstance(step.item, WorkerEnd) and step.action != "delete":
            self._configured[step.item.key] = step.item, site.index(step.item.device)

    def site(self, snapshot: Snapshot) -> Site:
        return Site(self._socket, self.path, self._underlay, self.inside, snapshot.sandboxes, dict(snapshot.indices))

    def class_counters(self, device: str) -> dict[int, ClassCounters]:
        """Class minor -> counters; empty if there is no such device. Raises DataPlaneError."""
        return self._counters.classes(device)

    def link_counters(self, devices: set[str]) -> dict[str, LinkCounters]:
        """Device -> counters, without devices that do not exist. Raises DataPlaneError."""
        return self._counters.links(devices)

    def shown(self, devices: Collection[str]) -> dict[str, observed.Shown]:
        """The state of these devices, without those that do not exist. Raises DataPlaneError."""
        try:
            return {
                name: observed.shown(message)
                for message in self._list("get_links")
                if (name := message.get_attr("IFLA_IFNAME")) in devices
            }
        except NetlinkError as error:
            raise DataPlaneError(f"links cannot be read: {error}") from error

    @property
    def _socket(self) -> IPRoute:
        if self._ipr is None:
            raise DataPlaneError("the data plane is not open")
        return self._ipr

    def _list(self, method: str, **selection: int) -> list[observed.Message]:
        return namespaces.listing(self._socket, method, **selection)

    def _snapshot(self, desired: DesiredNetwork, sandboxes: SandboxNamespaces) -> Snapshot:
        self._order_rules()
        indices: dict[str, int] = {}
        objects: list[KernelObject] = []
        carrier: set[str] = set()
        messages, inside = self._list("get_links"), self._number_of(self.inside)
        guards = self._guards({message.get_attr("IFLA_IFNAME"): message["index"] for message in messages})
        for message in messages:
            name = message.get_attr("IFLA_IFNAME")
            indices[name] = message["index"]
            if observed.has_carrier(message):
                carrier.add(name)
            if (device := observed.device(message, guards, inside)) is not None:
                objects.append(device)
        names = {index: name for name, index in indices.items()}
        found: list[KernelObject | None] = []
        found += [observed.address(message, names) for message in self._list("get_addr", family=AF_INET)]
        found += [observed.route(message, names) for message in self._list("get_routes", family=AF_INET)]
        found += [observed.rule(message) for message in self._list("get_rules", family=AF_INET)]
        found += [observed.qdisc(message, names) for message in self._list("get_qdiscs")]
        shaped = [item.device for item in found if isinstance(item, Shaper) and item.default > 0]
        for device_name in shaped:
            index = indices[device_name]
            found += [observed.shaped_class(message, device_name) for message in self._list("get_classes", index=index)]
            filters = self._list("get_filters", index=index, parent=HTB_MAJOR << 16)
            found += [observed.shaping_filter(message, device_name) for message in filters]
        objects += [item for item in found if item is not None]
        objects += self._worker_ends(indices, carrier)
        numbers = self._sandbox_numbers(desired, sandboxes, {item.key: item for item in objects})
        facts = Facts(
            mtu={item.name: item.mtu for item in objects if isinstance(item, Device)},
            underlay=self.underlay_mtu(
                {
                    link.wireguard.address if link.wireguard else link.vxlan.remote
                    for link in desired.links
                    if link.vxlan
                }
            ),
            own=self._host_addresses() if any(link.vxlan and not link.wireguard for link in desired.links) else NOWHERE,
            sandboxes=numbers,
        )
        paths = {endpoint_device(allocation): Path(file) for allocation in numbers if (file := sandboxes[allocation])}
        return Snapshot(facts, objects, indices, paths)

    def _number_of(self, namespace: Path) -> int | None:
        """The number by which the data plane's namespace knows another; None where that does not exist."""
        try:
            with opened(namespace) as descriptor:
                return int(self._socket.get_netnsid(fd=descriptor)["nsid"])
        except OSError:
            return None

    def _guards(self, indices: Mapping[str, int]) -> dict[str, tuple[str, str]]:
        """Tunnel's device -> MAC and remote address of what it lets in alone. Takes away what guarded devices that are
        no tunnels any more: newer kernels keep it for whatever device gets the name."""
        chains = source_guard.chains(self.path)
        entries = source_guard.entries(self._socket) if chains else {}
        found: dict[str, tuple[str, str]] = {}
        for device, mac in chains:
            remotes = entries.get(indices.get(device, 0), {})
            if not remotes:
                source_guard.unguard(self.path, device, mac)
            elif mac in remotes:
                found[device] = mac, remotes[mac]
        return found

    def _order_rules(self) -> None:
        """Move the kernel's rule for local addresses behind the endpoints' rules, and restore its other rules."""
        present = {
            (message.get_attr("FRA_TABLE"), message.get_attr("FRA_PRIORITY") or 0)
            for message in self._list("get_rules", family=AF_INET)
        }
        for table, priority in KERNEL_RULES - present:
            self._socket.rule("add", family=AF_INET, priority=priority, table=table)
        if (LOCAL_TABLE, 0) in present:
            self._socket.rule("del", family=AF_INET, priority=0, table=LOCAL_TABLE)

    def _worker_ends(self, indices: Mapping[str, int], carrier: set[str]) -> list[KernelObject]:
        self._configured = {
            key: (end, index)
            for key, (end, index) in self._configured.items()
            if indices.get(end.device) == index and end.device in carrier
        }
        return [end for end, _ in self._configured.values()]

    def _sandbox_numbers(
        self, desired: DesiredNetwork, sandboxes: SandboxNamespaces, present: Mapping[Key, KernelObject]
    ) -> dict[str, int]:
        """Allocation -> the number by which the data plane's namespace knows that of the sandbox, -1 while it has none.
        Without sandboxes whose namespace does not exist."""
        numbers: dict[str, int] = {}
        known: dict[tuple[int, int], int] = {}
        for endpoint in desired.endpoints:
            file = sandboxes.get(endpoint.allocation)
            if file is None:
                continue
            path = Path(file)
            try:
                identity = namespaces.identity(path)
                # While a veth leads there the namespace lives, so that its number and identity are not reused.
                number = self._numbers.get(identity, -1)
                device = present.get(("device", endpoint_device(endpoint.allocation)))
                if not isinstance(device, Device) or device.sandbox != number:
                    with opened(path) as descriptor:
                        number = self._socket.get_netnsid(fd=descriptor)["nsid"]
            except (OSError, NetlinkError):
                continue
            known[identity] = numbers[endpoint.allocation] = number
        self._numbers = known
        return numbers

    def _host_addresses(self) -> frozenset[str]:
        """Raises NetlinkError, DataPlaneError."""
        with namespaces.netlink(self._underlay) as host:
            found = namespaces.listing(host, "get_addr", family=AF_INET)
        return frozenset(message.get_attr("IFA_LOCAL") for message in found)

    def underlay_mtu(self, remotes: set[str]) -> dict[str, int]:
        """Remote host -> MTU of the device on the route to it; without hosts that have no route. Raises NetlinkError,
        DataPlaneError."""
        mtus: dict[str, int] = {}
        if not remotes:
            return mtus
        with namespaces.netlink(self._underlay) as host:
            for remote in remotes:
                try:
                    (route,) = host.route("get", dst=remote)
                    (device,) = host.link("get", index=route.get_attr("RTA_OIF"))
                except NetlinkError:
                    continue
                mtus[remote] = device.get_attr("IFLA_MTU")
        return mtus
