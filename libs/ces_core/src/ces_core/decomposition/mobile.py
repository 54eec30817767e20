"""What stays near a user who moves, and what may run anywhere: the least traffic between the two."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from ces_core.decomposition.clusters import clusters
from ces_core.decomposition.graph import Division, Graph, IndivisibleError, Integers
from ces_core.decomposition.packing import no_packing
from ces_core.integer_programme import TOLERANCE, Programme, Solution

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
    deadline = monotonic() + limit_s
    bound = 0.0
    for turn, fullness in enumerate(FULLNESS):
        found = _near(graph, division, parts, most_state, deadline, fullness)
        if turn == 0:  # the others leave answers out
            bound = found.bound
            if found.inside is None:
                raise _too_much(graph, division, parts, most_state, None if found.impossible else limit_s)
        part = None if found.inside is None else _completed(division, found.inside, parts, seed, deadline)
        if part is not None and found.inside is not None and not division.broken(part):
            cut = division.cut(found.inside.astype(np.int64))
            proven = cut - bound <= 2 * TOLERANCE * cut
            return Halves(part, _state(graph, found.inside), cut, cut if proven else max(bound, 0.0))
    if monotonic() > deadline:
        raise _late(limit_s)
    raise no_packing(division, parts)


def _late(limit_s: float) -> IndivisibleError:
    return IndivisibleError("time", f"nothing that keeps to all bounds was found in {limit_s:g} s")


def _state(graph: Graph, inside: NDArray[np.bool_]) -> float:
    return float(sum(vertex.state for vertex, here in zip(graph.vertices, inside, strict=True) if here))


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


def _completed(
    division: Division, inside: NDArray[np.bool_], parts: int, seed: int, deadline: float
) -> Integers | None:
    """The part of each vertex, with those that are not near in clusters; None where these were not packed."""
    far = np.flatnonzero(~inside)
    part = np.zeros(division.size, np.int64)
    try:
        part[far] = 1 + clusters(within(division, far), parts - 1, seed=seed, deadline=deadline)
    except IndivisibleError:
        return None
    return part


@dataclass(frozen=True)
class _Near:
    """``inside``: whether each vertex is near, None where nothing was found; ``bound``: no less traffic leads to the
    rest, bit/s; ``impossible``: nothing can be found."""

    inside: NDArray[np.bool_] | None
    bound: float
    impossible: bool = False


def _near(
    graph: Graph, division: Division, parts: int, most_state: float | None, deadline: float, fullness: float
) -> _Near:
    """HiGHS lets rows pass their ends by a millionth. What it finds is checked here, and where it is too much, looked
    for again with ends that are lower by twice as much; the bound remains that of the looser programme."""

    def solved(less: float, scale: float) -> tuple[Solution, float]:
        found = _programme(graph, division, parts, most_state, fullness, less, scale).solve(deadline - monotonic())
        return found, (-found.most - TOLERANCE) * scale if np.isfinite(found.most) else 0.0

    heaviest = float(division.traffic.max()) if len(division.traffic) else 1.0
    bound = 0.0
    for less in (0.0, 2 * TOLERANCE):
        found, least = solved(less, heaviest)
        if found.values is None:
            return _Near(None, bound, found.impossible and less == 0.0)
        values, scale = found.values > 0, heaviest
        # Tolerances are absolute: once more, with traffic counted by the cut, until that is about 1.
        while 0 < (cut := division.cut(values[: division.size].astype(np.int64))) < scale and monotonic() < deadline:
            again, more = solved(less, cut)
            scale, least = cut, max(least, more)
            values = values if again.values is None else again.values > 0
        bound = least if less == 0.0 else bound
        inside = values[: division.size]
        within_state = most_state is None or _state(graph, inside) <= most_state
        if within_state and division.fits(division.amounts[:, inside].sum(axis=1)):
            return _Near(inside, bound)
    return _Near(None, bound)


def _programme(
    graph: Graph,
    division: Division,
    parts: int,
    most_state: float | None,
    fullness: float,
    less: float,
    scale: float,
) -> Programme:
    """Variables: whether each vertex is near, whether each pair is apart, whether near vertices have each label.
    ``less``: by which rows of capacities end below them. ``scale``: traffic that counts 1; a pair counts 2 at most,
    which is more than an answer that cuts no more than ``scale``."""
    size, pairs = division.size, len(division.traffic)
    labels = sorted({*division.label.tolist()} - {-1})
    apart = np.minimum(division.traffic / scale, 2.0)
    programme = Programme(np.concatenate([np.zeros(size), -apart, np.zeros(len(labels))]))
    row, every = programme.row, range(size)
    for pair, (a, b) in enumerate(division.ends.tolist()):
        for one, other in ((a, b), (b, a)):
            row((one, other, size + pair), (1.0, -1.0, -1.0), 0.0)
    for v, vertex in enumerate(graph.vertices):
        if vertex.near is not None:
            sign = -1.0 if vertex.near else 1.0
            row((v,), (sign,), min(sign, 0.0))
    row(every, [1.0] * size, size - (parts - 1.0))
    if most_state is not None:
        row(every, [v.state / (most_state or 1.0) for v in graph.vertices], (1.0 if most_state else 0.0) - less)
    for resource in np.flatnonzero(np.isfinite(division.most) & (division.most > 0)).tolist():
        shares = division.amounts[resource] / division.most[resource]
        row(every, shares.tolist(), 1.0 - less)
        row(every, (-shares).tolist(), (parts - 1) * fullness - float(shares.sum()))
    if len(labels) > 1:
        for v in np.flatnonzero(division.label >= 0).tolist():
            kind = size + pairs + labels.index(int(division.label[v]))
            row((v, kind), (1.0, -1.0), 0.0)
        row(range(size + pairs, size + pairs + len(labels)), [1.0] * len(labels), 1.0)
    return programme


def _too_much(
    graph: Graph, division: Division, parts: int, most_state: float | None, limit_s: float | None
) -> IndivisibleError:
    """Why nothing was found. ``limit_s``: the time that was not enough, None where there was enough."""
    near = [v for v, vertex in enumerate(graph.vertices) if vertex.near]
    state = sum(graph.vertices[v].state for v in near)
    if most_state is not None and state > most_state:
        message = f"vertices marked near hold {state:g} bytes of state, and {most_state:g} are allowed"
        return IndivisibleError("state", message)
    if not division.fits(division.amounts[:, near].sum(axis=1)):
        return IndivisibleError("capacity", "vertices marked near are together more than one part may hold")
    if len({*division.label[near].tolist()} - {-1}) > 1:
        return IndivisibleError("arch", "vertices marked near need different architectures, and one part has one")
    if division.size - len(near) < parts - 1:
        rest = f"{division.size - len(near)} of {division.size} vertices are not marked near"
        return IndivisibleError("far", f"{rest}, and {parts - 1} parts are to run anywhere")
    if limit_s is not None:
        return _late(limit_s)
    return no_packing(division, parts)
