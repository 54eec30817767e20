"""The least cut, against every answer that there is."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from application_graphs import line, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ces_core.decomposition.clusters import clusters
from ces_core.decomposition.graph import (
    Division,
    Edge,
    Graph,
    IndivisibleError,
    Integers,
    Limits,
    Vertex,
    division,
    even_limits,
)
from ces_core.decomposition.optimal import LARGEST, optimal
from ces_core.integer_programme import Programme, Solution


def least_cut(asked: Division, parts: int) -> float:
    """By trying all."""
    cuts = [
        asked.cut(part)
        for each in product(range(parts), repeat=asked.size)
        if int((part := np.array(each)).max()) + 1 == parts and not asked.broken(part)
    ]
    return min(cuts)


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 999), parts=st.integers(2, 3), archs=st.integers(0, 2))
def test_it_is_the_least_of_all_and_proven(seed: int, parts: int, archs: int) -> None:
    graph = random_graph(6, seed, archs=archs)
    asked = division(graph, even_limits(graph, parts))
    try:
        found = optimal(asked, parts, limit_s=60)
    except IndivisibleError:
        with pytest.raises(ValueError, match="empty"):
            least_cut(asked, parts)
        return
    assert asked.broken(found.part) == []
    assert asked.cut(found.part) == pytest.approx(least_cut(asked, parts))
    assert found.bound == pytest.approx(asked.cut(found.part))
    assert asked.cut(found.part) <= asked.cut(clusters(asked, parts)) + 1e-9


def every_division(size: int, parts: int) -> NDArray[np.int8]:
    """All ways of dividing into so many parts, each once, shape (ways, vertices)."""
    rows = np.zeros((1, 1), np.int8)
    for left in range(size - 2, -1, -1):
        more = [
            np.column_stack([rows[some], np.full(some.sum(), part, np.int8)])
            for part in range(parts)
            if (some := rows.max(axis=1) + 1 >= part).any()
        ]
        rows = np.concatenate(more)
        rows = rows[rows.max(axis=1) + 1 + left >= parts]
    return rows[rows.max(axis=1) == parts - 1]


def tight(seed: int) -> tuple[Division, int]:
    """8 to 11 vertices whose parts hold 1.1 to 1.4 times an even share."""
    rng = np.random.default_rng(seed)
    size, parts = int(rng.integers(8, 12)), int(rng.integers(3, 5))
    traffic: dict[tuple[int, int], float] = {}
    for i in range(1, size):
        traffic[int(rng.integers(i)), i] = float(rng.integers(1000, 20000))
    for _ in range(size // 3):
        a, b = sorted(rng.choice(size, 2, replace=False).tolist())
        traffic[a, b] = float(rng.integers(1000, 20000))
    vertices = tuple(Vertex(f"v{i}", float(rng.integers(200, 900))) for i in range(size))
    cpu = [each.cpu for each in vertices]
    bound = max(float(int(sum(cpu) / parts * rng.uniform(1.1, 1.4))), *cpu)
    edges = tuple(Edge(a, b, rate, rate) for (a, b), rate in traffic.items())
    return division(Graph("tight", vertices, edges), Limits(cpu=bound)), parts


def least_of(asked: Division, ways: NDArray[np.int8], parts: int) -> float | None:
    """The least cut of these ways, of those that keep to the capacity of CPU; None where none does."""
    fits = np.all([(ways == part) @ asked.amounts[0] <= asked.ceiling[0] for part in range(parts)], axis=0)
    cuts = (ways[fits][:, asked.ends[:, 0]] != ways[fits][:, asked.ends[:, 1]]) @ asked.traffic
    return float(cuts.min()) if len(cuts) else None


def test_tight_capacities_are_solved_and_proven() -> None:
    """12 and 1052 once lost all their answers to HiGHS's presolve, by ends of rows that were a little above 0."""
    ways: dict[tuple[int, int], NDArray[np.int8]] = {}
    solved = 0
    for seed in (*range(30), 1052):
        asked, parts = tight(seed)
        key = asked.size, parts
        if key not in ways:
            ways[key] = every_division(*key)
        least = least_of(asked, ways[key], parts)
        if least is None:
            with pytest.raises(IndivisibleError):
                optimal(asked, parts, limit_s=60)
            continue
        found = optimal(asked, parts, limit_s=60)
        assert asked.broken(found.part) == []
        assert (asked.cut(found.part), found.bound) == (pytest.approx(least), pytest.approx(least, rel=1e-6)), seed
        solved += 1
    assert solved > 20


def test_what_presolve_cuts_off_is_solved_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, parts = tight(12)
    solve = Programme.solve
    asked_for: list[bool] = []

    def lost(self: Programme, limit_s: float, *, presolve: bool = True) -> Solution:
        asked_for.append(presolve)
        return Solution(None, np.inf, True) if presolve else solve(self, limit_s, presolve=False)

    monkeypatch.setattr(Programme, "solve", lost)
    found = optimal(asked, parts, limit_s=60)
    assert asked_for == [True, False]
    assert found.bound == pytest.approx(asked.cut(found.part))


def test_traffic_may_span_many_orders_of_magnitude() -> None:
    """A pair that is never cut must not drown the others: as if the two were one vertex."""
    traffic = [1e13, 3.0, 1.0, 2.0, 5.0, 1.0]
    graph = line(traffic)
    asked = division(graph, Limits(cpu=300))
    found = optimal(asked, 3, limit_s=60)
    assert asked.cut(found.part) == 2.0
    assert found.bound == 2.0


def test_a_bound_without_a_known_answer_is_no_more_than_the_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packing finds none, so that traffic is counted by the heaviest pair."""

    def none(*args: object, **more: object) -> Integers:
        raise IndivisibleError("parts", "no way was found")

    monkeypatch.setattr("ces_core.decomposition.optimal.clusters", none)
    asked = division(line([1e8, 3.0, 1.0, 2.0, 5.0, 1.0]), Limits(cpu=300))
    found = optimal(asked, 3, limit_s=60)
    assert asked.broken(found.part) == []
    assert found.bound <= 2.0


def test_a_bound_before_the_optimum_is_found_is_true() -> None:
    """The bound of a search that is cut short is no more than what a long one proves."""
    graph = random_graph(12, 1, chords=18)
    asked = division(graph, even_limits(graph, 4))
    proven = optimal(asked, 4, limit_s=120)
    assert proven.bound == asked.cut(proven.part)
    for limit_s in (0.0, 0.05, 0.2):
        found = optimal(asked, 4, limit_s=limit_s)
        assert asked.broken(found.part) == []
        assert 0 <= found.bound <= proven.bound * (1 + 1e-6)
    assert optimal(asked, 4, limit_s=0.0).bound == 0, "nothing is claimed that was not looked for"


def test_one_part_and_one_for_each_vertex_need_no_search() -> None:
    asked = division(line([3.0, 4.0]), Limits())
    assert optimal(asked, 1, limit_s=1).bound == 0
    assert optimal(asked, 3, limit_s=1).bound == 7


def test_large_graphs_are_refused_with_another_way() -> None:
    with pytest.raises(IndivisibleError, match="use clusters"):
        optimal(division(line([1.0] * LARGEST), Limits()), 4, limit_s=1)


def test_dense_graphs_are_refused_before_they_are_built() -> None:
    edges = tuple(Edge(a, b, 1.0, 1.0) for a in range(130) for b in range(a + 1, 130))
    graph = Graph("dense", tuple(Vertex(f"v{i}", 100.0) for i in range(130)), edges)
    with pytest.raises(IndivisibleError, match="300,000 are the most; use clusters"):
        optimal(division(graph, Limits()), 4, limit_s=0.1)


def test_nothing_found_in_time_is_not_said_to_be_impossible(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(self: Programme, limit_s: float, *, presolve: bool = True) -> Solution:
        return Solution(None, np.inf, False)

    monkeypatch.setattr(Programme, "solve", late)
    with pytest.raises(IndivisibleError, match="found in 1 s") as told:
        optimal(division(line([1.0] * 3), Limits(cpu=100)), 2, limit_s=1)
    assert told.value.field == "time"


def test_twenty_parts_are_proven() -> None:
    graph = random_graph(30, 2, chords=6)
    asked = division(graph, even_limits(graph, 20))
    found = optimal(asked, 20, limit_s=10)
    assert asked.broken(found.part) == []
    assert found.bound == pytest.approx(asked.cut(found.part))
