"""Clusters: Louvain communities, merged and dealt out until their number and capacities are right, then refined."""

from __future__ import annotations

from collections.abc import Iterator

import networkx as nx
import numpy as np

from ces_core.decomposition.graph import Division, Integers
from ces_core.decomposition.merging import Hierarchy
from ces_core.decomposition.packing import no_packing, packed
from ces_core.decomposition.refinement import refined

STARTS = 6
RESOLUTIONS = (1.0, 0.5, 2.0)


def clusters(division: Division, parts: int, *, seed: int = 0) -> Integers:
    """A part of each vertex, from 0 to ``parts`` - 1, none empty: the least cut of several starts. Each start goes down
    the levels of Louvain communities (Blondel et al. 2008): the communities of the coarsest that can be packed are
    dealt to parts, and at each finer level vertices or communities move. Raises IndivisibleError."""
    rng = np.random.default_rng(seed)
    if parts == 1:
        only = np.zeros(division.size, np.int64)
        if division.broken(only):
            raise no_packing(division, parts)
        return only
    best: tuple[float, Integers] | None = None
    for start in _starts(division, parts, rng):
        answer = refined(division, start, parts)
        cut = division.cut(answer)
        if best is None or cut < best[0]:
            best = cut, answer
    if best is None:
        raise no_packing(division, parts)
    return best[1]


def _starts(division: Division, parts: int, rng: np.random.Generator) -> Iterator[Integers]:
    """First answers on the vertices themselves."""
    if (merged := Hierarchy(division, least=parts).at(parts)) is not None:
        yield merged
    for turn in range(STARTS):
        levels = _communities(division, RESOLUTIONS[turn % len(RESOLUTIONS)], rng)
        answer: Integers | None = None
        finer: Integers | None = None  # group of each vertex at the level below
        for group in [*levels, np.arange(division.size)]:
            coarse = division.merged(group)
            if answer is None:
                answer = _first(coarse, parts, rng, by_merging=turn % 2 == 0)
                answer = None if answer is None else answer[group]
            if answer is not None:
                at_group = np.zeros(coarse.size, np.int64)
                at_group[group] = answer
                answer = refined(coarse, at_group, parts)[group]
            finer = group
        if answer is not None and finer is not None:
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
