"""Nodes in a row whose links are encrypted and whose keys are replaced, with WireGuard and the manager as far as that
needs them: who hears whom by which keys, and when documents name the keys that are told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise

from ces_edge_agent.dataplane.wireguard import keys as keys_of
from ces_edge_agent.dataplane.wireguard.config import Change, Neighbour, Peer, State, ahead_of, change, shaken
from ces_edge_agent.dataplane.wireguard.keys import KeyRotation, Keys, new_key

BEGIN = 1_800_000_000.0
STEP_S = 0.1  # as often as nodes look while keys are replaced
DOCUMENTS_S = 1.0  # from what is told to the documents that name it
REKEY_S = 120.0  # WireGuard shakes hands again after so long
TRY_S = 5.0  # and where there is no answer
ALONE_S = 30.0  # for the first handshakes to be over
HERE = ("192.0.2.1", 51872)
public_of = cache(keys_of.public_of)


@dataclass
class KeyNode:
    """``state``: of its WireGuard device. ``lies``: what it tells instead of its keys."""

    name: str
    rotation: KeyRotation
    state: State = field(default_factory=State)
    lies: list[str] = field(default_factory=list)
    tries: dict[str, float] = field(default_factory=dict)  # neighbour -> when it last asked it to shake hands

    @property
    def public(self) -> str:
        """The key by which it takes packets."""
        return public_of(self.rotation.in_use)

    def towards(self, address: str) -> str | None:
        """The key by which it sends to an address."""
        return next((key for key, peer in self.state.peers.items() if f"{address}/32" in peer.allowed), None)


class KeyWorld:
    """``names`` in the order of the row. ``blind``: nodes do not see that a neighbour is about to replace its key.
    ``outages``: link -> the stretches of time, in seconds, in which it carried nothing."""

    def __init__(self, *names: str, chances: Sequence[float] = (), blind: bool = False) -> None:
        self.now, self._blind = BEGIN, blind
        chances = chances or [0.5] * len(names)
        self.nodes = {
            name: KeyNode(name, KeyRotation(Keys(new_key(), BEGIN), 1e9, _always(chance)))
            for name, chance in zip(names, chances, strict=True)
        }
        self.links = list(pairwise(names))
        self.documents = {name: node.rotation.keys.public for name, node in self.nodes.items()}
        self._told: list[tuple[float, str, list[str]]] = []
        self._sessions: dict[tuple[str, str], tuple[str, str, float]] = {}
        self._broken: dict[tuple[str, str], float] = {}
        self.outages: dict[tuple[str, str], list[float]] = {link: [] for link in self.links}
        self.run(2 * STEP_S)
        self.outages = {link: [] for link in self.links}
        self.run(ALONE_S)

    def run(self, seconds: float, until: Callable[[], bool] = lambda: False, step_s: float = STEP_S) -> bool:
        """Let time pass; whether it came about in it."""
        end = self.now + seconds
        while self.now < end and not until():
            self.now += step_s
            self._publish()
            for node in self.nodes.values():
                self._look(node)
            for one, other in self.links:
                self._carry(one, other)
        return until()

    def settled(self) -> bool:
        """Nobody replaces its key any more, and all documents say so."""
        return all(not node.rotation.keys.next for node in self.nodes.values()) and not self._told

    def longest(self) -> float:
        """Of all times in which a link carried nothing."""
        return max((stretch for found in self.outages.values() for stretch in found), default=0.0)

    def _publish(self) -> None:
        for name, node in self.nodes.items():
            told = node.lies or node.rotation.keys.public
            if told != next((keys for _, who, keys in reversed(self._told) if who == name), self.documents[name]):
                self._told.append((self.now + DOCUMENTS_S, name, told))
        for each in [each for each in self._told if each[0] <= self.now]:
            self._told.remove(each)
            self.documents[each[1]] = each[2]

    def _neighbours(self, node: KeyNode) -> list[Neighbour]:
        names = [other for link in self.links if node.name in link for other in link if other != node.name]
        return [Neighbour(name, name, tuple(self.documents[name]), HERE) for name in names]

    def _look(self, node: KeyNode) -> None:
        neighbours = self._neighbours(node)
        before = node.rotation.in_use
        self._set(node, change(before, HERE[1], neighbours, node.state, self.now))
        ahead = frozenset[str]() if self._blind else ahead_of(node.name, neighbours)
        node.rotation.look(self.now, self.documents[node.name], shaken(neighbours, node.state), ahead)
        if node.rotation.in_use != before:
            node.tries.clear()

    def _set(self, node: KeyNode, wanted: Change) -> None:
        peers = {key: peer for key, peer in node.state.peers.items() if key not in wanted.removed}
        for each in wanted.peers:
            peer = peers.get(each.key, Peer())
            peers[each.key] = replace(
                peer, allowed=peer.allowed if each.allowed is None else each.allowed, endpoint=each.endpoint or HERE
            )
        node.state = State(node.public, HERE[1], peers)

    def _carry(self, one: str, other: str) -> None:
        link = (one, other)
        near, far = self.nodes[one], self.nodes[other]
        for here, there in ((near, far), (far, near)):
            self._ask(here, there)
        session = self._sessions.get(link)
        alive = session is not None and session[:2] == (near.public, far.public)
        if alive and near.towards(other) == far.public and far.towards(one) == near.public:
            if (since := self._broken.pop(link, None)) is not None:
                self.outages[link].append(self.now - since)
        else:
            self._broken.setdefault(link, self.now)

    def _ask(self, here: KeyNode, there: KeyNode) -> None:
        """Shake hands by the keys that both have, where that is due."""
        link = (here.name, there.name) if (here.name, there.name) in self.links else (there.name, here.name)
        ends = tuple(self.nodes[name].public for name in link)
        session = self._sessions.get(link)
        fresh = session is not None and session[:2] == ends and self.now - session[2] < REKEY_S
        if fresh or self.now - here.tries.get(there.name, 0.0) < TRY_S:
            return
        here.tries[there.name] = self.now
        if here.towards(there.name) != there.public or here.public not in there.state.peers:
            return
        self._sessions[link] = (*ends, self.now)
        for end, key in ((here, there.public), (there, here.public)):
            peers = dict(end.state.peers)
            peers[key] = replace(peers.get(key, Peer()), shaken=self.now)
            end.state = replace(end.state, peers=peers)


def _always(chance: float) -> Callable[[], float]:
    return lambda: chance
