"""Order in which tasks are placed."""

from __future__ import annotations

import numpy as np

from ces_core.compiled.jit import compiled
from ces_core.model.topology import IntArray
from ces_core.placement.view import ProblemView


@compiled
def task_order(view: ProblemView) -> IntArray:
    """Tasks in placement order: the one with the highest demand and traffic first, then always the one most connected
    to those before it."""
    tasks, flows = len(view.demand), len(view.low)
    weight = np.zeros(tasks)
    talk = np.zeros(tasks)
    bond = np.zeros((tasks, tasks))
    for k in range(3):
        largest = max(view.free[k].max(), 1e-300)
        for t in range(tasks):
            weight[t] = max(weight[t], view.demand[t, k] / largest)
    weight /= max(weight.max(), 1e-300)
    widest = max(view.high.max(), 1e-300) if flows > 0 else 1.0
    for f in range(flows):
        src, dst, high = view.flow_src[f], view.flow_dst[f], view.high[f] / widest
        if src >= 0:
            talk[src] += high
        if dst >= 0 and dst != src:
            talk[dst] += high
        if src >= 0 and dst >= 0:
            bond[src, dst] += high
            bond[dst, src] += high
    weight += talk / max(talk.max(), 1e-300)
    order = np.zeros(tasks, dtype=np.int64)
    for i in range(tasks):
        order[i] = np.argmax(weight)
        weight[order[i]] = -np.inf
        weight += bond[order[i]]
    return order
