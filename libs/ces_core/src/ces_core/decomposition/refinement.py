"""Moves of single vertices that lessen the cut (Fiduccia and Mattheyses 1982, for any number of parts)."""

from __future__ import annotations

import numpy as np

from ces_core.decomposition.graph import EPSILON, Division, Integers

PASSES = 12


def refined(division: Division, part: Integers, parts: int) -> Integers:
    """An answer that cuts no more than ``part``, with as many parts, none of them empty. In a pass each vertex moves
    at most once, also where it costs; what the pass keeps is its best moment at which no part was above its capacity.
    Every second pass lets parts be too full by one vertex on the way, so that two may change places."""
    part = part.copy()
    idle = 0
    for turn in range(PASSES):
        better = _passed(division, part, parts, loose=turn % 2 == 1)
        idle = 0 if better else idle + 1
        if idle == 2:
            break
    return part


def _passed(division: Division, part: Integers, parts: int, *, loose: bool) -> bool:
    """Changes ``part``; whether its cut became less."""
    size = division.size
    amounts, label = division.amounts, division.label
    loads = division.loads(part, parts)
    most = division.most * (1 + EPSILON)
    room = most + amounts.max(axis=1) if loose else most
    members = np.bincount(part, minlength=parts)
    # Vertices of each label in each part; the last row counts those that have none.
    labelled = np.zeros((int(label.max()) + 2, parts), np.int64)
    np.add.at(labelled, (label, part), 1)
    towards = np.zeros((size, parts))
    np.add.at(towards, (division.ends[:, 0], part[division.ends[:, 1]]), division.traffic)
    np.add.at(towards, (division.ends[:, 1], part[division.ends[:, 0]]), division.traffic)
    every = np.arange(size)
    free = np.ones(size, bool)
    trail: list[tuple[int, int]] = []
    gained = best = 0.0
    kept = 0
    least = EPSILON * (division.traffic.max() if len(division.traffic) else 1.0)
    for _ in range(size):
        allowed = free & (members[part] > 1)
        if not allowed.any():
            break
        gain = towards - towards[every, part][:, None]
        blocked = np.repeat(~allowed[:, None], parts, axis=1)
        for row, load, limit in zip(amounts, loads, room, strict=True):
            if np.isfinite(limit):
                blocked |= row[:, None] + load[None, :] > limit
        total = labelled[:-1].sum(axis=0)
        strangers = np.where(label[:, None] >= 0, total[None, :] - labelled[label], 0)
        blocked |= strangers > 0
        blocked[every, part] = True
        gain[blocked] = -np.inf
        vertex, target = divmod(int(gain.argmax()), parts)
        step = gain[vertex, target]
        if step == -np.inf or len(trail) - kept > 50 + size // 10:
            break
        source = int(part[vertex])
        trail.append((vertex, source))
        free[vertex] = False
        part[vertex] = target
        members[source] -= 1
        members[target] += 1
        labelled[label[vertex], source] -= 1
        labelled[label[vertex], target] += 1
        loads[:, source] -= amounts[:, vertex]
        loads[:, target] += amounts[:, vertex]
        for other, traffic in division.neighbours[vertex].items():
            towards[other, source] -= traffic
            towards[other, target] += traffic
        gained += step
        if gained > best + least and np.all(loads <= most[:, None]):
            best, kept = gained, len(trail)
    for vertex, source in reversed(trail[kept:]):
        part[vertex] = source
    return kept > 0
