"""How much of each node, link and medium is held at one moment of the log, and the peaks so far."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ces_client.audit import promises
from ces_client.audit.findings import Where
from ces_client.audit.inventory import Amounts, Hop, Inventory

RESERVABLE = 0.95  # share of a link that plans may reserve
RESERVABLE_OF_TUNNELS = 0.90  # of a medium that tunnels share
RESERVABLE_OF_ENCRYPTED = 0.83  # of one that encrypted tunnels share
RESOURCES = ("cpu", "memory", "gpu")
LINK, MEDIUM = "link", "medium"
Place = tuple[str, str]  # (resource, node), (LINK, "a -> b") or (MEDIUM, name)


@dataclass(frozen=True)
class Peak:
    """The highest use of one kind. ``what``: cpu (millicores), memory (bytes), gpu, link or medium (bit/s)."""

    what: str
    where: str
    used: int
    capacity: int
    event: int
    time: str

    @property
    def share(self) -> float:
        return self.used / self.capacity


class Usage:
    """Amounts held. The other methods change them at once; ``settle`` checks what has grown since its last call.
    ``checked``: by kind how often that was."""

    def __init__(self, inventory: Inventory) -> None:
        self._capacity: dict[Place, int] = {}
        self.set_links(inventory)
        for node, amounts in inventory.nodes.items():
            self.set_node(node, amounts)
        self.checked: Counter[str] = Counter()
        self._used: dict[Place, int] = defaultdict(int)
        self._grown: dict[Place, None] = {}  # in the order in which they grew
        self.peaks: dict[str, Peak] = {}

    def set_links(self, inventory: Inventory) -> None:
        """Sets the capacities of links and media, for what is held from now on."""
        self._inventory = inventory
        for hop, capacity in (inventory.links or {}).items():
            self._capacity[LINK, _link(hop)] = capacity
        for medium, capacity in inventory.media.items():
            self._capacity[MEDIUM, medium] = capacity

    def set_node(self, node: str, amounts: Amounts) -> None:
        """Sets the node's capacity."""
        self._capacity.update({(what, node): amount for what, amount in zip(RESOURCES, amounts, strict=True)})

    def knows_node(self, node: str) -> bool:
        return (RESOURCES[0], node) in self._capacity

    def hold(self, node: str, amounts: Amounts) -> None:
        """Takes the amounts; gives negative ones back."""
        for what, amount in zip(RESOURCES, amounts, strict=True):
            self._change((what, node), amount)

    def carry(self, path: Sequence[str], rate: int) -> None:
        """Takes the rate (bit/s) on each link of the path; gives a negative one back."""
        for hop in pairwise(path):
            self._change((LINK, _link(hop)), rate)
            medium = self._inventory.medium_of.get(hop)
            if medium is not None:
                self._change((MEDIUM, medium), rate)

    def settle(self, event: int, time: str) -> Iterator[tuple[str, str, Where]]:
        """Yields the kind, a text and which node or link that is, for each place that has grown beyond its capacity;
        places of unknown capacity are skipped."""
        for place in self._grown:
            (what, where), used, capacity = place, self._used[place], self._capacity.get(place)
            if capacity is None or not used:
                continue
            network = what in (LINK, MEDIUM)
            kind = promises.LINK if network else promises.NODE
            self.checked[kind] += 1
            if used > capacity * self._share(place):
                name = f"{what} {where}" if network else f"{what} of node {where}"
                node, link = None if network else where, where.replace(" -> ", ">") if what == LINK else None
                yield kind, f"{name}: {used} of {capacity} is overbooked", (node, link)
            best = self.peaks.get(what)
            if capacity and (best is None or used / capacity > best.share):
                self.peaks[what] = Peak(what, where, used, capacity, event, time)
        self._grown.clear()

    def _change(self, place: Place, amount: int) -> None:
        self._used[place] += amount
        if amount > 0:
            self._grown[place] = None

    def _share(self, place: Place) -> float:
        what, where = place
        if what == MEDIUM and where in self._inventory.encrypted:
            return RESERVABLE_OF_ENCRYPTED
        if what == MEDIUM and where in self._inventory.tunnelled:
            return RESERVABLE_OF_TUNNELS
        return RESERVABLE if what in (LINK, MEDIUM) else 1.0


def _link(hop: Hop) -> str:
    return f"{hop[0]} -> {hop[1]}"
