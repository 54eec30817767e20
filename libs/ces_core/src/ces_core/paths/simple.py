"""The K shortest simple paths between pairs of nodes, by hops, straight into flat arrays.

The order is fixed: by length, and among equals depth first, the neighbours of a node by rising link. Two ways lead to
the same answer. The first deepens step by step (Korf, "Depth-first iterative-deepening", 1985) with the hops that are
left as its lower bound: quick, but it can lose itself where many ways lead into a dead end. Then the second takes over,
which looks for the best deviation from each path that it has (Yen, "Finding the K shortest loopless paths in a
network", 1971; Lawler's improvement, 1972) and never takes more than K * hops searches through the network.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ces_core.kernels.jit import compiled
from ces_core.paths.walks import Flat, load, roomy

PATIENCE = 128
"""Before the second way takes over, the first may look at so many links times K + 1 times the shortest path's hops; a
path of few hops counts as one of eight."""
IDLE = 4
"""It also takes over where so many lengths in a row have no path."""

FAR = int(np.iinfo(np.int64).max)


@compiled
def simple_walks(
    first: Any,
    node: Any,
    link: Any,
    into_first: Any,
    into_node: Any,
    medium: Any,
    rows: Any,
    ends: Any,
    src: Any,
    row_of: Any,
    k: int,
    patience: int,
) -> Flat:
    """The first ``k`` simple paths of pairs ``(src[p], ends[row_of[p]])``; arguments as for ``shortest_walks``."""
    pair_first = np.zeros(len(src) + 1, dtype=np.int64)
    path_first = np.zeros(1024, dtype=np.int64)
    resource = np.empty(1024, dtype=np.int64)
    times = np.empty(1024, dtype=np.float64)
    nodes = len(first) - 1
    # Ways are rows of entries of ``node`` and ``link``.
    ways = np.empty((k, nodes), dtype=np.int64)
    hops = np.zeros(k, dtype=np.int64)
    passed = np.zeros(nodes, dtype=np.bool_)
    paths = used = 0
    for p in range(len(src)):
        row, begin, end = rows[row_of[p]], src[p], ends[row_of[p]]
        found = 0
        if begin == end:
            found = 1
            hops[0] = 0
        elif row[begin] > 0:
            looks = patience * (k + 1) * max(8, row[begin])
            found = deepen(first, node, row, begin, end, ways, hops, passed, looks)
            if found < 0:
                found = deviate(first, node, into_first, into_node, begin, end, ways, hops)
        for i in range(found):
            path_first = roomy(path_first, paths + 2)
            resource = roomy(resource, used + 2 * hops[i])
            times = roomy(times, used + 2 * hops[i])
            for j in range(hops[i]):
                ways[i, j] = link[ways[i, j]]
            used = load(ways[i], hops[i], medium, resource, times, used)
            paths += 1
            path_first[paths] = used
        pair_first[p + 1] = paths
    truncated = np.zeros(len(src), dtype=np.bool_)
    return pair_first, path_first[: paths + 1].copy(), resource[:used].copy(), times[:used].copy(), truncated


@compiled
def deepen(
    first: Any, node: Any, row: Any, src: int, dst: int, ways: Any, hops: Any, passed: Any, patience: int
) -> int:
    """Fills ``ways`` and ``hops``; how many were found, or -1 where patience ended. ``passed`` is all False."""
    k, depths = ways.shape
    at = np.empty(depths, dtype=np.int64)
    cursor = np.empty(depths, dtype=np.int64)
    found = looked = idle = 0
    length = int(row[src])
    while length != FAR:
        longer, known = FAR, found
        depth = 0
        at[0] = src
        cursor[0] = first[src]
        passed[src] = True
        while depth >= 0:
            c = cursor[depth]
            if c == first[at[depth] + 1] or found == k or looked > patience:
                passed[at[depth]] = False
                depth -= 1
                continue
            cursor[depth] = c + 1
            looked += 1
            other = node[c]
            if passed[other] or row[other] < 0:
                continue
            least = depth + 1 + row[other]
            if least > length:
                longer = min(longer, least)
            elif other != dst:
                depth += 1
                at[depth] = other
                cursor[depth] = first[other]
                passed[other] = True
            elif least == length:
                for i in range(depth + 1):
                    ways[found, i] = cursor[i] - 1
                hops[found] = length
                found += 1
        if found == k:
            return found
        idle = 0 if found > known else idle + 1
        if looked > patience or idle > IDLE:
            return -1
        length = longer
    return found


@compiled
def deviate(first: Any, node: Any, into_first: Any, into_node: Any, src: int, dst: int, ways: Any, hops: Any) -> int:
    """Fills ``ways`` and ``hops``; how many were found."""
    k, depths = ways.shape
    # The best deviations known, in no order: as many as could still be wanted.
    others = np.empty((k, depths), dtype=np.int64)
    other_hops = np.zeros(k, dtype=np.int64)
    leaves = np.zeros(k, dtype=np.int64)  # the hop at which it leaves the path that it deviates from
    left = np.full(depths, -1, dtype=np.int64)
    queue = np.empty(depths, dtype=np.int64)
    closed = np.zeros(depths, dtype=np.bool_)
    way = np.empty(depths, dtype=np.int64)
    found = 0
    count = 1
    other_hops[0] = complete(first, node, into_first, into_node, src, dst, 0, closed, ways, hops, 0, left, queue, way)
    others[0] = way
    while count > 0:
        best = 0
        for i in range(1, count):
            if before(others[i], other_hops[i], others[best], other_hops[best]):
                best = i
        ways[found] = others[best]
        hops[found] = other_hops[best]
        start = leaves[best]
        count -= 1
        others[best], other_hops[best], leaves[best] = others[count], other_hops[count], leaves[count]
        found += 1
        if found == k:
            break
        spur = src
        for i in range(hops[found - 1]):
            if i >= start:
                length = complete(
                    first, node, into_first, into_node, spur, dst, i, closed, ways, hops, found, left, queue, way
                )
                if length > 0:
                    way[:i] = ways[found - 1, :i]
                    worst = count
                    if count == k - found:
                        worst = 0
                        for j in range(1, count):
                            if before(others[worst], other_hops[worst], others[j], other_hops[j]):
                                worst = j
                    if worst == count or before(way, length, others[worst], other_hops[worst]):
                        others[worst], other_hops[worst], leaves[worst] = way, length, i
                        count = max(count, worst + 1)
            closed[spur] = True
            spur = node[ways[found - 1, i]]
        closed[:] = False
    return found


@compiled
def before(one: Any, hops: int, other: Any, other_hops: int) -> bool:
    """Whether one way comes first. Ways that differ leave the same node where they part, so entries compare."""
    if hops != other_hops:
        return bool(hops < other_hops)
    for i in range(hops):
        if one[i] != other[i]:
            return bool(one[i] < other[i])
    return False


@compiled
def complete(
    first: Any,
    node: Any,
    into_first: Any,
    into_node: Any,
    spur: int,
    dst: int,
    prefix: int,
    closed: Any,
    ways: Any,
    hops: Any,
    found: int,
    left: Any,
    queue: Any,
    way: Any,
) -> int:
    """The first of the shortest ways from ``spur``, at hop ``prefix`` of the latest way found, to ``dst``, that avoids
    closed nodes and leaves ``spur`` as no way found with the same beginning does. Writes ``way[prefix:]``; returns
    its hops, those of the beginning included, or 0 where there is none."""
    options = 0
    for c in range(first[spur], first[spur + 1]):
        if closed[node[c]]:
            continue
        taken = False
        for w in range(found):
            if hops[w] <= prefix or ways[w, prefix] != c:
                continue
            if w == found - 1 or alike(ways[w], ways[found - 1], prefix):
                taken = True
                break
        if not taken:
            queue[options] = c
            options += 1
    if options == 0:
        return 0
    open_links = queue[:options].copy()
    left[:] = -1
    left[dst] = 0
    queue[0] = dst
    reached, done = 1, 0
    while done < reached:
        here = queue[done]
        done += 1
        for c in range(into_first[here], into_first[here + 1]):
            other = into_node[c]
            if left[other] < 0 and not closed[other] and other != spur:
                left[other] = left[here] + 1
                queue[reached] = other
                reached += 1
    step = -1
    for c in open_links:
        if left[node[c]] >= 0 and (step < 0 or left[node[c]] < left[node[step]]):
            step = c
    if step < 0:
        return 0
    length = prefix
    way[length] = step
    length += 1
    here = node[step]
    while here != dst:
        for c in range(first[here], first[here + 1]):
            if left[node[c]] == left[here] - 1:
                way[length] = c
                length += 1
                here = node[c]
                break
    return length


@compiled
def alike(one: Any, other: Any, hops: int) -> bool:
    """Whether two ways begin with the same hops."""
    i = 0
    while i < hops and one[i] == other[i]:
        i += 1
    return i == hops
