"""What a WireGuard device is to be set to: values, and the difference to what it is. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ces_common.messages.desired import LinkDevice
from ces_edge_agent.dataplane.wireguard.keys import ALIVE_S, public_of

Endpoint = tuple[str, int]


@dataclass(frozen=True)
class Neighbour:
    """``address``: its own in the tunnel; ``keys``: public ones, at least one; ``endpoint``: where its host takes
    packets."""

    name: str
    address: str
    keys: tuple[str, ...]
    endpoint: Endpoint

    @property
    def goes_over(self) -> bool:
        """Whether it tells two keys: from the first to the second."""
        return len(self.keys) > 1


@dataclass(frozen=True)
class Peer:
    """One of a neighbour's keys on the device. ``allowed``: addresses in the tunnel that it has, with prefix length;
    ``shaken``: when it last shook hands, by the time of day, 0 for never."""

    allowed: frozenset[str] = frozenset()
    endpoint: Endpoint | None = None
    shaken: float = 0.0


@dataclass(frozen=True)
class State:
    """What a device is set to. ``public``: of its private key, empty where it has none."""

    public: str = ""
    port: int = 0
    peers: Mapping[str, Peer] = field(default_factory=dict)


@dataclass(frozen=True)
class PeerChange:
    """What is None stays."""

    key: str
    allowed: frozenset[str] | None = None
    endpoint: Endpoint | None = None


@dataclass(frozen=True)
class Change:
    """In this order; what is None stays."""

    private: str | None = None
    port: int | None = None
    peers: Sequence[PeerChange] = ()
    removed: Sequence[str] = ()

    def __bool__(self) -> bool:
        return bool(self.private or self.port or self.peers or self.removed)


def neighbours_of(links: Iterable[LinkDevice]) -> tuple[list[Neighbour], dict[str, str]]:
    """Those over encrypted links, and of the others, neighbour -> why its link cannot be encrypted."""
    found: list[Neighbour] = []
    faults: dict[str, str] = {}
    taken: set[str] = set()
    for link in links:
        if (tunnel := link.wireguard) is None:
            continue
        if not tunnel.keys:
            faults[link.peer] = f"{link.peer} has told no key"
        elif not link.gateway:
            faults[link.peer] = f"{link.peer} has no address"
        elif taken & set(tunnel.keys):
            faults[link.peer] = f"the key of {link.peer} is another neighbour's too"
        else:
            taken |= set(tunnel.keys)
            found.append(Neighbour(link.peer, link.gateway, tuple(tunnel.keys), (tunnel.address, tunnel.port)))
    return found, faults


def change(private: str, port: int, neighbours: Iterable[Neighbour], state: State, now: float) -> Change:
    """What is to be done so that the device has this key and port, and the neighbours as peers. Of a neighbour's keys,
    the one that shook hands last gets its address. What gains an address comes before what loses it."""
    wanted: dict[str, tuple[frozenset[str], Endpoint]] = {}
    for each in neighbours:
        chosen = max(each.keys, key=lambda key: state.peers.get(key, Peer()).shaken)  # the first, where none ever did
        for key in each.keys:
            wanted[key] = frozenset([f"{each.address}/32"] if key == chosen else []), each.endpoint
    changes = []
    for key, (allowed, endpoint) in wanted.items():
        peer = state.peers.get(key)
        moved = peer is None or (peer.endpoint != endpoint and now - peer.shaken >= ALIVE_S)
        if moved or peer is None or peer.allowed != allowed:
            new = allowed if peer is None or peer.allowed != allowed else None
            changes.append(PeerChange(key, new, endpoint if moved else None))
    return Change(
        private=private if state.public != public_of(private) else None,
        port=port if state.port != port else None,
        peers=sorted(changes, key=lambda each: not each.allowed),
        removed=sorted(state.peers.keys() - wanted.keys()),
    )


def shaken(neighbours: Iterable[Neighbour], state: State) -> dict[str, float]:
    """Neighbour -> when it last shook hands, by any of its keys."""
    return {each.name: max(state.peers.get(key, Peer()).shaken for key in each.keys) for each in neighbours}


def ahead_of(node: str, neighbours: Iterable[Neighbour]) -> frozenset[str]:
    """The neighbours who are to replace their keys before this node: of those who are about to, names go in order."""
    return frozenset(each.name for each in neighbours if each.goes_over and each.name < node)
