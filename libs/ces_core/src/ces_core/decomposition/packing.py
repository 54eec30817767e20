"""First answers: vertices put into as many parts as asked, each within its capacity."""

from __future__ import annotations

import numpy as np

from ces_core.decomposition.graph import Division, IndivisibleError, Integers

TRIES = 24


def packed(division: Division, parts: int, rng: np.random.Generator, *, by_traffic: bool = True) -> Integers | None:
    """A part for each vertex, or None where none was found. The largest vertices come first, ties at random; each goes
    to the part that it has most traffic with of those that have room, or, without ``by_traffic``, to any of them at
    random."""
    size = division.size
    if parts > size:
        return None
    share = _shares(division).max(axis=0)
    for attempt in range(TRIES):
        tight = attempt >= TRIES // 2  # then only what makes it fit matters: the fullest part with room
        order = np.lexsort((rng.random(size), -share)) if by_traffic or tight else rng.permutation(size)
        if (found := _dealt(division, parts, order, rng, by_traffic, tight)) is not None:
            return found
    return None


def _shares(division: Division) -> np.ndarray:
    bounded = np.isfinite(division.most) & (division.most > 0)
    if not bounded.any():
        return np.zeros((1, division.size))
    return division.amounts[bounded] / division.most[bounded, None]


def _dealt(
    division: Division, parts: int, order: Integers, rng: np.random.Generator, by_traffic: bool, tight: bool
) -> Integers | None:
    part = np.full(division.size, -1, np.int64)
    loads = np.zeros((len(division.most), parts))
    label = np.full(parts, -1, np.int64)
    members = np.zeros(parts, np.int64)
    for done, vertex in enumerate(order.tolist()):
        empty = int((members == 0).sum())
        own = division.label[vertex]
        able = np.all(loads + division.amounts[:, vertex, None] <= division.most[:, None] * (1 + 1e-9), axis=0)
        able &= (label == -1) | (label == own) | (own == -1)
        if division.size - done == empty:
            able &= members == 0  # each that is left is needed to fill a part
        choices = np.flatnonzero(able)
        if not len(choices):
            return None
        if tight:
            fullness = (loads / np.where(division.most > 0, division.most, 1.0)[:, None]).max(axis=0)
            chosen = choices[int(fullness[choices].argmax())]
        elif by_traffic:
            pull = np.zeros(parts)
            for other, traffic in division.neighbours[vertex].items():
                if part[other] >= 0:
                    pull[part[other]] += traffic
            chosen = choices[int(np.lexsort((rng.random(len(choices)), -pull[choices]))[0])]
        else:
            chosen = rng.choice(choices)
        part[vertex] = chosen
        members[chosen] += 1
        loads[:, chosen] += division.amounts[:, vertex]
        label[chosen] = max(label[chosen], own)
    return part


def at_random(division: Division, parts: int, rng: np.random.Generator) -> Integers:
    """Parts within their capacity, dealt without a look at traffic. Raises IndivisibleError where none were found."""
    found = packed(division, parts, rng, by_traffic=False)
    if found is None:
        raise no_packing(division, parts)
    return found


def no_packing(division: Division, parts: int) -> IndivisibleError:
    """Why: more parts than vertices, fewer than capacities need, or a packing that was not found."""
    if parts > division.size:
        return IndivisibleError("parts", f"{parts} parts of {division.size} vertices: some would be empty")
    least = least_parts(division)
    if parts < least:
        return IndivisibleError("parts", f"{parts} parts cannot hold the graph: it takes {least} at least")
    return IndivisibleError("parts", f"no way was found to fit all vertices into {parts} parts")


def least_parts(division: Division) -> int:
    """Fewer parts cannot hold the graph; more may be needed. Each label's vertices need parts of their own."""
    labels = sorted({*division.label.tolist()} - {-1})
    needed = sum(_by_amount(division, division.label == each) for each in labels)
    return max(needed, _by_amount(division, np.ones(division.size, bool)), 1)


def _by_amount(division: Division, inside: np.ndarray) -> int:
    bounded = np.isfinite(division.most) & (division.most > 0)
    totals = division.amounts[bounded][:, inside].sum(axis=1) / division.most[bounded]
    return max(1, int(np.ceil(totals.max() - 1e-9))) if len(totals) else 1
