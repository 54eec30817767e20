"""What is left over of cards counts in the search as it is given, and only there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from ces_core.learned.start.solver import SEARCH_LEARNED
from ces_core.model.cards import CardValue
from ces_core.model.objective import load_imbalance
from ces_core.model.parts import Flow, Link, Node, Task
from ces_core.model.problem import Cluster, Problem
from ces_core.search.greedy import GREEDY
from ces_core.search.longrun import SEARCH_LONGRUN
from ces_core.search.solver import SEARCH
from ces_core.solver import Solver, with_lookahead

EVEN = Cluster.make([Node(name, 8, 8, 2, cpu_used=used) for name, used in (("a", 4), ("b", 0), ("c", 2))], [])
SOLVERS = [SEARCH, SEARCH_LEARNED, with_lookahead(SEARCH)]


def sharing(tasks: int, cluster: Cluster = EVEN, share: float = 0.5) -> Problem:
    return Problem.make(cluster, [Task(f"t{i}", 1, 1, share) for i in range(tasks)])


def valued(problem: Problem, *rows: list[float], per_card: float = 2.0) -> Problem:
    return replace(problem, card_value=CardValue(np.array(rows), per_card))


def places(solver: Solver, problem: Problem) -> Mapping[str, str]:
    plan = solver.solve(problem).plan
    assert plan is not None
    return plan.assignments


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda each: each.name)
def test_a_node_on_which_nothing_is_lost_is_preferred(solver: Solver) -> None:
    problem = valued(sharing(1), [0, 0], [0, -1], [0, -1])
    assert places(solver, problem) == {"t0": "a"}
    assert places(SEARCH, sharing(1)) == {"t0": "b"}


def test_little_that_is_left_over_does_not_outweigh_the_composite() -> None:
    problem = valued(sharing(1), [0, 0], [0, -1e-4], [0, -1e-4])
    assert places(SEARCH, problem) == {"t0": "b"}


def test_steps_on_one_node_count_together() -> None:
    """The second half of a card costs nothing where the first is."""
    problem = valued(sharing(2), *[[0, -1, -1, -2, -2]] * 3)
    assert len(set(places(SEARCH, problem).values())) == 1


@pytest.mark.parametrize("solver", [GREEDY, SEARCH_LONGRUN], ids=lambda each: each.name)
def test_the_answer_is_told_without_it(solver: Solver) -> None:
    """Metrics are those of the composite; a solver that does not look at it decides as before."""
    problem = valued(sharing(2), *[[0, -1, -1, -2, -2]] * 3)
    found = solver.solve(problem)
    assert found.plan is not None
    assert found.metrics is not None
    assert found.metrics.composite <= 1
    if solver is GREEDY:
        assert found.plan == solver.solve(sharing(2)).plan


def test_none_is_as_good_as_no_value_at_all() -> None:
    rng = np.random.default_rng(3)
    for seed in range(5):
        used = rng.integers(0, 6, (4, 2)).tolist()
        nodes = [Node(f"n{i}", 8, 8, 2, cpu_used=cpu, memory_used=memory) for i, (cpu, memory) in enumerate(used)]
        links = [Link(f"n{i}", f"n{j}", 10) for i, j in product(range(4), repeat=2) if i != j]
        tasks = [Task(f"t{i}", 1, 1, 1) for i in range(3)]
        problem = Problem.make(Cluster.make(nodes, links), tasks, [Flow("t0", "t1", 1, 6), Flow("t1", "t2", 1, 6)])
        nothing = valued(problem, *[[0.0] * 4] * 4, per_card=1.0)
        one, other = SEARCH.solve(problem, seed=seed), SEARCH.solve(nothing, seed=seed)
        assert one.metrics is not None
        assert other.metrics is not None
        assert other.metrics.composite == pytest.approx(one.metrics.composite, abs=1e-9)


def test_the_best_of_all_placements_is_found() -> None:
    """Of a few nodes each placement is worked out by hand."""
    rng = np.random.default_rng(5)
    for seed in range(10):
        used = rng.integers(0, 5, 3).tolist()
        cluster = Cluster.make([Node(f"n{i}", 8, 8, 2, cpu_used=each) for i, each in enumerate(used)], [])
        problem = sharing(3, cluster)
        change = -np.cumsum(np.c_[np.zeros(3), rng.random((3, 3)) * 0.2], axis=1)
        problem = replace(problem, card_value=CardValue(change, 2.0))

        def worth(nodes: tuple[int, ...], problem: Problem = problem, change: np.ndarray = change) -> float:
            count = np.bincount(nodes, minlength=3)
            spread = load_imbalance(problem, list(nodes), [], [])
            return 0.5 * (1 - spread) + 0.5 + float(change[np.arange(3), count].sum())

        best = max(worth(nodes) for nodes in product(range(3), repeat=3))
        plan = SEARCH.solve(problem, seed=seed).plan
        assert plan is not None
        found = tuple(cluster.topology.node_index[node] for node in plan.assignments.values())
        assert worth(found) == pytest.approx(best, abs=1e-9)
