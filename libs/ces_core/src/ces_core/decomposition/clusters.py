"""Clusters: Louvain communities, merged and dealt out until their number and capacities are right, then refined."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic

import networkx as nx
import numpy as np

from ces_core.decomposition.graph import Division, Integers
from ces_core.decomposition.merging import Hierarchy
from ces_core.decomposition.packing import no_packing, packed
from ces_core.decomposition.refinement import refined

STARTS = 6
RESOLUTIONS = (1.0, 0.5, 2.0)
STIRRED = 3000  # vertices that are looked at in tries to better an answer, between 2 and 100 tries


def clusters(division: Division, parts: int, *, seed: int = 0, deadline: float = np.inf) -> Integers:
    """A part of each vertex, from 0 to ``parts`` - 1, none empty: the least cut of several starts. Each start goes down
    the levels of Louvain communities (Blondel et al. 2008): the communities of the coarsest that can be packed are
    dealt to parts, and at each finer level vertices or communities move; the best is then stirred. ``deadline``: by
    time.monotonic(); after it the best so far is the answer, and what was begun is ended quickly. Raises
    IndivisibleError."""
    rng = np.random.default_rng(seed)
    if parts == 1:
        only = np.zeros(division.size, np.int64)
        if division.broken(only):
            raise no_packing(division, parts)
        return only
    best: tuple[float, Integers] | None = None
    for start in _starts(division, parts, rng, deadline):
        answer = refined(division, start, parts, deadline=deadline)
        cut = division.cut(answer)
        if best is None or cut < best[0]:
            best = cut, answer
        if monotonic() > deadline:
            break
    if best is None:
        raise no_packing(division, parts)
    return _stirred(division, best[1], parts, rng, deadline)


def _stirred(division: Division, part: Integers, parts: int, rng: np.random.Generator, deadline: float) -> Integers:
    """An answer that cuts no more than ``part``, by iterated local search: some pairs of vertices change places, then
    vertices in small groups move and then single ones, and what cuts no more is kept."""
    best, cut = part, division.cut(part)
    for _ in range(int(np.clip(STIRRED // division.size, 2, 100))):
        if cut == 0 or monotonic() > deadline:
            break
        answer = _swapped(division, best, 1 + int(rng.integers(3)), rng)
        group = _grouped(division, answer, rng)
        coarse = division.merged(group)
        at_group = np.zeros(coarse.size, np.int64)
        at_group[group] = answer
        moved = refined(coarse, at_group, parts, deadline=deadline)[group]
        answer = refined(division, moved, parts, deadline=deadline)
        if (found := division.cut(answer)) <= cut:
            best, cut = answer, found
    return best


def _swapped(division: Division, part: Integers, pairs: int, rng: np.random.Generator) -> Integers:
    """The answer with up to ``pairs`` pairs of vertices exchanged, where that breaks nothing."""
    answer = part.copy()
    for _ in range(pairs):
        a, b = rng.integers(division.size, size=2)
        answer[a], answer[b] = answer[b], answer[a]
        if answer[a] != answer[b] and division.broken(answer):
            answer[a], answer[b] = answer[b], answer[a]
    return answer


def _grouped(division: Division, part: Integers, rng: np.random.Generator) -> Integers:
    """Groups within parts: each vertex, in random order, with one of its neighbours in the part, by chance the more
    often the more traffic they have."""
    group = np.full(division.size, -1, np.int64)
    for vertex in rng.permutation(division.size).tolist():
        if group[vertex] >= 0:
            continue
        group[vertex] = vertex
        near = [v for v in division.neighbours[vertex] if part[v] == part[vertex] and group[v] < 0]
        if near:
            weight = np.array([division.neighbours[vertex][v] for v in near])
            group[rng.choice(near, p=weight / weight.sum())] = vertex
    return np.unique(group, return_inverse=True)[1].astype(np.int64)


def _starts(division: Division, parts: int, rng: np.random.Generator, deadline: float) -> Iterator[Integers]:
    """First answers on the vertices themselves."""
    if (merged := Hierarchy(division, least=parts).at(parts)) is not None:
        yield merged
    for turn in range(STARTS):
        levels = _communities(division, RESOLUTIONS[turn % len(RESOLUTIONS)], rng)
        answer: Integers | None = None
        for group in [*levels, np.arange(division.size)]:
            coarse = division.merged(group)
            if answer is None:
                answer = _first(coarse, parts, rng, by_merging=turn % 2 == 0)
                answer = None if answer is None else answer[group]
            if answer is not None:
                at_group = np.zeros(coarse.size, np.int64)
                at_group[group] = answer
                answer = refined(coarse, at_group, parts, deadline=deadline)[group]
        if answer is not None:
            yield answer


def _first(coarse: Division, parts: int, rng: np.random.Generator, *, by_merging: bool) -> Integers | None:
    if coarse.size < parts:
        return None
    found = Hierarchy(coarse, least=parts).at(parts) if by_merging else None
    return packed(coarse, parts, rng) if found is None else found


def _communities(division: Division, resolution: float, rng: np.random.Generator) -> list[Integers]:
    """The community of each vertex, coarsest level first. One that is more than half of what a part may hold, or mixes
    labels, is taken apart into those of the level below: larger ones could not be packed."""
    graph = nx.Graph()
    graph.add_nodes_from(range(division.size))
    scale = division.traffic.max() if len(division.traffic) else 1.0
    for (a, b), traffic in zip(division.ends.tolist(), division.traffic.tolist(), strict=True):
        graph.add_edge(a, b, weight=traffic / scale)
    seed = int(rng.integers(2**31))
    found: list[Integers] = []
    below = np.arange(division.size)
    for level in nx.community.louvain_partitions(graph, weight="weight", resolution=resolution, seed=seed):
        group = below.copy()
        for community in level:
            inside = np.array(sorted(community))
            amounts = division.amounts[:, inside].sum(axis=1)
            if division.fits(2 * amounts) and len({*division.label[inside].tolist()} - {-1}) < 2:
                group[inside] = group[inside].min()
        below = np.unique(group, return_inverse=True)[1].astype(np.int64)
        found.append(below)
    return found[::-1]
