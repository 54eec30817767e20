"""First answers, and why there is none."""

from __future__ import annotations

import numpy as np
import pytest
from application_graphs import line, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_core.decomposition.graph import Graph, IndivisibleError, Limits, Vertex, division, even_limits
from ces_core.decomposition.packing import at_random, least_parts, no_packing, packed


@settings(max_examples=20, deadline=None)
@given(size=st.integers(2, 16), seed=st.integers(0, 999), parts=st.integers(1, 16), by_traffic=st.booleans())
def test_what_is_found_is_never_above_capacity(size: int, seed: int, parts: int, by_traffic: bool) -> None:
    parts = min(parts, size)
    graph = random_graph(size, seed)
    asked = division(graph, even_limits(graph, parts))
    found = packed(asked, parts, np.random.default_rng(seed), by_traffic=by_traffic)
    assert found is not None, "parts of this size can always be packed, to the emptiest part in any order"
    assert asked.broken(found) == []
    assert int(found.max()) + 1 == parts


def test_random_parts_differ_and_keep_to_capacities() -> None:
    graph = random_graph(12, 3)
    asked = division(graph, even_limits(graph, 3))
    rng = np.random.default_rng(0)
    found = [at_random(asked, 3, rng) for _ in range(5)]
    assert all(asked.broken(each) == [] for each in found)
    assert len({tuple(each) for each in found}) > 1


@pytest.mark.parametrize(
    ("parts", "message"),
    [(9, "9 parts of 6 vertices"), (1, "it takes 3 at least")],
)
def test_why_there_is_no_packing(parts: int, message: str) -> None:
    asked = division(line([1.0] * 5), Limits(cpu=200))
    assert packed(asked, parts, np.random.default_rng(0)) is None
    with pytest.raises(IndivisibleError, match=message):
        raise no_packing(asked, parts)


def test_each_architecture_takes_parts_of_its_own() -> None:
    graph = Graph("two", tuple(Vertex(f"v{i}", 60, arch=("a", "b")[i % 2]) for i in range(4)), ())
    assert least_parts(division(graph, Limits(cpu=1000))) == 2
    assert least_parts(division(graph, Limits(cpu=100))) == 4


def test_two_scarce_resources_are_packed_though_the_largest_would_fit_together() -> None:
    """The two large ones fit into one part by memory, and then nothing holds the CPU of the others."""
    asked = [(2.0, 2.0), (0.5, 2.0), (1.5, 1.0), (1.5, 1.0), (0.8, 0.25), (0.6, 0.5), (0.2, 0.25), (0.1, 0.06)]
    graph = Graph("tight", tuple(Vertex(f"v{i}", cpu, memory) for i, (cpu, memory) in enumerate(asked)), ())
    tight = division(graph, Limits(cpu=4.0, memory=4.0))
    found = packed(tight, 2, np.random.default_rng(0))
    assert found is not None
    assert tight.broken(found) == []
