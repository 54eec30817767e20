"""What an application runs on and could move to, and which changes of that call for a look at it. Pure.

Only what may make it worse where it is, or better elsewhere, is news: another node that becomes slower is none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

Hop = tuple[str, str]


@dataclass(frozen=True, slots=True)
class LinkSeen:
    """``capacity`` in bit/s, 0 while the link is down; ``delay`` in microseconds."""

    capacity: int
    delay: int


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """``open``: whether new work may go there; ``speeds``: as its agent measured them."""

    open: bool
    speeds: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Surroundings:
    links: Mapping[Hop, LinkSeen]
    nodes: Mapping[str, NodeSeen]


@dataclass(frozen=True, slots=True)
class Place:
    """Where an application is. ``tasks``: task -> node; ``flows``: ends -> rate and path; ``users``: user -> access
    node, without those whom no node covers."""

    attempt: int
    tasks: Mapping[str, str]
    flows: Mapping[tuple[str, str], tuple[int, tuple[str, ...]]]
    users: Mapping[str, str]

    @property
    def hops(self) -> frozenset[Hop]:
        return frozenset(hop for _, path in self.flows.values() for hop in pairwise(path))


@dataclass(frozen=True, slots=True)
class Seen:
    """All that is compared from one look to the next."""

    around: Surroundings
    place: Place


def news(before: Seen, now: Seen) -> list[str]:
    """What has changed that the application should be looked at for, in words. A new attempt was placed for what is
    there now, so what came before it is no news."""
    if before.place.attempt != now.place.attempt:
        return []
    found = [*_users(before.place, now.place)]
    if (before.place.tasks, before.place.flows) != (now.place.tasks, now.place.flows):
        found.append("its place has changed")
    if before.around is not now.around:
        found += _links(before.around.links, now.around.links, now.place.hops)
        found += _nodes(before.around.nodes, now.around.nodes, frozenset(now.place.tasks.values()))
    return found


def _users(before: Place, now: Place) -> Iterator[str]:
    for user, node in now.users.items():
        if before.users.get(user) != node:
            yield f"user {user} is at {node} now"


def _links(before: Mapping[Hop, LinkSeen], now: Mapping[Hop, LinkSeen], used: frozenset[Hop]) -> Iterator[str]:
    for hop in sorted(before.keys() | now.keys()):
        was, link = before.get(hop), now.get(hop)
        if was == link:
            continue
        name = f"link {hop[0]} -> {hop[1]}"
        if link is None or not link.capacity:
            if hop in used:
                yield f"{name} is down"
        elif was is None or not was.capacity:
            yield f"{name} is up"
        elif hop in used or link.capacity > was.capacity or link.delay < was.delay:
            yield f"{name} has changed"


def _nodes(before: Mapping[str, NodeSeen], now: Mapping[str, NodeSeen], used: frozenset[str]) -> Iterator[str]:
    for name in sorted(now):
        was, node = before.get(name), now[name]
        if was == node:
            continue
        if node.open and not (was is not None and was.open):
            yield f"node {name} takes work"
        elif was is not None and was.speeds != node.speeds and (name in used or node.open):
            yield f"node {name} was measured again"
