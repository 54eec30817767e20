"""Max-min fair rates: known cases, and the property that defines them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_core.bandwidth.max_min import max_min_fair
from ces_core.model.parts import Flow, Link, Node, Task
from ces_core.model.path import Path
from ces_core.model.problem import Cluster, Problem
from ces_core.network.cache import paths_of

NEAR = 1e-9


def chain(
    capacities: Sequence[float], flows: Sequence[tuple[int, int, float, float]], air: float | None = None
) -> tuple[Problem, list[Path]]:
    """Nodes in a line with one task each; link i leads from node i to i + 1, all over the air where ``air`` is given.
    Flows are (first node, last node, minimum, maximum), each between tasks of its own."""
    names = [f"n{i}" for i in range(len(capacities) + 1)]
    links = [
        Link(names[i], names[i + 1], capacity, medium=None if air is None else "air")
        for i, capacity in enumerate(capacities)
    ]
    cluster = Cluster.make([Node(n, cpu=1) for n in names], links, {} if air is None else {"air": air})
    tasks = [Task("idle"), *(Task(f"{end}{f}") for f in range(len(flows)) for end in ("s", "d"))]
    asked = [Flow(f"s{f}", f"d{f}", low, high) for f, (_, _, low, high) in enumerate(flows)]
    problem = Problem.make(cluster, tasks, asked)
    paths = [paths_of(cluster.topology).between(first, last)[0] for first, last, _, _ in flows]
    return problem, paths


def test_the_textbook_line() -> None:
    # One long flow and a short one on each link: the first link's share decides the long one, the rest is left over.
    problem, paths = chain([10, 30], [(0, 2, 0, 100), (0, 1, 0, 100), (1, 2, 0, 100)])
    assert max_min_fair(problem, paths) == pytest.approx([5, 5, 25])


def test_maximums_leave_their_share_to_others() -> None:
    problem, paths = chain([30], [(0, 1, 0, 4), (0, 1, 0, 100), (0, 1, 0, 100)])
    assert max_min_fair(problem, paths) == pytest.approx([4, 13, 13])


def test_a_high_minimum_waits_until_the_others_have_caught_up() -> None:
    problem, paths = chain([30], [(0, 1, 20, 100), (0, 1, 0, 100)])
    assert max_min_fair(problem, paths) == pytest.approx([20, 10])
    assert max_min_fair(problem, paths, minimums=False) == pytest.approx([15, 15])
    roomy, paths = chain([50], [(0, 1, 20, 100), (0, 1, 0, 100)])
    assert max_min_fair(roomy, paths) == pytest.approx([25, 25])


def test_a_medium_is_shared_by_crossings() -> None:
    problem, paths = chain([100, 100], [(0, 2, 0, 100), (0, 1, 0, 100)], air=30)
    assert max_min_fair(problem, paths) == pytest.approx([10, 10])


def test_minimums_that_do_not_fit_and_flows_within_a_node() -> None:
    assert max_min_fair(*chain([30], [(0, 1, 20, 100), (0, 1, 11, 100)])) is None
    assert max_min_fair(*chain([30], [(1, 1, 20, 1e9)])) == [1e9]
    assert max_min_fair(*chain([30], [])) == []


amounts = st.integers(0, 60).map(float) | st.floats(0, 60).map(lambda value: round(value, 2))


@st.composite
def served(draw: st.DrawFn) -> tuple[Problem, list[Path]]:
    capacities = draw(st.lists(amounts, min_size=1, max_size=4))
    flows = []
    for _ in range(draw(st.integers(1, 7))):
        first, last = sorted(draw(st.tuples(st.integers(0, len(capacities)), st.integers(0, len(capacities)))))
        low, high = sorted(draw(st.tuples(amounts.map(lambda value: value / 4), amounts)))
        flows.append((first, last, low, high))
    return chain(capacities, flows, draw(st.none() | amounts))


@settings(max_examples=300, deadline=None)
@given(case=served(), minimums=st.booleans())
def test_no_rate_can_grow_without_taking_from_one_no_better_off(
    case: tuple[Problem, list[Path]], minimums: bool
) -> None:
    problem, paths = case
    low = problem.flow_min.tolist() if minimums else [0.0] * len(paths)
    high = problem.flow_max.tolist()
    free = problem.cluster.bandwidth_free.tolist()

    def load(rates: Sequence[float], resource: int) -> float:
        return sum(rates[f] * dict(path.loads).get(resource, 0) for f, path in enumerate(paths))

    rates = max_min_fair(problem, paths, minimums=minimums)
    if rates is None:
        assert any(load(low, r) > room for r, room in enumerate(free))
        return
    assert all(load(rates, r) <= room + NEAR for r, room in enumerate(free))
    for f, rate in enumerate(rates):
        assert low[f] <= rate <= high[f]
        bottlenecks = [
            r
            for r, _ in paths[f].loads
            if load(rates, r) >= free[r] - NEAR
            and all(
                rates[g] <= low[g] + NEAR or rates[g] <= rate + NEAR
                for g, path in enumerate(paths)
                if r in dict(path.loads)
            )
        ]
        assert rate >= high[f] - NEAR or bottlenecks
