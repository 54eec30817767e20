"""What stays near a user who moves, and what may run anywhere: the least traffic between the two."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ces_core.decomposition.clusters import clusters
from ces_core.decomposition.graph import Division, Graph, IndivisibleError, Integers
from ces_core.decomposition.packing import no_packing
from ces_core.gpus.milp import Programme

FULLNESS = (1.0, 0.95, 0.9, 0.8, 0.7, 0.55)
"""How full the parts that run anywhere may be together: what fills them wholly can seldom be packed, so what cannot be
is tried again with more of it near."""


@dataclass(frozen=True)
class Halves:
    """``part``: of each vertex, 0 near the user, the others anywhere. ``state``: bytes that follow the user on a move.
    ``near_cut``: traffic between near and anywhere, bit/s; ``bound``: none could be less."""

    part: Integers
    state: float
    near_cut: float
    bound: float


def mobile(
    graph: Graph, division: Division, parts: int, *, most_state: float | None, limit_s: float, seed: int = 0
) -> Halves:
    """One part near the user, ``parts`` - 1 anywhere. The near part holds every vertex marked near and none marked
    otherwise, no more state than ``most_state`` and no more than a part may hold; of all such, the one with the least
    traffic to the rest. Without those bounds that is a minimum cut, and the programme's relaxation is whole. The rest
    is divided into clusters. Raises IndivisibleError."""
    if parts < 2:
        raise IndivisibleError("parts", "one part is near the user and one anywhere: 2 parts at least")
    near = [v for v, vertex in enumerate(graph.vertices) if vertex.near]
    if not near:
        raise IndivisibleError("near", "no vertex is marked near, so that nothing binds any of them to the user")
    inside, bound = _near(graph, division, parts, most_state, limit_s, FULLNESS[0])
    if inside is None:
        raise _too_much(graph, division, parts, most_state)
    part = _completed(division, inside, parts, seed)
    for fullness in FULLNESS[1:]:
        if part is not None:
            break
        inside, _ = _near(graph, division, parts, most_state, limit_s, fullness)
        part = None if inside is None else _completed(division, inside, parts, seed)
    if inside is None or part is None:
        raise no_packing(division, parts)
    cut = division.cut(inside.astype(np.int64))
    state = sum(vertex.state for vertex, here in zip(graph.vertices, inside, strict=True) if here)
    return Halves(part, float(state), cut, cut if cut - bound <= 1e-6 * cut else max(bound, 0.0))


def within(division: Division, vertices: Integers) -> Division:
    """The division of these vertices alone, in this order."""
    place = np.full(division.size, -1, np.int64)
    place[vertices] = np.arange(len(vertices))
    ends = place[division.ends]
    inside = (ends >= 0).all(axis=1)
    return replace(
        division,
        amounts=division.amounts[:, vertices],
        label=division.label[vertices],
        ends=np.sort(ends[inside], axis=1),
        traffic=division.traffic[inside],
    )


def _completed(division: Division, inside: NDArray[np.bool_], parts: int, seed: int) -> Integers | None:
    """The part of each vertex, with those that are not near in clusters; None where these were not packed."""
    far = np.flatnonzero(~inside)
    part = np.zeros(division.size, np.int64)
    try:
        part[far] = 1 + clusters(within(division, far), parts - 1, seed=seed)
    except IndivisibleError:
        return None
    return part


def _near(
    graph: Graph, division: Division, parts: int, most_state: float | None, limit_s: float, fullness: float
) -> tuple[NDArray[np.bool_] | None, float]:
    """Whether each vertex is near, and a bound on the traffic to the rest, bit/s; None where nothing was found."""
    size, pairs = division.size, len(division.traffic)
    labels = sorted({*division.label.tolist()} - {-1})
    scale = float(division.traffic.max()) if pairs else 1.0
    gain = np.concatenate([np.zeros(size), -division.traffic / scale, np.zeros(len(labels))])
    programme = Programme(gain, np.ones(len(gain)))
    for pair, (a, b) in enumerate(division.ends.tolist()):
        for one, other in ((a, b), (b, a)):
            for variable, sign in ((one, 1.0), (other, -1.0), (size + pair, -1.0)):
                programme.count(("apart", pair, one), 0.0, variable, sign)
    for v, vertex in enumerate(graph.vertices):
        if vertex.near is not None:
            sign = -1.0 if vertex.near else 1.0
            programme.count(("marked", v), min(sign, 0.0), v, sign)
        programme.count("some far", size - (parts - 1.0), v, 1.0)
        if most_state is not None and vertex.state:
            programme.count("state", 1.0 if most_state else 0.0, v, vertex.state / (most_state or 1.0))
        for resource, limit in enumerate(division.most):
            if np.isfinite(limit) and limit > 0:
                share = division.amounts[resource, v] / limit
                programme.count(("room", resource), 1.0 + 1e-9, v, share)
                rest = division.amounts[resource].sum() / limit - (parts - 1) * fullness
                programme.count(("rest", resource), 1e-9 - rest, v, -share)
        if division.label[v] >= 0 and len(labels) > 1:
            kind = size + pairs + labels.index(int(division.label[v]))
            programme.count(("kind", v), 0.0, v, 1.0)
            programme.count(("kind", v), 0.0, kind, -1.0)
            programme.count("kinds", 1.0, kind, 1.0)
    values, most = programme.solve(limit_s)
    bound = -most * scale if np.isfinite(most) else 0.0
    return None if values is None else values[:size] == 1, bound


def _too_much(graph: Graph, division: Division, parts: int, most_state: float | None) -> IndivisibleError:
    near = [v for v, vertex in enumerate(graph.vertices) if vertex.near]
    state = sum(graph.vertices[v].state for v in near)
    if most_state is not None and state > most_state:
        message = f"vertices marked near hold {state:g} bytes of state, and {most_state:g} are allowed"
        return IndivisibleError("state", message)
    if not division.fits(division.amounts[:, near].sum(axis=1)):
        return IndivisibleError("capacity", "vertices marked near are together more than one part may hold")
    if len({*division.label[near].tolist()} - {-1}) > 1:
        return IndivisibleError("near", "vertices marked near need different architectures, and one part has one")
    return no_packing(division, parts)
