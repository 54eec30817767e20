"""What could have been kept of a day at all: by whoever moves tasks at no cost, and by whoever knows the whole day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from ces_core.adjustment.outlook import foreseen
from ces_core.model.problem import BoolArray
from ces_sim.adjustment.town import Conditions, problem

LEAST_PRICE = 1e-6
"""Of a time at which tasks move, in windows: so small that it only decides between equally good courses."""


@dataclass(frozen=True)
class AtMost:
    """Bounds on all ways: ``anyhow``: share of windows in which any plan keeps the deadline; ``knowing``: the most that
    are kept where tasks with state stand still for one window whenever one moves, the whole day known beforehand and
    without a budget; ``times``: at which one then moves, as few as go with that."""

    anyhow: float
    knowing: float
    times: int


def at_most(day: Sequence[Conditions]) -> AtMost:
    """By the bounds that ``adjust`` proves with: an assignment keeps the deadline if nothing rules that out."""
    full = max(day, key=lambda each: each.joined)
    good = {now: _places(now, full) for now in dict.fromkeys(day)}
    best = np.where(good[day[0]], 0.0, -np.inf)
    came_from: list[tuple[BoolArray, int]] = []
    for now in day:
        leader = int(np.argmax(best))
        stays, moves = best + good[now], best[leader] - LEAST_PRICE
        moved = np.asarray(moves > stays, dtype=np.bool_)
        came_from.append((moved, leader))
        best = np.where(moved, moves, stays)
    at, times = int(np.argmax(best)), 0
    most = float(best[at])
    for moved, leader in reversed(came_from):
        if moved[at]:
            at, times = leader, times + 1
    anyhow = float(np.mean([good[now].any() for now in day]))
    return AtMost(anyhow, round(most + times * LEAST_PRICE) / len(day), times)


def _places(now: Conditions, full: Conditions) -> BoolArray:
    """By assignment of the tasks with state to the nodes of ``full``: whether the others find a place, too."""
    here, names = foreseen(problem(now)), problem(full).cluster.topology.nodes
    tasks, index = here.problem.tasks, here.problem.cluster.topology.node_index
    rows = np.array(list(product(range(len(index)), repeat=len(tasks))))
    good = rows[np.isfinite(here.bounds(rows))]
    held = [t for t, task in enumerate(tasks) if task.profile is not None and task.profile.state > 0]
    place = np.array([names.index(name) for name in here.problem.cluster.topology.nodes])
    found = np.zeros((len(names),) * len(held), dtype=np.bool_)
    found[tuple(place[good[:, t]] for t in held)] = True
    return found.ravel()
