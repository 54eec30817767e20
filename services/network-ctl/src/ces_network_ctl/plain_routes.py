"""Plain routes: hop-shortest next hops, worked out towards a destination when they are first asked for. Pure."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Set
from dataclasses import dataclass

from ces_common.messages.records import LinkRecord

Ends = tuple[str, str]


@dataclass(frozen=True)
class _Tree:
    """The ways to one destination: node -> neighbour to send to, and node -> hops."""

    next_hop: dict[str, str]
    distance: dict[str, int]

    def stands(self, gone: Iterable[Ends], new: Iterable[Ends]) -> bool:
        """Whether none of these links was on a way, and none would be on a better one."""
        return all(self.next_hop.get(src) != dst for src, dst in gone) and not any(
            (self.distance[dst] + 1, dst) < (self.distance.get(src, math.inf), self.next_hop.get(src, ""))
            for src, dst in new
            if dst in self.distance
        )


class PlainRoutes:
    """Of the nodes that these links join. Ties go to the first name, so that every controller finds the same.
    ``before``: routes on other links, of which those to the ``wanted`` nodes are taken over that no changed link
    touches."""

    def __init__(
        self, links: Iterable[LinkRecord], before: PlainRoutes | None = None, wanted: Set[str] = frozenset()
    ) -> None:
        self._ends = {(link.src, link.dst) for link in links}
        into: dict[str, list[str]] = {}
        for src, dst in self._ends:
            into.setdefault(dst, []).append(src)
        self._into = {node: sorted(neighbours) for node, neighbours in into.items()}
        self._trees: dict[str, _Tree] = {}
        if before is not None:
            gone, new = before._ends - self._ends, self._ends - before._ends
            self._trees = {dst: tree for dst, tree in before._trees.items() if dst in wanted and tree.stands(gone, new)}

    def linked(self, src: str, dst: str) -> bool:
        """Whether a link leads from one node straight to the other; then that is the plain route."""
        return (src, dst) in self._ends

    def same_ways(self, other: PlainRoutes, ends: Iterable[str]) -> bool:
        """Whether both know the same ways to each of these nodes, without working any out."""
        return all(dst in self._trees and self._trees[dst] is other._trees.get(dst) for dst in ends)

    def path(self, src: str, dst: str) -> list[str] | None:
        """The nodes on the way, both ends included; None where there is no way."""
        next_hop, path = self._tree(dst).next_hop, [src]
        while path[-1] != dst:
            step = next_hop.get(path[-1])
            if step is None:
                return None
            path.append(step)
        return path

    def hops(self, sources: Iterable[str], dst: str) -> dict[str, str]:
        """Every node on the ways from ``sources`` to one destination, and the neighbour that it sends to."""
        next_hop, found = self._tree(dst).next_hop, dict[str, str]()
        for at in sources:
            while at not in found and (step := next_hop.get(at)) is not None:
                found[at] = step
                at = step
        return found

    def _tree(self, target: str) -> _Tree:
        known = self._trees.get(target)
        if known is not None:
            return known
        next_hop: dict[str, str] = {}
        distance = {target: 0}
        frontier = deque([target])
        while frontier:
            at = frontier.popleft()
            for neighbour in self._into.get(at, ()):
                if neighbour not in distance:
                    distance[neighbour] = distance[at] + 1
                    frontier.append(neighbour)
                    next_hop[neighbour] = at
                elif distance[neighbour] == distance[at] + 1 and at < next_hop[neighbour]:
                    next_hop[neighbour] = at
        tree = self._trees[target] = _Tree(next_hop, distance)
        return tree
