"""What the scale benchmark runs in processes of their own: ``python -m ces_core.bench.scale_process IN OUT SOLVER SEED
NEW [LIMIT...]``. Reads pickled instances, writes a pickled :class:`Measured`, or the exception that ended it.
"""

from __future__ import annotations

import pickle
import resource
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ces_core.instance import read_instance
from ces_core.problem import Flow, Problem, Task
from ces_core.simulator.deciding import BadDecisionError, decide
from ces_core.solvers import get_solver
from ces_core.solvers.warm import warm_up


@dataclass(frozen=True)
class Taken:
    """One decision: how long, and the composite of its plan, if any."""

    wall_ms: float
    composite: float | None


@dataclass(frozen=True)
class Measured:
    """What one process saw.

    ``new``: every job when it was new, the very first decision at its head; ``known``: per time limit, every job again,
    with its paths known. Memory in bytes: with the cluster read, and after the last decision.
    """

    new: Sequence[Taken]
    known: Mapping[float, Sequence[Taken]]
    memory_before: int
    memory_after: int


def measure(file: Path, name: str, seed: int, new_limit: float, limits: Sequence[float]) -> Measured:
    """``file`` holds instances that share one cluster; ``new_limit`` is for jobs that are new. Raises
    BadDecisionError."""
    solver = get_solver(name)
    warm_up(solver)
    instances = pickle.loads(file.read_bytes())  # noqa: S301  our own, a moment old
    problems = _problems(instances)
    before = memory()
    new: list[Taken] = []
    known: dict[float, list[Taken]] = {limit: [] for limit in limits}
    for instance, problem in zip(instances, problems, strict=True):
        for into, limit in ((new, new_limit), *((known[limit], limit) for limit in limits)):
            cluster = problem.cluster
            fresh = replace(problem, cluster=cluster.with_used(cluster.node_used, cluster.link_used))
            decision = decide(solver, fresh, instance, seed=seed, time_limit_s=limit)
            metrics = decision.result.metrics
            into.append(Taken(decision.wall_s * 1e3, metrics.composite if metrics else None))
    return Measured(new, known, before, memory())


def _problems(instances: Sequence[Mapping[str, Any]]) -> list[Problem]:
    """All on one cluster."""
    cluster = read_instance(instances[0]).cluster
    return [
        Problem.make(
            cluster,
            (Task(**task) for task in instance["job"]["tasks"]),
            (Flow(**flow) for flow in instance["job"]["flows"]),
        )
        for instance in instances
    ]


def memory() -> int:
    """What the process has in memory now, in bytes; where the system does not tell, the most that it ever had."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
    return pages * resource.getpagesize()


def main(arguments: Sequence[str]) -> None:
    from ces_core.bench import scale_process  # under this name whoever reads the pickle finds the classes

    file, into, name, seed, new_limit, *limits = arguments
    answer: object
    try:
        answer = scale_process.measure(
            Path(file), name, int(seed), float(new_limit), [float(limit) for limit in limits]
        )
    except BadDecisionError as error:
        answer = error
    Path(into).write_bytes(pickle.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1:])
