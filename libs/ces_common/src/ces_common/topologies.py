"""Named topologies: which ranks send to which. Pure."""

from __future__ import annotations

from itertools import permutations


def topology_pairs(topology: str, count: int, direction: str = "forward") -> list[tuple[int, int]]:
    """Directed (source rank, destination rank) pairs of a named topology over ``count`` tasks, sorted.

    ring: i -> i+1 (forward), i -> i-1 (reverse) or both. star: rank 0 is the hub. tree: binary, rank 0 is the
    root. gossip: each rank with its next two neighbours around a circle. full: every pair. All but the ring go
    both ways.
    """
    ranks = range(count)
    pairs: set[tuple[int, int]] = set()
    if topology == "ring":
        forward = {(i, (i + 1) % count) for i in ranks}
        if direction in ("forward", "both"):
            pairs |= forward
        if direction in ("reverse", "both"):
            pairs |= {(b, a) for a, b in forward}
    elif topology == "full":
        pairs |= set(permutations(ranks, 2))
    else:
        one_way = {
            "star": [(0, i) for i in ranks],
            "tree": [((i - 1) // 2, i) for i in ranks if i > 0],
            "gossip": [(i, (i + step) % count) for i in ranks for step in (1, 2)],
        }[topology]
        pairs |= {pair for a, b in one_way for pair in ((a, b), (b, a))}
    return sorted((a, b) for a, b in pairs if a != b)
