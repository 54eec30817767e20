"""Whether it can be seen at once that nothing stands in a job's way, which is nearly always so."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ces_core.kernels.jit import compiled
from ces_core.problem import SLACK, FloatArray
from ces_core.topology import IntArray


@compiled
def unhindered(
    homes: NDArray[np.bool_],
    demand: FloatArray,
    node_capacity: FloatArray,
    node_free: FloatArray,
    flow_src: IntArray,
    flow_dst: IntArray,
    flow_min: FloatArray,
    link_src: IntArray,
    link_dst: IntArray,
    link_medium: IntArray,
    room: FloatArray,
) -> bool:
    """False where one has to look closer. True: every task fits somewhere (``homes``, (T, N)), all of them ask for no
    more than is free, and every flow has room within a node or on a single link between nodes that its ends may use.
    ``room`` per link; ``flow_src``, ``flow_dst``: a task, or -1 - n for node n."""
    tasks, nodes = homes.shape
    for row in range(len(node_free)):
        if demand[:, row].sum() > node_free[row].sum():
            return False
    for t in range(tasks):
        if not homes[t].any():
            return False
    for f in range(len(flow_src)):
        src, dst = flow_src[f], flow_dst[f]
        found = False
        for n in range(nodes):
            if not (homes[src, n] if src >= 0 else n == -1 - src) or not (homes[dst, n] if dst >= 0 else n == -1 - dst):
                continue
            found = True
            for row in range(len(node_free)):
                asked = (demand[src, row] if src >= 0 else 0.0) + (demand[dst, row] if dst >= 0 else 0.0)
                found = found and asked <= node_free[row, n] + SLACK * node_capacity[row, n]
            if found:
                break
        for link in range(0 if found else len(link_src)):
            if link_medium[link] >= 0 or room[link] < flow_min[f]:
                continue
            a, b = link_src[link], link_dst[link]
            if (homes[src, a] if src >= 0 else a == -1 - src) and (homes[dst, b] if dst >= 0 else b == -1 - dst):
                found = True
                break
        if not found:
            return False
    return True
