"""The K shortest simple paths between pairs of nodes, by hops, written straight into flat arrays.

The order is fixed: by length, and among equals depth first, the neighbours of a node by rising link. Two methods give
the same answer. The first is iterative deepening (Korf, "Depth-first iterative-deepening", 1985) with the remaining
hops as lower bound: fast, but it can get lost if many paths lead into a dead end. The second then takes over: it looks
for the best deviation from each path found (Yen, "Finding the K shortest loopless paths in a network", 1971; Lawler's
improvement, 1972) and never needs more than K * hops searches through the network.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ces_core.compiled.jit import compiled
from ces_core.network.shortest_paths import Flat, load, roomy

PATIENCE = 128
"""Before the second method takes over, the first may look at this many links times K + 1 times the shortest path's
hops; a path of few hops counts as one of eight."""
IDLE = 4
"""It also takes over if this many lengths in a row have no path."""

FAR = int(np.iinfo(np.int64).max)


@compiled
def simple_walks(
    out: Any, into: Any, medium: Any, rows: Any, ends: Any, src: Any, row_of: Any, k: int, patience: int
) -> Flat:
    """The first ``k`` simple paths of pairs ``(src[p], ends[row_of[p]])``; arguments as for ``shortest_walks``."""
    pair_first = np.zeros(len(src) + 1, dtype=np.int64)
    path_first = np.zeros(1024, dtype=np.int64)
    resource = np.empty(1024, dtype=np.int64)
    times = np.empty(1024, dtype=np.float64)
    nodes = len(out.first) - 1
    # Ways are rows of entries of ``node`` and ``link``.
    walks = np.empty((k, nodes), dtype=np.int64)
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
            found = deepen(out, row, begin, end, walks, hops, passed, looks)
            if found < 0:
                found = deviate(out, into, begin, end, walks, hops)
        for i in range(found):
            path_first = roomy(path_first, paths + 2)
            resource = roomy(resource, used + 2 * hops[i])
            times = roomy(times, used + 2 * hops[i])
            for j in range(hops[i]):
                walks[i, j] = out.link[walks[i, j]]
            used = load(walks[i], hops[i], medium, resource, times, used)
            paths += 1
            path_first[paths] = used
        pair_first[p + 1] = paths
    truncated = np.zeros(len(src), dtype=np.bool_)
    return pair_first, path_first[: paths + 1].copy(), resource[:used].copy(), times[:used].copy(), truncated


@compiled
def deepen(out: Any, row: Any, src: int, dst: int, walks: Any, hops: Any, passed: Any, patience: int) -> int:
    """Fill ``walks`` and ``hops``; returns the number found, or -1 if patience ran out. ``passed`` is all False."""
    first, node, _ = out
    k, depths = walks.shape
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
                    walks[found, i] = cursor[i] - 1
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
def deviate(out: Any, into: Any, src: int, dst: int, walks: Any, hops: Any) -> int:
    """Fill ``walks`` and ``hops``; returns the number found."""
    k, depths = walks.shape
    # The best deviations known, in no order: as many as could still be wanted.
    others = np.empty((k, depths), dtype=np.int64)
    other_hops = np.zeros(k, dtype=np.int64)
    leaves = np.zeros(k, dtype=np.int64)  # the hop at which it leaves the path that it deviates from
    left = np.full(depths, -1, dtype=np.int64)
    queue = np.empty(depths, dtype=np.int64)
    closed = np.zeros(depths, dtype=np.bool_)
    walk = np.empty(depths, dtype=np.int64)
    found = 0
    count = 1
    other_hops[0] = complete(out, into, src, dst, 0, closed, walks, hops, 0, left, queue, walk)
    others[0] = walk
    while count > 0:
        best = 0
        for i in range(1, count):
            if before(others[i], other_hops[i], others[best], other_hops[best]):
                best = i
        walks[found] = others[best]
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
                length = complete(out, into, spur, dst, i, closed, walks, hops, found, left, queue, walk)
                if length > 0:
                    walk[:i] = walks[found - 1, :i]
                    worst = count
                    if count == k - found:
                        worst = 0
                        for j in range(1, count):
                            if before(others[worst], other_hops[worst], others[j], other_hops[j]):
                                worst = j
                    if worst == count or before(walk, length, others[worst], other_hops[worst]):
                        others[worst], other_hops[worst], leaves[worst] = walk, length, i
                        count = max(count, worst + 1)
            closed[spur] = True
            spur = out.node[walks[found - 1, i]]
        closed[:] = False
    return found


@compiled
def before(one: Any, hops: int, other: Any, other_hops: int) -> bool:
    """Whether one path comes first. Different paths part at a common node, so their entries compare."""
    if hops != other_hops:
        return bool(hops < other_hops)
    for i in range(hops):
        if one[i] != other[i]:
            return bool(one[i] < other[i])
    return False


@compiled
def complete(
    out: Any,
    into: Any,
    spur: int,
    dst: int,
    prefix: int,
    closed: Any,
    walks: Any,
    hops: Any,
    found: int,
    left: Any,
    queue: Any,
    walk: Any,
) -> int:
    """The first of the shortest paths from ``spur``, at hop ``prefix`` of the latest path, to ``dst`` that avoids
    closed nodes and leaves ``spur`` unlike any path found with the same beginning. Writes ``walk[prefix:]``; returns
    its hops including the beginning, or 0 if there is none."""
    first, node, _ = out
    into_first, into_node, _ = into
    options = 0
    for c in range(first[spur], first[spur + 1]):
        if closed[node[c]]:
            continue
        taken = False
        for w in range(found):
            if hops[w] <= prefix or walks[w, prefix] != c:
                continue
            if w == found - 1 or alike(walks[w], walks[found - 1], prefix):
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
    walk[length] = step
    length += 1
    here = node[step]
    while here != dst:
        for c in range(first[here], first[here + 1]):
            if left[node[c]] == left[here] - 1:
                walk[length] = c
                length += 1
                here = node[c]
                break
    return length


@compiled
def alike(one: Any, other: Any, hops: int) -> bool:
    """Whether two paths begin with the same hops."""
    i = 0
    while i < hops and one[i] == other[i]:
        i += 1
    return i == hops
