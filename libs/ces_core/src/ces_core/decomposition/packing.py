"""First answers: vertices put into as many parts as asked, each within its capacity."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ces_core.decomposition.graph import EPSILON, Division, Floats, IndivisibleError, Integers

TRIES = 24


def packed(division: Division, parts: int, rng: np.random.Generator, *, by_traffic: bool = True) -> Integers | None:
    """A part for each vertex, or None where none was found. The largest vertices come first, ties at random; each goes
    to the part that it has most traffic with of those that have room. Without ``by_traffic`` vertices come in any order
    and go to any part. What fails a few times is tried by room alone, to the emptiest part or to the fullest one, in
    orders that are nearly by size."""
    if parts > division.size:
        return None
    share = _shares(division).max(axis=0)
    for attempt in range(TRIES):
        if attempt >= TRIES // 3:
            rule = ("emptiest", "fullest")[attempt % 2]
            order = np.argsort(-share * (1 + 0.4 * rng.random(division.size)))
        elif by_traffic:
            rule, order = "traffic", np.lexsort((rng.random(division.size), -share))
        else:
            rule, order = "random", rng.permutation(division.size)
        if (found := _dealt(division, parts, order, rng, rule)) is not None:
            return found
    return None


def _shares(division: Division) -> Floats:
    """Of what a part may hold, by bounded resource and vertex."""
    bounded = np.isfinite(division.most) & (division.most > 0)
    if not bounded.any():
        return np.zeros((1, division.size))
    shares: Floats = division.amounts[bounded] / division.most[bounded, None]
    return shares


def _dealt(division: Division, parts: int, order: Integers, rng: np.random.Generator, rule: str) -> Integers | None:
    part = np.full(division.size, -1, np.int64)
    loads = np.zeros((len(division.most), parts))
    label = np.full(parts, -1, np.int64)
    members = np.zeros(parts, np.int64)
    scale = np.where(division.most > 0, division.most, 1.0)[:, None]
    for done, vertex in enumerate(order.tolist()):
        own = division.label[vertex]
        able = np.all(loads + division.amounts[:, vertex, None] <= division.most[:, None] * (1 + EPSILON), axis=0)
        able &= (label == -1) | (label == own) | (own == -1)
        if division.size - done == int((members == 0).sum()):
            able &= members == 0  # each that is left is needed to fill a part
        choices = np.flatnonzero(able)
        if not len(choices):
            return None
        if rule == "traffic":
            worth = np.zeros(parts)
            for other, traffic in division.neighbours[vertex].items():
                if part[other] >= 0:
                    worth[part[other]] += traffic
        elif rule == "random":
            worth = np.zeros(parts)
        else:
            worth = (loads / scale).max(axis=0) * (1 if rule == "fullest" else -1)
        chosen = choices[int(np.lexsort((rng.random(len(choices)), -worth[choices]))[0])]
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


def _by_amount(division: Division, inside: NDArray[np.bool_]) -> int:
    bounded = np.isfinite(division.most) & (division.most > 0)
    totals = division.amounts[bounded][:, inside].sum(axis=1) / division.most[bounded]
    return max(1, int(np.ceil(totals.max() - EPSILON))) if len(totals) else 1
