"""Pays a solver's first-use costs ahead: imports, and the compilation of everything that decisions use."""

from __future__ import annotations

import contextlib

from ces_core.bandwidth import reroute
from ces_core.model.errors import ProblemError
from ces_core.model.goals import Chain, Goals, ObjectiveWeights
from ces_core.model.parts import Flow, Link, Node, Task
from ces_core.model.problem import Cluster, Problem
from ces_core.model.profiles import TaskProfile, Work
from ces_core.network.cache import paths_of
from ces_core.placement.candidates import ALL
from ces_core.solver import Solver

ENOUGH_S = 0.1
"""No solver needs longer for these problems once it is compiled."""
CHAIN = 40
"""Nodes, so that more time goes to what sparse networks need."""
HASTE_S = 1e-3
"""So little that the default solver tries its learned constructions, which it leaves out where it has ample time."""


def warm_up(solver: Solver) -> None:
    """Have ``solver`` decide tiny jobs, feasible and infeasible, with goals and without, and one on a large cluster, so
    that no later decision pays for first use.

    Takes a minute of CPU time if nothing is compiled yet and no cache of compiled code can be used, else less than a
    second. It does not fill path tables: see :meth:`ces_core.network.path_table.PathTable.warm`.
    """
    nodes = [Node(name, cpu=2.0, memory=2.0) for name in "abc"]
    links = [Link(a, b, 4.0) for a in "abc" for b in "abc" if a != b]
    cluster = Cluster.make(nodes, links)
    tasks = [Task(name, cpu=1.5) for name in "xyz"]
    ends = [("@a", "@b"), *((x, y) for x in "xyz" for y in "xyz" if x != y)]
    for least in (1.0, 3.0):  # one task per node, so two flows share a link: the first least fits, the second does not
        problem = Problem.make(cluster, tasks, [Flow(src, dst, least, 5.0) for src, dst in ends])
        # Twice: a limit that passes while the first decision compiles leaves its later steps for the second.
        for _ in range(2):
            solver.solve(problem, time_limit_s=ENOUGH_S)
    with contextlib.suppress(ProblemError):  # not every solver knows goals
        solver.solve(_with_goals(cluster), time_limit_s=ENOUGH_S)
    reroute.warm_up()
    paths_of(cluster.topology).warm()  # what no decision uses until the topology changes
    star = [Node(f"n{i}", cpu=2.0, memory=2.0) for i in range(ALL + 1)]  # so many that only some are looked at closely
    spokes = [(star[0].name, node.name) for node in star[1:]]
    large = Cluster.make(star, [Link(a, b, 4.0) for ends in spokes for a, b in (ends, ends[::-1])])
    many = [Task(f"t{i}", cpu=1.5) for i in range(16)]  # with so many placements that the solver does all that it can
    talk = [Flow("t0", "t1", 1.0, 5.0)]
    for limit in (ENOUGH_S, ENOUGH_S, HASTE_S):
        solver.solve(Problem.make(large, many, talk), time_limit_s=limit)
    solver.solve(Problem.make(_sparse(CHAIN), many, talk), time_limit_s=ENOUGH_S)


def _sparse(count: int) -> Cluster:
    """A chain: most pairs of its nodes are far apart."""
    nodes = [Node(f"n{i}", cpu=2.0, memory=2.0) for i in range(count)]
    return Cluster.make(
        nodes, [Link(f"n{i}", f"n{j}", 4.0) for a in range(count - 1) for i, j in ((a, a + 1), (a + 1, a))]
    )


def _with_goals(cluster: Cluster) -> Problem:
    tasks = [Task(name, cpu=1.0, profile=TaskProfile(Work(5.0), rate=10.0)) for name in "xy"]
    chain = Chain("loop", ("x", "y"), (("x", "y"),), deadline_ms=100.0, hard=True)
    goals = Goals((chain,), least_reliability=0.5, weights=ObjectiveWeights(0.25, 0.25, 0.25, 0.25))
    return Problem.make(cluster, tasks, [Flow("x", "y", 1.0, 2.0, message=1000.0)], goals=goals)
