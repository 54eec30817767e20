"""Which node a user's requests enter the cluster at. Pure: the manager and the scheduler both work it out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

from ces_common.application import Location, User
from ces_common.messages.profiles import NodeProfile, Position

EARTH_M: Final = 6_371_008.8
"""Mean radius (IUGG)."""


class Uncovered(ValueError):
    """No node takes a user's requests; the text says why, and what to do."""


class Profiled(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def profile(self) -> NodeProfile | None: ...


def distance_m(one: Position, other: Position) -> float:
    """Along a great circle (haversine)."""
    a, b = math.radians(one.lat), math.radians(other.lat)
    across = math.sin((b - a) / 2) ** 2
    across += math.cos(a) * math.cos(b) * math.sin(math.radians(other.lon - one.lon) / 2) ** 2
    return 2 * EARTH_M * math.asin(min(1.0, math.sqrt(across)))


def access_node(at: Location, nodes: Iterable[Profiled]) -> str:
    """The node that a user is at, or the nearest of those that cover its position; of equally near ones the first by
    name. Raises Uncovered."""
    if at.node is not None:
        if all(node.name != at.node for node in nodes):
            raise Uncovered(f"no node is named {at.node}; ces get nodes lists those that have joined")
        return at.node
    assert at.lat is not None
    assert at.lon is not None
    place = Position(lat=at.lat, lon=at.lon)
    reach = [
        (distance_m(place, each.profile.position), each.profile.coverage or 0.0, each.name)
        for each in nodes
        if each.profile is not None and each.profile.position is not None
    ]
    within = [(metres, name) for metres, coverage, name in reach if metres <= coverage]
    if within:
        return min(within)[1]
    if not reach:
        raise Uncovered("no node says where it is; set CES_NODE_POSITION and CES_NODE_COVERAGE on one, or give at.node")
    metres, coverage, name = min(reach, key=lambda each: (each[0] - each[1], each[2]))
    raise Uncovered(
        f"no node covers its position; the nearest, {name}, is {metres:.0f} m away and reaches "
        f"{coverage:.0f} m: move the user, or give at.node"
    )


def access_nodes(users: Sequence[User], nodes: Iterable[Profiled]) -> Mapping[str, str]:
    """User -> its access node. Raises Uncovered, naming the user's field."""
    known, found = list(nodes) if users else [], {}
    for i, user in enumerate(users):
        try:
            found[user.name] = access_node(user.at, known)
        except Uncovered as error:
            raise Uncovered(f"users[{i}].at: {error}") from error
    return found
