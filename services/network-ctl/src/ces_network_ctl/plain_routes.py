"""Plain routes: hop-shortest next hops between all nodes. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from ces_common.messages.records import LinkRecord

Hops = dict[str, dict[str, str]]  # node -> destination -> neighbour to send to


def next_hops(links: Iterable[LinkRecord]) -> Hops:
    """For every node, the neighbour on a hop-shortest path to every node it can reach; ties go to the first name, so
    that every controller finds the same."""
    into: dict[str, set[str]] = {}
    nodes: set[str] = set()
    for link in links:
        into.setdefault(link.dst, set()).add(link.src)
        nodes |= {link.src, link.dst}
    hops: Hops = {node: {} for node in nodes}
    for target in sorted(nodes):
        distance = {target: 0}
        frontier = deque([target])
        while frontier:
            at = frontier.popleft()
            for neighbour in sorted(into.get(at, ())):
                if neighbour not in distance:
                    distance[neighbour] = distance[at] + 1
                    frontier.append(neighbour)
                    hops[neighbour][target] = at
                elif distance[neighbour] == distance[at] + 1 and at < hops[neighbour][target]:
                    hops[neighbour][target] = at
    return hops


def plain_path(hops: Hops, src: str, dst: str) -> list[str] | None:
    """The path that plain routes take from one node to another, both ends included; None where there is none."""
    path = [src]
    while path[-1] != dst:
        step = hops.get(path[-1], {}).get(dst)
        if step is None:
            return None
        path.append(step)
    return path
