"""Hop-shortest paths, their ties, and what they load."""

from __future__ import annotations

import networkx as nx
import pytest

from ces_core.paths import PathTable
from ces_core.topology import Topology


def _both_ways(*wires: str) -> list[tuple[str, str, str | None]]:
    return [(a, b, None) for wire in wires for a, b in ((wire[0], wire[1]), (wire[1], wire[0]))]


def test_a_square_has_two_ways_across() -> None:
    topology = Topology.of("abcd", _both_ways("ab", "bd", "ac", "cd"))
    paths = topology.paths.between(0, 3)
    assert [path.nodes for path in paths] == [(0, 1, 3), (0, 2, 3)]
    assert [path.links for path in paths] == [(0, 2), (4, 6)]
    assert topology.paths.between(2, 2)[0].links == ()


def test_links_are_directed() -> None:
    topology = Topology.of("abc", [("a", "b", None), ("b", "c", None), ("c", "a", None)])
    assert [path.nodes for path in topology.paths.between(1, 0)] == [(1, 2, 0)]
    one_way = Topology.of("ab", [("a", "b", None)])
    assert one_way.paths.between(1, 0) == ()
    assert one_way.paths.hops_from(1).tolist() == [-1, 0]
    assert one_way.paths.hops_to(1).tolist() == [1, 0]


def test_a_medium_is_loaded_once_per_link_that_shares_it() -> None:
    topology = Topology.of("abc", [("a", "b", "air"), ("b", "c", "air")], ["air"])
    assert topology.paths.between(0, 2)[0].loads == ((0, 1), (1, 1), (2, 2))


@pytest.mark.parametrize("seed", range(5))
def test_all_ties_are_found(seed: int) -> None:
    graph = nx.gnp_random_graph(9, 0.3, seed=seed, directed=True)
    edges = list(graph.edges)
    table = PathTable(9, [a for a, _ in edges], [b for _, b in edges], [-1] * len(edges))
    table.warm()
    for a in range(9):
        for b in range(9):
            expected = {tuple(p) for p in nx.all_shortest_paths(graph, a, b)} if nx.has_path(graph, a, b) else set()
            assert {path.nodes for path in table.between(a, b)} == expected


def test_ties_are_bounded() -> None:
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(6, 6)).to_directed()
    edges = list(grid.edges)
    table = PathTable(36, [a for a, _ in edges], [b for _, b in edges], [-1] * len(edges), max_ties=10)
    assert len(set(table.between(0, 35))) == 10
