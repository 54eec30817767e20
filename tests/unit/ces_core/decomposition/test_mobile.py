"""What is near the user."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import pytest
from application_graphs import line, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_core.decomposition.graph import Graph, IndivisibleError, Limits, division
from ces_core.decomposition.mobile import mobile
from ces_core.integer_programme import Programme, Solution


def marked(graph: Graph, near: dict[int, bool], **states: float) -> Graph:
    told = enumerate(graph.vertices)
    vertices = (replace(each, near=near.get(i), state=states.get(each.name, 0.0)) for i, each in told)
    return replace(graph, vertices=tuple(vertices))


@settings(max_examples=8, deadline=None)
@given(size=st.integers(3, 12), seed=st.integers(0, 999))
def test_without_bounds_it_is_the_minimum_cut(size: int, seed: int) -> None:
    graph = marked(random_graph(size, seed), {0: True, size - 1: False})
    asked = division(graph, Limits())
    net = nx.Graph()
    for (a, b), traffic in zip(asked.ends.tolist(), asked.traffic.tolist(), strict=True):
        net.add_edge(a, b, capacity=traffic)
    found = mobile(graph, asked, 2, most_state=None, limit_s=30)
    assert found.near_cut == pytest.approx(nx.minimum_cut_value(net, 0, size - 1))
    assert found.bound == found.near_cut
    assert found.part[0] == 0
    assert found.part[size - 1] == 1
    assert asked.broken(found.part) == []


def test_state_that_follows_the_user_is_bounded() -> None:
    graph = marked(line([9.0, 5.0, 2.0, 7.0]), {0: True, 4: False}, v1=3.0, v2=4.0)
    asked = division(graph, Limits())
    free = mobile(graph, asked, 2, most_state=None, limit_s=10)
    bound = mobile(graph, asked, 2, most_state=5.0, limit_s=10)
    assert (free.part.tolist(), free.near_cut, free.state) == ([0, 0, 0, 1, 1], 2, 7)
    assert (bound.part.tolist(), bound.near_cut, bound.state) == ([0, 0, 1, 1, 1], 5, 3)


def test_the_near_part_holds_no_more_than_any_other() -> None:
    graph = marked(line([9.0, 5.0, 2.0, 7.0]), {0: True, 4: False})
    asked = division(graph, Limits(cpu=200))
    found = mobile(graph, asked, 3, most_state=None, limit_s=10)
    assert found.part.tolist()[:2] == [0, 0]
    assert asked.broken(found.part) == []
    assert int(found.part.max()) == 2


GIB = 2**30


@pytest.mark.parametrize("more", [5, 500, 1500, 4000])
def test_capacities_are_kept_to_the_byte(more: int) -> None:
    """A millionth of 4 GiB is 4 KiB: so much HiGHS lets a row pass its end."""
    graph = marked(line([1000.0, 1.0]), {0: True})
    sizes = (2.0 * GIB, 2.0 * GIB + more, 1.0)
    vertices = tuple(replace(each, memory=size) for each, size in zip(graph.vertices, sizes, strict=True))
    asked = division(replace(graph, vertices=vertices), Limits(memory=4.0 * GIB))
    found = mobile(replace(graph, vertices=vertices), asked, 2, most_state=None, limit_s=10)
    assert asked.broken(found.part) == []
    assert found.part[1] == 1
    assert found.bound <= found.near_cut


@pytest.mark.parametrize("more", [-1, 0, 1, 1500])
def test_state_is_kept_to_the_byte(more: int) -> None:
    graph = marked(line([1000.0, 1.0]), {0: True}, v0=2.0 * GIB, v1=2.0 * GIB + more)
    found = mobile(graph, division(graph, Limits()), 2, most_state=4.0 * GIB, limit_s=10)
    assert found.state <= 4 * GIB
    assert (found.part[1] == 0) == (more <= 0)


def test_a_pair_that_is_never_cut_drowns_no_other() -> None:
    graph = marked(line([1e13, 5.0, 2.0, 7.0]), {0: True, 4: False})
    found = mobile(graph, division(graph, Limits()), 2, most_state=None, limit_s=10)
    assert (found.near_cut, found.bound) == (2, 2)


@pytest.mark.parametrize(
    ("near", "parts", "state", "field"),
    [
        ({}, 2, None, "near"),
        ({0: True}, 1, None, "parts"),
        ({1: True, 4: False}, 2, 1.0, "state"),
        (dict.fromkeys(range(5), True), 2, None, "far"),
    ],
)
def test_what_cannot_be_says_which_wish_is_to_change(
    near: dict[int, bool], parts: int, state: float | None, field: str
) -> None:
    graph = marked(line([9.0, 5.0, 2.0, 7.0]), near, v1=3.0)
    with pytest.raises(IndivisibleError) as told:
        mobile(graph, division(graph, Limits()), parts, most_state=state, limit_s=10)
    assert told.value.field == field


def test_two_architectures_near_the_user_are_told() -> None:
    graph = marked(line([9.0, 5.0]), {0: True, 1: True})
    archs = ("arm64", "amd64", None)
    vertices = tuple(replace(each, arch=arch) for each, arch in zip(graph.vertices, archs, strict=True))
    graph = replace(graph, vertices=vertices)
    with pytest.raises(IndivisibleError, match="different architectures") as told:
        mobile(graph, division(graph, Limits()), 2, most_state=None, limit_s=10)
    assert told.value.field == "arch"


def test_nothing_found_in_time_is_not_said_to_be_impossible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Programme, "solve", lambda self, limit_s: Solution(None, float("inf"), False))
    graph = marked(random_graph(6, 1), {0: True})
    with pytest.raises(IndivisibleError, match="found in 3 s") as told:
        mobile(graph, division(graph, Limits()), 2, most_state=None, limit_s=3)
    assert told.value.field == "time"
