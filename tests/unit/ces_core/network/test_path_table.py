"""Paths between pairs of nodes, their order, and what they load."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from core_instances import topology_of
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_core.model.path import Path
from ces_core.network import path_table as tables
from ces_core.network.cache import network_of, paths_of
from ces_core.network.graph import Network
from ces_core.network.least_delay import LeastDelayPaths
from ces_core.network.path_table import PathTable

Edges = list[tuple[int, int]]


def _both_ways(*wires: str) -> list[tuple[str, str, str | None]]:
    return [(a, b, None) for wire in wires for a, b in ((wire[0], wire[1]), (wire[1], wire[0]))]


def _network(nodes: int, edges: Edges, media: list[int] | None = None) -> Network:
    return Network(nodes, [a for a, _ in edges], [b for _, b in edges], media or [-1] * len(edges))


@st.composite
def networks(draw: st.DrawFn) -> tuple[int, Edges, list[int]]:
    """Nodes, directed links in any order, and the media of the links."""
    nodes = draw(st.integers(2, 7))
    pairs = [(a, b) for a in range(nodes) for b in range(nodes) if a != b]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=22))
    media = draw(st.lists(st.integers(-1, 1), min_size=len(edges), max_size=len(edges)))
    return nodes, edges, media


def _simple_paths(nodes: int, edges: Edges, src: int, dst: int) -> list[tuple[int, ...]]:
    """All simple paths as links: by length, then by the first link that differs."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from((a, b, {"link": i}) for i, (a, b) in enumerate(edges))
    paths = nx.all_simple_edge_paths(graph, src, dst) if src != dst else [[]]
    return sorted((tuple(graph.edges[hop]["link"] for hop in path) for path in paths), key=lambda p: (len(p), p))


def test_a_square_has_two_ways_across() -> None:
    topology = topology_of("abcd", _both_ways("ab", "bd", "ac", "cd"))
    paths = paths_of(topology).between(0, 3)
    assert [path.nodes for path in paths] == [(0, 1, 3), (0, 2, 3)]
    assert [path.links for path in paths] == [(0, 2), (4, 6)]
    assert paths_of(topology).between(2, 2) == (Path((2,), (), ()),)


def test_links_are_directed() -> None:
    topology = topology_of("abc", [("a", "b", None), ("b", "c", None), ("c", "a", None)])
    assert [path.nodes for path in paths_of(topology).between(1, 0)] == [(1, 2, 0)]
    one_way = topology_of("ab", [("a", "b", None)])
    assert paths_of(one_way).between(1, 0) == ()
    assert paths_of(one_way).hops_from(1).tolist() == [-1, 0]
    assert paths_of(one_way).hops_to(1).tolist() == [1, 0]


def test_a_medium_is_loaded_once_per_link_that_shares_it() -> None:
    topology = topology_of("abc", [("a", "b", "air"), ("b", "c", "air")], ["air"])
    assert paths_of(topology).between(0, 2)[0].loads == ((0, 1), (1, 1), (2, 2))
    flat = paths_of(topology).flat(np.array([0, 2]))
    assert flat.resource.tolist() == [0, 1, 2]
    assert flat.times.tolist() == [1.0, 1.0, 2.0]


@settings(deadline=None)
@given(network=networks(), most=st.sampled_from([1, 2, 32]))
def test_all_ties_are_found_in_a_fixed_order(network: tuple[int, Edges, list[int]], most: int) -> None:
    nodes, edges, media = network
    table = PathTable(_network(nodes, edges, media), most=most)
    for a in range(nodes):
        for b in range(nodes):
            every = _simple_paths(nodes, edges, a, b)
            ties = [path for path in every if len(path) == len(every[0])]
            assert [path.links for path in table.between(a, b)] == ties[:most]
            assert table.hops_to(b)[a] == table.hops_from(a)[b] == (len(every[0]) if every else -1)
            pair = table.flat(np.array([a, b])).truncated.reshape(2, 2)
            assert pair[0, 1] == (a != b and len(ties) > most)
            assert table.truncated(np.array([a, b])) == pair.any()


@settings(deadline=None)
@given(network=networks(), k=st.integers(1, 12), patience=st.sampled_from([0, 1, tables.PATIENCE]))
def test_the_k_shortest_simple_paths_come_by_length(
    network: tuple[int, Edges, list[int]], k: int, patience: int
) -> None:
    nodes, edges, media = network
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "PATIENCE", patience)  # both ways to them lead to the same
        table = PathTable(_network(nodes, edges, media), k=k)
        for a in range(nodes):
            for b in range(nodes):
                assert [path.links for path in table.between(a, b)] == _simple_paths(nodes, edges, a, b)[:k]
        assert not table.truncated(np.arange(nodes))


@settings(deadline=None)
@given(network=networks(), k=st.sampled_from([None, 1, 3]), data=st.data())
def test_flat_paths_are_those_between_pairs(
    network: tuple[int, Edges, list[int]], k: int | None, data: st.DataObject
) -> None:
    nodes, edges, media = network
    table = PathTable(_network(nodes, edges, media), k=k)
    chosen = data.draw(st.lists(st.integers(0, nodes - 1), unique=True))
    flat = table.flat(np.array(chosen, dtype=np.int64))
    path = 0
    for pair, (a, b) in enumerate((a, b) for a in chosen for b in chosen):
        assert flat.pair_first[pair] == path
        for expected in table.between(a, b):
            part = slice(flat.path_first[path], flat.path_first[path + 1])
            assert list(zip(flat.resource[part], flat.times[part], strict=True)) == list(expected.loads)
            path += 1
    assert flat.pair_first[-1] == path == len(flat.path_first) - 1
    assert flat.path_first[-1] == len(flat.resource)


@settings(deadline=None)
@given(network=networks(), k=st.sampled_from([None, 4]))
def test_loads_are_the_links_and_how_often_each_medium_is_crossed(
    network: tuple[int, Edges, list[int]], k: int | None
) -> None:
    nodes, edges, media = network
    table = PathTable(_network(nodes, edges, media), k=k)
    for a in range(nodes):
        for b in range(nodes):
            for path in table.between(a, b):
                assert [(path.nodes[i], path.nodes[i + 1]) for i in range(len(path.links))] == [
                    edges[link] for link in path.links
                ]
                crossed = [media[link] for link in path.links]
                assert dict(path.loads) == dict.fromkeys(path.links, 1) | {
                    len(edges) + medium: crossed.count(medium) for medium in set(crossed) - {-1}
                }


def test_hops_are_right_for_many_nodes_at_once() -> None:
    graph = nx.gnm_random_graph(150, 450, seed=1, directed=True)
    network = _network(150, list(graph.edges))
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    expected = [[lengths[a].get(b, -1) for b in range(150)] for a in range(150)]
    assert network.hops_from.block(range(150)).tolist() == expected
    assert network.hops_to.block(range(150)).T.tolist() == expected


def test_a_choice_of_nodes_costs_the_hops_of_these_alone() -> None:
    graph = nx.gnm_random_graph(2000, 8000, seed=1).to_directed()
    network = _network(2000, list(graph.edges))
    chosen = np.arange(0, 2000, 50)
    PathTable(network).flat(chosen)
    assert {node for node, _ in network.hops_to.kept()} == set(chosen.tolist())
    assert not network.hops_from


def test_more_nodes_than_memory_can_bear_are_refused() -> None:
    nodes = tables.MOST_NODES + 1
    with pytest.raises(ValueError, match="choose at most 2000"):
        PathTable(_network(nodes, [(0, 1)])).flat(np.arange(nodes))


def test_ties_are_bounded_and_say_so() -> None:
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(6, 6)).to_directed()
    table = PathTable(_network(36, list(grid.edges)), most=10)
    assert len(set(table.between(0, 35))) == 10
    assert table.truncated(np.array([0, 35]))
    assert not table.truncated(np.array([0, 1, 6]))


@pytest.mark.parametrize("delays", [False, True])
def test_whether_k_shortest_paths_are_all_is_known_without_any(delays: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    topology = topology_of("abcd", _both_ways("ab", "bd", "ac", "cd"))
    network, k = network_of(topology), 2
    table = LeastDelayPaths(network, topology, np.ones(8), k) if delays else PathTable(network, k=k)
    assert not table.flat(np.arange(4)).truncated.any()
    monkeypatch.setattr(type(table), "_walk", lambda *_: pytest.fail("paths were sought"))
    assert not table.truncated(np.arange(3))


def test_simple_paths_are_found_past_a_thicket_of_dead_ends() -> None:
    # Twelve nodes, all linked with each other, hang on node 0: a search that enters them has no way on.
    edges = [(0, 1), (1, 2), (0, 3), (3, 2)] + [(a, b) for a in (0, *range(4, 16)) for b in range(4, 16) if a != b]
    edges += [(a, 0) for a in range(4, 16)]
    paths = PathTable(_network(16, edges), k=3).between(0, 2)
    assert [path.nodes for path in paths] == [(0, 1, 2), (0, 3, 2)]


def test_longer_paths_go_around() -> None:
    ring = [(a, (a + step) % 9) for a in range(9) for step in (1, -1)]
    paths = PathTable(_network(9, ring), k=5).between(0, 3)
    assert [path.nodes for path in paths] == [(0, 1, 2, 3), (0, 8, 7, 6, 5, 4, 3)]


@pytest.mark.parametrize("k", [None, 2])
@pytest.mark.parametrize("nodes", [1, 3, 120])
def test_warming_changes_no_answer(nodes: int, k: int | None) -> None:
    edges = [(a, b) for a in range(nodes) for b in (a - 1, a + 1) if 0 <= b < nodes]
    cold, warm = PathTable(_network(nodes, edges), k=k), PathTable(_network(nodes, edges), k=k)
    warm.warm()
    assert [warm.between(0, b) for b in range(nodes)] == [cold.between(0, b) for b in range(nodes)]


def test_what_is_kept_is_bounded_and_forgotten_answers_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "KEPT_FLAT", 1)
    monkeypatch.setattr(tables, "KEPT_PATHS", 1)
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 3)).to_directed()
    table = PathTable(_network(9, list(grid.edges)))
    first, flat = table.between(0, 8), table.flat(np.array([0, 8]))
    assert table.between(0, 8) is first  # the latest is kept, whatever its size
    table.between(8, 0)
    table.flat(np.array([1, 2]))
    again = table.between(0, 8)
    assert again == first
    assert again is not first
    assert all(np.array_equal(a, b) for a, b in zip(table.flat(np.array([0, 8])), flat, strict=True))
