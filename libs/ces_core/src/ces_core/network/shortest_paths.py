"""All hop-shortest paths between pairs of nodes, written straight into flat arrays. Compiled if possible.

The order is fixed: depth first, the neighbours of a node by rising link.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ces_core.compiled.jit import compiled

Flat = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]
"""The arrays of :class:`FlatPaths`."""


class FlatPaths(NamedTuple):
    """The paths between C chosen nodes as flat arrays.

    Paths ``pair_first[a * C + b]`` up to the next entry lead from the a-th to the b-th chosen node, in the order of
    :meth:`PathTable.between`; path ``q`` loads ``resource[path_first[q] : path_first[q + 1]]``, each ``times`` times:
    its links in order, then the media. The path from a node to itself is included and loads nothing.
    """

    pair_first: NDArray[np.int64]  # (C * C + 1,)
    path_first: NDArray[np.int64]  # (paths + 1,)
    resource: NDArray[np.int64]
    times: NDArray[np.float64]
    truncated: NDArray[np.bool_]  # (C * C,) whether the pair has more shortest paths than are kept

    def size(self) -> int:
        """Bytes."""
        return sum(array.nbytes for array in self)


@compiled
def shortest_walks(out: Any, into: Any, medium: Any, rows: Any, ends: Any, src: Any, row_of: Any, most: int) -> Flat:
    """The hop-shortest paths of pairs ``(src[p], ends[row_of[p]])``, at most ``most`` each.

    ``out``: the neighbours that links lead to, ``into``: those that they come from (:class:`Neighbours`); ``medium``
    per link, -1 where there is none; ``rows[i]``: the hops from every node to ``ends[i]``.
    """
    first, node, link = out
    into_first, into_node, into_link = into
    pair_first = np.zeros(len(src) + 1, dtype=np.int64)
    truncated = np.zeros(len(src), dtype=np.bool_)
    path_first = np.zeros(1024, dtype=np.int64)
    resource = np.empty(1024, dtype=np.int64)
    times = np.empty(1024, dtype=np.float64)
    depths = len(first)
    at = np.empty(depths, dtype=np.int64)
    cursor = np.empty(depths, dtype=np.int64)
    via = np.empty(depths, dtype=np.int64)
    last = np.full((len(rows), depths), -1, dtype=np.int32)  # the link from a node to the end of the row
    for i in range(len(rows)):
        for c in range(into_first[ends[i]], into_first[ends[i] + 1]):
            last[i, into_node[c]] = into_link[c]
    paths = used = 0
    for p in range(len(src)):
        row = rows[row_of[p]]
        begin = src[p]
        found = 0
        depth = 0 if row[begin] > 0 else -1
        at[0] = begin
        cursor[0] = first[begin]
        if begin == ends[row_of[p]]:
            path_first = roomy(path_first, paths + 2)
            paths += 1
            path_first[paths] = used
        while depth >= 0:
            here = at[depth]
            nearer = row[here] - 1
            if nearer > 0:
                c = cursor[depth]
                end = first[here + 1]
                while c < end and row[node[c]] != nearer:
                    c += 1
                if c == end:
                    depth -= 1
                    continue
                cursor[depth] = c + 1
                via[depth] = link[c]
                depth += 1
                at[depth] = node[c]
                cursor[depth] = first[node[c]]
                continue
            via[depth] = last[row_of[p], here]
            if found == most:
                truncated[p] = True
                break
            found += 1
            path_first = roomy(path_first, paths + 2)
            resource = roomy(resource, used + 2 * (depth + 1))
            times = roomy(times, used + 2 * (depth + 1))
            used = load(via, depth + 1, medium, resource, times, used)
            paths += 1
            path_first[paths] = used
            depth -= 1
        pair_first[p + 1] = paths
    return pair_first, path_first[: paths + 1].copy(), resource[:used].copy(), times[:used].copy(), truncated


@compiled
def load(via: Any, hops: int, medium: Any, resource: Any, times: Any, used: int) -> int:
    """Write what a path over links ``via[:hops]`` uses: its links, then its media. Returns where the next path goes."""
    for i in range(hops):
        resource[used + i] = via[i]
        times[used + i] = 1.0
    used += hops
    shared = used
    for i in range(hops):
        over = medium[via[i]]
        if over < 0:
            continue
        for j in range(shared, used):
            if resource[j] == len(medium) + over:
                times[j] += 1.0
                break
        else:
            resource[used] = len(medium) + over
            times[used] = 1.0
            used += 1
    return used


@compiled
def roomy(array: Any, needed: int) -> Any:
    """The array, or a larger copy of it that holds ``needed`` entries."""
    if needed <= len(array):
        return array
    larger = np.empty(max(needed, 2 * len(array)), dtype=array.dtype)
    larger[: len(array)] = array
    return larger
