"""What other ways of dividing the same graph cut: not at all, at random, and by METIS where it is installed."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product

import numpy as np

from ces_core.decomposition.graph import Division, IndivisibleError, Integers
from ces_core.decomposition.packing import at_random

DRAWS = 20
SHARES = (1.0, 0.5, 0.2, 0.05)  # of the room that an even division leaves, which METIS is told that it may use


@dataclass(frozen=True)
class Rival:
    """``cut``: bit/s; of several draws the mean, with half the width of its 95 % interval (Student's t). None where
    there is none, for the reason ``lacks``. ``above``: why it is no answer to the same question: what it breaks, or too
    few parts."""

    name: str
    parts: int
    cut: float | None = None
    spread: float = 0.0
    above: str = ""
    lacks: str = ""


def rivals(division: Division, parts: int, *, seed: int = 0, metis: bool = True) -> tuple[Rival, ...]:
    """Not divided, divided at random within capacities, and, if asked for, by METIS, which is told how full a part may
    be but need not keep to it."""
    whole = division.broken(np.zeros(division.size, np.int64))
    found = Rival("unsplit", 1, 0.0, above="; ".join(whole)), _random(division, parts, seed)
    return (*found, _metis(division, parts, seed)) if metis else found


def _random(division: Division, parts: int, seed: int) -> Rival:
    from scipy import stats  # takes a second

    rng = np.random.default_rng(seed)
    try:
        cuts = [division.cut(at_random(division, parts, rng)) for _ in range(DRAWS)]
    except IndivisibleError as error:
        return Rival("random", parts, lacks=str(error))
    spread = float(stats.t.ppf(0.975, DRAWS - 1) * np.std(cuts, ddof=1) / np.sqrt(DRAWS))
    return Rival("random", parts, float(np.mean(cuts)), spread)


def _metis(division: Division, parts: int, seed: int) -> Rival:
    if find_spec("pymetis") is None:
        return Rival("metis", parts, lacks="pymetis is not installed")
    part = metis(division, parts, seed=seed)
    count = int(part.max()) + 1
    fewer = [f"{count} parts, and {parts} were asked for"] if count < parts else []
    return Rival("metis", count, division.cut(part), above="; ".join([*fewer, *division.broken(part)]))


def metis(division: Division, parts: int, *, seed: int = 0) -> Integers:
    """The part of each vertex by METIS (Karypis and Kumar 1998), parts counted from 0. It weighs CPU alone, knows no
    architecture, and may leave a part above its capacity, or empty. So it is asked several times, to use less and less
    of the room that there is: its answer is the best that breaks nothing, else the best with as many parts as asked."""
    import pymetis

    cpu = division.amounts[0]
    weights = np.maximum(1, np.rint(cpu)).astype(int)
    heaviest = division.traffic.max() if len(division.traffic) else 1.0
    whole = np.maximum(1, np.rint(division.traffic / heaviest * 1e6)).astype(int)
    around: list[list[tuple[int, int]]] = [[] for _ in range(division.size)]
    for (a, b), weight in zip(division.ends.tolist(), whole.tolist(), strict=True):
        around[a].append((b, weight))
        around[b].append((a, weight))
    starts = np.cumsum([0, *(len(each) for each in around)])
    graph = pymetis.CSRAdjacency(starts.tolist(), [other for each in around for other, _ in each])
    room = division.most[0] * parts / weights.sum() - 1 if np.isfinite(division.most[0]) else 0.03
    found: list[tuple[bool, bool, float, Integers]] = []
    for share, recursive in product(SHARES, (False, True)):
        answer = pymetis.part_graph(
            parts,
            adjacency=graph,
            eweights=[weight for each in around for _, weight in each],
            vweights=weights.tolist(),
            recursive=recursive,
            options=pymetis.Options(seed=seed, ufactor=max(1, int(1000 * share * room))),
        )
        part = np.unique(np.array(answer.vertex_part), return_inverse=True)[1].astype(np.int64)
        fewer = int(part.max()) + 1 < parts
        found.append((fewer or bool(division.broken(part)), fewer, division.cut(part), part))
    return min(found, key=lambda each: each[:3])[3]
