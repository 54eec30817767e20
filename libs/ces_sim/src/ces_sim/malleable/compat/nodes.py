"""Where jobs go in the public simulator when they come in any order: by nodes, each with what is free in it."""

from __future__ import annotations

from collections.abc import Sequence


def fill(sizes: Sequence[int], capacity: int, node: int) -> list[int]:
    """The first GPU of each job, -1 for one of size 0 or without enough whole nodes. Jobs of whole nodes have the first
    that are empty. A smaller one goes where as much is free as it needs, else where most is, else to an empty node."""
    free = [node] * (capacity // node)
    begins = []
    for size in sizes:
        wanted = max(1, size // node)
        if not size:
            begins.append(-1)
            continue
        if size >= node:
            chosen = [i for i, gpus in enumerate(free) if gpus == node][:wanted]
            if len(chosen) < wanted:
                begins.append(-1)
                continue
            begins.append(chosen[0] * node)
            for i in chosen:
                free[i] = 0
            continue
        begins.append(_fill_part(free, size, node))
    return begins


def _fill_part(free: list[int], size: int, node: int) -> int:
    open_nodes = [i for i, gpus in enumerate(free) if size <= gpus < node]
    if exact := [i for i in open_nodes if _class(free[i]) == size]:
        chosen = max(exact, key=lambda i: free[i])
    elif open_nodes:
        chosen = max(open_nodes, key=lambda i: _class(free[i]))
    else:
        chosen = next((i for i, gpus in enumerate(free) if gpus == node), -1)
        if chosen < 0:
            return -1
    begin = chosen * node + node - free[chosen]
    free[chosen] -= size
    return begin


def _class(gpus: int) -> int:
    """The largest power of two that divides it."""
    return gpus & -gpus
