"""First-use costs of a solver, paid ahead: imports, and the compilation of everything that decisions use.

``python -m ces_core.solvers.warm [NAME]`` leaves what was compiled where later processes find it.
"""

from __future__ import annotations

import sys

from ces_core import resettle
from ces_core.candidates import ALL
from ces_core.problem import Cluster, Flow, Link, Node, Problem, Task
from ces_core.solvers import get_solver
from ces_core.solvers.base import Solver

ENOUGH_S = 0.1
"""No solver needs longer for these problems once it is compiled."""


def warm_up(solver: Solver) -> None:
    """Has ``solver`` decide tiny jobs, with and without a place, and one on a large cluster, so that no later decision
    pays for its first use.

    Takes a minute of CPU time where nothing is compiled yet and no cache of compiled code can be used, else less than
    a second.
    What a topology remembers is another matter: see :meth:`ces_core.paths.PathTable.warm`.
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
    resettle.warm_up()
    cluster.topology.paths.warm()  # what no decision uses until the topology changes
    star = [Node(f"n{i}", cpu=2.0, memory=2.0) for i in range(ALL + 1)]  # so many that only some are looked at closely
    spokes = [(star[0].name, node.name) for node in star[1:]]
    large = Cluster.make(star, [Link(a, b, 4.0) for ends in spokes for a, b in (ends, ends[::-1])])
    many = [Task(f"t{i}", cpu=1.5) for i in range(16)]  # with so many placements that the solver does all that it can
    for _ in range(2):
        solver.solve(Problem.make(large, many, [Flow("t0", "t1", 1.0, 5.0)]), time_limit_s=ENOUGH_S)


if __name__ == "__main__":
    warm_up(get_solver(*sys.argv[1:]))
