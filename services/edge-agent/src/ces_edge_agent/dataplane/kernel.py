"""The data plane's namespace as it is: what is there, facts about it, counters. Blocking; used by one thread."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from socket import AF_INET

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkDumpInterrupted, NetlinkError

from ces_common.messages.wanted import NetworkWanted
from ces_common.naming import endpoint_device
from ces_edge_agent.dataplane import namespace as namespaces
from ces_edge_agent.dataplane import observe
from ces_edge_agent.dataplane.counter_reader import CounterReader
from ces_edge_agent.dataplane.derive import LOCAL_RULE, Facts
from ces_edge_agent.dataplane.diff import Step
from ces_edge_agent.dataplane.errors import DataPlaneError
from ces_edge_agent.dataplane.meter import ClassCounters, LinkCounters
from ces_edge_agent.dataplane.objects import HTB_MAJOR, MAIN_TABLE, Device, KernelObject, Key, Shaper, WorkerEnd
from ces_edge_agent.dataplane.steps import Site, opened, perform

LOOKS = 3
LOCAL_TABLE = 255
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
    "net/ipv4/ping_group_range": "0\t2147483647",  # who may probe: whoever is in here, which is nobody but the agent
    # To a peer that answers at once, TCP would hand down 64 KiB in one burst whatever its pace: more than the queue of
    # a slow class holds. Like this a burst is what its pace lets out in a millisecond, two segments at least.
    "net/ipv4/tcp_tso_rtt_log": "0",
}


@dataclass
class Snapshot:
    """The namespace at one moment. ``holders``: node's end of an endpoint's veth -> namespace of its holder."""

    facts: Facts
    objects: list[KernelObject]
    indices: dict[str, int]
    holders: dict[str, Path]


class Kernel:
    """``underlay``: the namespace whose addresses VXLAN packets travel between, the agent's own by default."""

    def __init__(self, name: str, underlay: Path = namespaces.OWN) -> None:
        self._name, self._underlay = name, underlay
        self._ipr: IPRoute | None = None
        self._counters = CounterReader(self.path)
        self._identity: tuple[int, int] | None = None
        self._numbers: dict[tuple[int, int], int] = {}  # identity of a holder's namespace -> its number
        # Worker's ends set up by this run, with the index of the node's end: nobody but us can change them, and
        # looking at each costs a visit to its namespace.
        self._settled: dict[Key, tuple[WorkerEnd, int]] = {}

    @property
    def path(self) -> Path:
        return namespaces.DIRECTORY / self._name

    @property
    def identity(self) -> tuple[int, int] | None:
        """Of the namespace that was opened last."""
        return self._identity

    def open(self) -> None:
        """Make the namespace what a data plane needs, unless it is. Raises DataPlaneError."""
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
        self._settled.clear()
        self._numbers.clear()

    def remove(self) -> None:
        """Delete what is ours one by one, so that it is gone at once, then the namespace. Raises DataPlaneError."""
        if self.path.exists():
            self.open()
            try:
                for message in self._list("get_links"):
                    device = observe.device(message)
                    if device is not None and device.kind in ("endpoint", "vxlan"):
                        self._socket.link("del", index=message["index"])
            except NetlinkError as error:
                raise DataPlaneError(f"the data plane cannot be taken down: {error}") from error
        self.close()
        namespaces.remove(self._name)

    def look(self, wanted: NetworkWanted, holders: Mapping[str, Path | None]) -> Snapshot:
        """Raises DataPlaneError."""
        try:
            for _ in range(LOOKS):
                try:
                    return self._look(wanted, holders)
                except NetlinkDumpInterrupted:
                    continue  # something changed meanwhile
            return self._look(wanted, holders)
        except (NetlinkError, OSError) as error:
            raise DataPlaneError(f"the data plane cannot be read: {error}") from error

    def perform(self, step: Step, site: Site) -> None:
        """Raises DataPlaneError."""
        perform(step, site)
        if isinstance(step.item, WorkerEnd) and step.action != "delete":
            self._settled[step.item.key] = step.item, site.index(step.item.device)

    def site(self, snapshot: Snapshot) -> Site:
        return Site(self._socket, self.path, self._underlay, snapshot.holders, dict(snapshot.indices))

    def class_counters(self, device: str) -> dict[int, ClassCounters]:
        """By class minor; empty for a device that is not there. Raises DataPlaneError."""
        return self._counters.classes(device)

    def link_counters(self, devices: set[str]) -> dict[str, LinkCounters]:
        """Without devices that are not there. Raises DataPlaneError."""
        return self._counters.links(devices)

    def shown(self, devices: Collection[str]) -> dict[str, observe.Shown]:
        """Those of these devices that are there, as they are. Raises DataPlaneError."""
        try:
            return {
                name: observe.shown(message)
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

    def _list(self, method: str, **selection: int) -> list[observe.Message]:
        return namespaces.listing(self._socket, method, **selection)

    def _look(self, wanted: NetworkWanted, holders: Mapping[str, Path | None]) -> Snapshot:
        self._order_rules()
        indices: dict[str, int] = {}
        objects: list[KernelObject] = []
        carrier: set[str] = set()
        for message in self._list("get_links"):
            name = message.get_attr("IFLA_IFNAME")
            indices[name] = message["index"]
            if observe.has_carrier(message):
                carrier.add(name)
            if (device := observe.device(message)) is not None:
                objects.append(device)
        names = {index: name for name, index in indices.items()}
        found: list[KernelObject | None] = []
        found += [observe.address(message, names) for message in self._list("get_addr", family=AF_INET)]
        found += [observe.route(message, names) for message in self._list("get_routes", family=AF_INET)]
        found += [observe.rule(message) for message in self._list("get_rules", family=AF_INET)]
        found += [observe.qdisc(message, names) for message in self._list("get_qdiscs")]
        shaped = [item.device for item in found if isinstance(item, Shaper) and item.default > 0]
        for device_name in shaped:
            index = indices[device_name]
            found += [observe.shaped_class(message, device_name) for message in self._list("get_classes", index=index)]
            filters = self._list("get_filters", index=index, parent=HTB_MAJOR << 16)
            found += [observe.shaping_filter(message, device_name) for message in filters]
        objects += [item for item in found if item is not None]
        objects += self._worker_ends(indices, carrier)
        numbers = self._holder_numbers(wanted, holders, {item.key: item for item in objects})
        facts = Facts(
            mtu={item.name: item.mtu for item in objects if isinstance(item, Device)},
            underlay=self._underlay_mtu({link.vxlan.remote for link in wanted.links if link.vxlan}),
            holders=numbers,
        )
        paths = {endpoint_device(allocation): path for allocation in numbers if (path := holders[allocation])}
        return Snapshot(facts, objects, indices, paths)

    def _order_rules(self) -> None:
        """The kernel's own rules, with that for local addresses behind the endpoints' instead of first."""
        present = {
            (message.get_attr("FRA_TABLE"), message.get_attr("FRA_PRIORITY") or 0)
            for message in self._list("get_rules", family=AF_INET)
        }
        for table, priority in KERNEL_RULES - present:
            self._socket.rule("add", family=AF_INET, priority=priority, table=table)
        if (LOCAL_TABLE, 0) in present:
            self._socket.rule("del", family=AF_INET, priority=0, table=LOCAL_TABLE)

    def _worker_ends(self, indices: Mapping[str, int], carrier: set[str]) -> list[KernelObject]:
        self._settled = {
            key: (end, index)
            for key, (end, index) in self._settled.items()
            if indices.get(end.device) == index and end.device in carrier
        }
        return [end for end, _ in self._settled.values()]

    def _holder_numbers(
        self, wanted: NetworkWanted, holders: Mapping[str, Path | None], present: Mapping[Key, KernelObject]
    ) -> dict[str, int]:
        """Allocation -> the number by which the data plane's namespace knows the holder's; -1 while it has none.
        Without those whose namespace is not there."""
        numbers: dict[str, int] = {}
        asked: dict[tuple[int, int], int] = {}
        for endpoint in wanted.endpoints:
            path = holders.get(endpoint.allocation)
            if path is None:
                continue
            try:
                identity = namespaces.identity(path)
                # While a device leads there, the namespace lives, and neither its number nor its identity is given
                # to another.
                number = self._numbers.get(identity, -1)
                device = present.get(("device", endpoint_device(endpoint.allocation)))
                if not isinstance(device, Device) or device.holder != number:
                    with opened(path) as descriptor:
                        number = self._socket.get_netnsid(fd=descriptor)["nsid"]
            except (OSError, NetlinkError):
                continue
            asked[identity] = numbers[endpoint.allocation] = number
        self._numbers = asked
        return numbers

    def _underlay_mtu(self, remotes: set[str]) -> dict[str, int]:
        """Remote host -> MTU of the device that leads there; without those that no route leads to."""
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
