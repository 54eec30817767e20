"""What the graph encoder sees beside the nodes: whom each node's links lead to, and how much is free on them.

Two candidates are neighbours where one link joins them. A switch, or a node that is no candidate, passes nothing on:
nodes behind it are no neighbours. Links of a medium have the room that the medium leaves.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ces_core.compiled.jit import compiled, inner, lent
from ces_core.learned.node_features import part
from ces_core.learned.schema import schema_hash
from ces_core.model.problem import FloatArray
from ces_core.model.topology import IntArray
from ces_core.placement.view import ProblemView
from ces_rl.envs.placement.simulation import PlacementSimulation, Slots, state_of
from ces_rl.envs.simulation import SlotSize
from ces_rl.problems.pool import Pool, view_of

INPUTS = ("neighbours", "links")
"""Names of what is observed here, after those of the nodes."""
LINK_FEATURES = ("out-free", "in-free", "out-room", "in-room", "out-capacity", "in-capacity")
"""Of the links to a neighbour and back: the share that is free beside all rates, and that and the capacity against the
job's mean maximum of a flow, from -1 (nothing) to 1."""
LINK_WIDTH = len(LINK_FEATURES)

Neighbours = NDArray[np.int16]
LinkFeatures = NDArray[np.float32]


def graph_schema() -> str:
    """The hash of what a policy with the graph encoder was trained to see; that of no other policy."""
    text = json.dumps([schema_hash(), LINK_FEATURES])
    return f"graph-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


class LinkedSimulation(PlacementSimulation):
    """The same game, in which links are observed, too: of every node those to at most ``most`` neighbours, the widest.
    ``neighbours`` (slots, C, K): their numbers, -1 where there are no more."""

    def __init__(self, count: int, size: SlotSize, most: int) -> None:
        super().__init__(count, size)
        seats = count, size.nodes, max(min(most, size.nodes - 1), 1)
        self.neighbours: Neighbours = np.full(seats, -1, dtype=np.int16)
        self._ways = np.full((*seats, 2), -1, dtype=np.int64)

    def observed(self, rows: IntArray) -> tuple[NDArray[Any], ...]:
        assert self._pool is not None
        found = np.zeros((*self._ways[rows].shape[:3], LINK_WIDTH), dtype=np.float32)
        _look(self._pool, self.slots, rows, self.neighbours, self._ways, found)
        return (*super().observed(rows), self.neighbours[rows], found)

    def _start(self, pool: Pool) -> None:
        super()._start(pool)
        _join(pool, self.slots.problem, self.neighbours, self._ways)


@compiled
def _join(pool: Pool, problem: IntArray, neighbours: Neighbours, ways: IntArray) -> None:
    """Sets ``neighbours`` (S, C, K), and ``ways`` (S, C, K, 2) to the paths there and back, -1 where there is none."""
    pool = lent(pool)
    widths = np.zeros(neighbours.shape[2])
    for i in range(len(problem)):
        view = view_of(pool, problem[i])
        neighbours[i] = -1
        ways[i] = -1
        for a in range(view.fits.shape[1]):
            _join_one(view, a, neighbours[i, a], ways[i, a], widths)


@inner
def _join_one(view: ProblemView, a: int, neighbours: Neighbours, ways: IntArray, widths: FloatArray) -> None:
    count = 0
    for b in range(view.fits.shape[1]):
        out, into = _link(view, a, b), _link(view, b, a)
        if out < 0 and into < 0:
            continue
        width = _capacity(view, out) + _capacity(view, into)
        place = count
        while place > 0 and widths[place - 1] < width:
            place -= 1
        if place == len(widths):
            continue
        count = min(count + 1, len(widths))
        for k in range(count - 1, place, -1):
            neighbours[k] = neighbours[k - 1]
            ways[k, 0], ways[k, 1] = ways[k - 1, 0], ways[k - 1, 1]
            widths[k] = widths[k - 1]
        neighbours[place] = b
        ways[place, 0], ways[place, 1] = out, into
        widths[place] = width


@inner
def _link(view: ProblemView, a: int, b: int) -> int:
    """The path from ``a`` to ``b`` that is one link, or -1."""
    pair = a * view.fits.shape[1] + b
    q = view.pair_first[pair]
    if q == view.pair_first[pair + 1]:
        return -1
    links = 0
    for i in range(view.path_first[q], view.path_first[q + 1]):
        if view.link_inverse[view.path_resource[i]] > 0.0:  # not so of media
            links += 1
    return int(q) if links == 1 else -1


@inner
def _capacity(view: ProblemView, q: int) -> float:
    """Of the link that is path ``q``; 0 where there is none."""
    if q >= 0:
        for i in range(view.path_first[q], view.path_first[q + 1]):
            inverse = view.link_inverse[view.path_resource[i]]
            if inverse > 0.0:
                return float(1.0 / inverse)
    return 0.0


@compiled
def _look(
    pool: Pool, slots: Slots, rows: IntArray, neighbours: Neighbours, ways: IntArray, found: LinkFeatures
) -> None:
    """Sets ``found`` (rows, C, K, features), which is zero."""
    pool, slots = lent(pool), lent(slots)
    for row in range(len(rows)):
        i = rows[row]
        view = view_of(pool, slots.problem[i])
        spare = state_of(view, slots, i).spare
        typical = 0.0
        for f in range(len(view.high)):
            typical += view.high[f] / len(view.high)
        for a in range(view.fits.shape[1]):
            for k in range(neighbours.shape[2]):
                if neighbours[i, a, k] < 0:
                    break
                for way in range(2):
                    q = ways[i, a, k, way]
                    capacity, room = _capacity(view, q), _room(view, spare, q)
                    found[row, a, k, way] = room / capacity if capacity > 0.0 else 0.0
                    found[row, a, k, 2 + way] = part(room, typical)
                    found[row, a, k, 4 + way] = part(capacity, typical)


@inner
def _room(view: ProblemView, spare: FloatArray, q: int) -> float:
    """What is free on path ``q`` beside all rates; 0 where there is none."""
    if q < 0:
        return 0.0
    room = math.inf
    for i in range(view.path_first[q], view.path_first[q + 1]):
        room = min(room, spare[view.path_resource[i]] / view.path_times[i])
    return max(room, 0.0)
