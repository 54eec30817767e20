"""Incremental updates of hop counts after links were added or removed."""

from __future__ import annotations

from typing import Any

import numpy as np

from ces_core.compiled.jit import compiled

SAME, UPDATED, GIVEN_UP = 0, 1, 2
MOST_TOUCHED = 256
"""A row that needs more changes than this is given up: computing it from scratch is as fast."""


@compiled
def update_rows(
    ahead_first: Any, ahead: Any, behind_first: Any, behind: Any, rows: Any, gone: Any, near: Any, far: Any
) -> Any:
    """Bring every row up to date; per row, whether it stayed the ``SAME``, was ``UPDATED`` or was ``GIVEN_UP``
    half-way.

    A row holds every node's hops to the one node with 0; ``ahead`` are the present neighbours that a node links to, and
    ``behind`` those that link to it. ``gone``: nodes that lost a link ahead; ``near[i] -> far[i]``: the new links.
    """
    verdict = np.zeros(len(rows), dtype=np.int8)
    most = MOST_TOUCHED + len(gone)
    lost = np.empty(most, dtype=np.int64)  # nodes that are, or may be, farther away than they were
    is_lost = np.zeros(len(ahead_first) - 1, dtype=np.bool_)  # False, for all nodes, between rows
    queue = np.empty(MOST_TOUCHED, dtype=np.int64)
    for r in range(len(rows)):
        row = rows[r]
        count = lose(ahead_first, ahead, behind_first, behind, row, gone, lost, is_lost)
        if count > 0:
            verdict[r] = UPDATED
            settle(ahead_first, ahead, behind_first, behind, row, lost, count, is_lost)
        touched = 0
        if count >= 0:
            for i in range(count):
                if row[lost[i]] >= 0:
                    queue[touched] = lost[i]
                    touched += 1
            for i in range(len(near)):
                hops = row[far[i]] + 1
                if hops > 0 and (row[near[i]] < 0 or row[near[i]] > hops):
                    verdict[r] = UPDATED
                    row[near[i]] = hops
                    if touched == MOST_TOUCHED:
                        count = -1
                        break
                    queue[touched] = near[i]
                    touched += 1
        if count < 0 or not gain(behind_first, behind, row, queue, touched):
            verdict[r] = GIVEN_UP
    return verdict


@compiled
def lose(
    ahead_first: Any, ahead: Any, behind_first: Any, behind: Any, row: Any, gone: Any, lost: Any, is_lost: Any
) -> int:
    """Find the nodes that no neighbour with its old hop count leads on: ``lost[:count]``, marked in ``is_lost``.

    Nodes are visited in the order of their hops, so that neighbours ahead are decided first. Returns the count, or -1
    (and no mark) if it exceeds the limit.
    """
    pending = len(gone)
    todo = np.empty(len(lost) + 1, dtype=np.int64)
    todo[:pending] = gone
    count = 0
    while pending > 0:
        least = 0
        for i in range(1, pending):
            if row[todo[i]] < row[todo[least]]:
                least = i
        here = todo[least]
        pending -= 1
        todo[least] = todo[pending]
        if row[here] <= 0 or is_lost[here]:
            continue
        led = False
        for c in range(ahead_first[here], ahead_first[here + 1]):
            if row[ahead[c]] == row[here] - 1 and not is_lost[ahead[c]]:
                led = True
                break
        if led:
            continue
        is_lost[here] = True
        lost[count] = here
        count += 1
        full = count == MOST_TOUCHED
        for c in range(behind_first[here], behind_first[here + 1]):
            if row[behind[c]] == row[here] + 1:
                if pending == len(todo) - 1:
                    full = True
                    break
                todo[pending] = behind[c]
                pending += 1
        if full:
            for i in range(count):
                is_lost[lost[i]] = False
            return -1
    return count


@compiled
def settle(
    ahead_first: Any, ahead: Any, behind_first: Any, behind: Any, row: Any, lost: Any, count: int, is_lost: Any
) -> None:
    """New hop counts for lost nodes, from those of the others, by Dijkstra's algorithm. Clears their marks."""
    for i in range(count):
        here = lost[i]
        row[here] = -1
        for c in range(ahead_first[here], ahead_first[here + 1]):
            other = ahead[c]
            if not is_lost[other] and row[other] >= 0 and (row[here] < 0 or row[other] + 1 < row[here]):
                row[here] = row[other] + 1
    for i in range(count):
        nearest = i
        for j in range(i, count):
            if row[lost[j]] >= 0 and (row[lost[nearest]] < 0 or row[lost[j]] < row[lost[nearest]]):
                nearest = j
        here = lost[nearest]
        lost[nearest] = lost[i]
        lost[i] = here
        is_lost[here] = False
        if row[here] < 0:
            continue
        for c in range(behind_first[here], behind_first[here + 1]):
            other = behind[c]
            if is_lost[other] and (row[other] < 0 or row[here] + 1 < row[other]):
                row[other] = row[here] + 1


@compiled
def gain(behind_first: Any, behind: Any, row: Any, queue: Any, touched: int) -> bool:
    """Propagate shorter hop counts of ``queue[:touched]`` to the neighbours behind. False if that goes too far."""
    done = 0
    while done < touched:
        here = queue[done]
        done += 1
        for c in range(behind_first[here], behind_first[here + 1]):
            other = behind[c]
            if row[other] < 0 or row[here] + 1 < row[other]:
                if touched == len(queue):
                    return False
                row[other] = row[here] + 1
                queue[touched] = other
                touched += 1
    return True
