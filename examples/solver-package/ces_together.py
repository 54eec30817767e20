"""``together``: each task on a node that already has one of the job's tasks, as long as it fits there.

An example of a solver in a package of its own. Flows within a node need no bandwidth, so the job keeps off the network;
the price is a worse balance of the nodes.
"""

from __future__ import annotations

import numpy as np

from ces_core.bandwidth.composite import complete
from ces_core.model.objective import evaluate
from ces_core.model.plan import Plan, Result
from ces_core.model.problem import Problem
from ces_core.model.reason import Reason
from ces_core.search.diagnosis import SearchTrace


class Together:
    name = "together"
    summary = "tasks beside each other, as few nodes as will do"

    def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
        considered = SearchTrace.of(problem).considered  # nodes that are refused before anything is placed
        free = problem.cluster.node_free.copy()  # (cpu, memory and gpu; nodes)
        tasks_on = np.zeros(free.shape[1])  # (nodes,) of this job
        assignment: list[int] = []  # for each task, the index of its node

        for task, demand in zip(problem.tasks, problem.demand, strict=True):
            fits = problem.allowed[len(assignment)] & (demand[:, None] <= free).all(axis=0)
            if not fits.any():
                return Result(self.name, considered, reason=Reason("packing", proven=False, task=task.name))
            # Most tasks of this job first; among equals, most free CPU. np.lexsort sorts by its last key first.
            best_last = np.lexsort((free[0], tasks_on, fits))
            node = int(best_last[-1])
            free[:, node] -= demand
            tasks_on[node] += 1
            assignment.append(node)

        flows = complete(problem, assignment)  # paths and rates by the rule that CES's own solvers share
        if flows is None:
            return Result(self.name, considered, reason=Reason("bandwidth-together", proven=False))
        plan = Plan.of(problem, assignment, flows.paths, flows.bandwidth)
        metrics = evaluate(problem, assignment, flows.paths, flows.bandwidth)
        return Result(self.name, considered, plan, metrics)


TOGETHER = Together()
"""What the entry point names: the object, not its class."""
