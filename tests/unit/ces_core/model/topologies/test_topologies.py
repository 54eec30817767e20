"""Networks by shape and from files."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_core.checker import check
from ces_core.model.errors import ProblemError
from ces_core.model.generate import REGIMES, random_instance
from ces_core.model.instance import read_instance
from ces_core.model.topologies import SHAPES
from ces_core.registry import get_solver


def _graph(instance: dict[str, Any]) -> nx.DiGraph[str]:
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(node["name"] for node in instance["nodes"])
    graph.add_edges_from((link["src"], link["dst"]) for link in instance["links"])
    return graph


def _file(folder: Path, graph: nx.Graph[Any], name: str = "net.graphml") -> str:
    nx.write_graphml(graph, folder / name)
    return str(folder / name)


def _speeds(instance: dict[str, Any]) -> dict[tuple[str, str], float]:
    return {(link["src"], link["dst"]): link["bandwidth"] for link in instance["links"]}


@settings(deadline=None, max_examples=60)
@given(
    topology=st.sampled_from(sorted(SHAPES)),
    nodes=st.integers(1, 150),
    regime=st.sampled_from(sorted(REGIMES)),
    seed=st.integers(0, 5),
)
def test_every_shape_gives_connected_instances_of_every_regime(
    topology: str, nodes: int, regime: str, seed: int
) -> None:
    instance = random_instance(regime, seed, nodes=nodes, topology=topology)
    assert instance == random_instance(regime, seed, nodes=nodes, topology=topology)
    graph = _graph(instance)
    assert nx.is_strongly_connected(graph)
    assert all(graph.has_edge(b, a) for a, b in graph.edges)
    assert sum("cpu" in node for node in instance["nodes"]) == nodes
    scale = REGIMES[regime]
    assert all(100 * scale <= link["bandwidth"] <= 1000 * scale for link in instance["links"])
    read_instance(instance)


def test_a_grid_has_rows_and_columns() -> None:
    graph = _graph(random_instance(nodes=9, topology="grid"))
    square = nx.relabel_nodes(nx.grid_2d_graph(3, 3).to_directed(), lambda at: f"n{3 * at[0] + at[1]}")
    assert set(graph.edges) == set(square.edges)
    # The last row is as long as nodes are left.
    assert set(_graph(random_instance(nodes=5, topology="grid")).to_undirected().edges) == {
        ("n0", "n1"), ("n1", "n2"), ("n3", "n4"), ("n0", "n3"), ("n1", "n4"),
    }  # fmt: skip


@pytest.mark.parametrize(("nodes", "links"), [(1, 0), (2, 2), (3, 6), (10, 20)])
def test_a_ring_closes(nodes: int, links: int) -> None:
    assert len(random_instance(nodes=nodes, topology="ring")["links"]) == links


def test_a_fat_tree_is_the_one_of_the_paper() -> None:
    graph = _graph(random_instance(nodes=16, topology="fat-tree")).to_undirected()
    kinds = ["n", "edge", "agg", "core"]
    assert [sum(name.rstrip("0123456789") == kind for name in graph) for kind in kinds] == [16, 8, 8, 4]
    assert {graph.degree[name] for name in graph if name[0] != "n"} == {4}
    assert {graph.degree[name] for name in graph if name[0] == "n"} == {1}
    assert graph.number_of_edges() == 48
    # Between pods every core switch offers a way.
    assert len(list(nx.all_shortest_paths(graph, "n0", "n2"))) == 4


def test_larger_random_networks_stay_sparse() -> None:
    instance = random_instance(nodes=400)
    assert 8 * 400 <= len(instance["links"]) <= 8 * 400 + 20  # a few more join pieces
    dense = random_instance(nodes=120, link_probability=0.3)
    assert len(dense["links"]) == pytest.approx(0.3 * 120 * 119, rel=0.1)
    # Pairs are drawn evenly: about as many wires among the first half of the nodes as among the second.
    number = {f"n{i}": i for i in range(400)}
    halves = [sum(number[end] < 200 for end in edge) for edge in _graph(instance).edges]
    assert halves.count(2) == pytest.approx(halves.count(0), rel=0.2)


def test_small_instances_are_those_of_earlier_measurements() -> None:
    instance = random_instance("tight", 42)
    assert instance["nodes"][0] == {
        "name": "n0", "cpu": 88.698, "memory": 71.944, "cpu_used": 39.332, "memory_used": 27.263,
    }  # fmt: skip
    assert len(instance["links"]) == 28
    assert instance["links"][0] == {"src": "n0", "dst": "n7", "bandwidth": 161.398}


def test_speeds_of_a_file_become_capacities(tmp_path: Path) -> None:
    graph = nx.Graph()
    graph.add_edge("0", "1", LinkSpeedRaw=1e9)
    graph.add_edge("1", "2", LinkSpeedRaw=155e6)
    graph.add_edge("2", "0", LinkSpeedRaw=2.5e9)
    graph.add_edge("2", "3")  # no speed: the median of the others
    graph.add_edge("3", "3", LinkSpeedRaw=1.0)
    for node, label in enumerate(("Oslo", "Bergen", "Bergen", "Vadso")):
        graph.nodes[str(node)]["label"] = label
    file = _file(tmp_path, graph)
    speeds = _speeds(random_instance("thesis", topology=file))
    expected = {
        ("Oslo", "Bergen-1"): 1000.0,
        ("Bergen-1", "Bergen-2"): 155.0,
        ("Bergen-2", "Oslo"): 2500.0,
        ("Bergen-2", "Vadso"): 577.5,
    }
    assert speeds == expected | {(b, a): speed for (a, b), speed in expected.items()}
    tight = _speeds(random_instance("tight", topology=file))
    assert all(tight[link] == pytest.approx(0.3 * speed) for link, speed in speeds.items())


def test_parallel_edges_add_up_and_directed_ones_keep_their_direction(tmp_path: Path) -> None:
    graph = nx.MultiDiGraph()
    graph.add_edge("a", "b", LinkSpeedRaw=1e8)
    graph.add_edge("a", "b", LinkSpeedRaw=2e8)
    graph.add_edge("b", "a", LinkSpeedRaw=5e6)
    graph.add_edge("b", "c", LinkSpeedRaw=7e6)
    speeds = _speeds(random_instance(topology=_file(tmp_path, graph)))
    assert speeds == {("a", "b"): 300.0, ("b", "a"): 5.0, ("b", "c"): 7.0}
    both = nx.MultiGraph([("a", "b", {"LinkSpeedRaw": 1e6}), ("b", "a", {"LinkSpeedRaw": 2e6})])
    assert _speeds(random_instance(topology=_file(tmp_path, both))) == {("a", "b"): 3.0, ("b", "a"): 3.0}


def test_where_no_edge_has_a_speed_capacities_are_drawn(tmp_path: Path) -> None:
    speeds = _speeds(random_instance("scarce", topology=_file(tmp_path, nx.path_graph(5))))
    assert len(set(speeds.values())) == 8
    assert all(15 <= speed <= 150 for speed in speeds.values())


def test_the_largest_piece_is_taken_and_the_rest_is_named(tmp_path: Path) -> None:
    graph = nx.Graph(pairwise("abcd"))
    graph.add_edge("x", "y")
    graph.add_node("z")
    instance = random_instance(topology=_file(tmp_path, graph))
    assert [node["name"] for node in instance["nodes"]] == ["a", "b", "c", "d"]
    assert instance["left_out"] == ["x", "y", "z"]
    read_instance(instance)


@pytest.mark.parametrize("labels", [("a", "a", "a-1"), ("", "b", "b")])
def test_names_are_unique_whatever_the_labels(tmp_path: Path, labels: tuple[str, ...]) -> None:
    graph = nx.path_graph(3)
    for node, label in enumerate(labels):
        graph.nodes[node]["label"] = label
    instance = random_instance(topology=_file(tmp_path, graph))
    assert len({node["name"] for node in instance["nodes"]}) == 3


def test_jobs_are_placed_on_a_file_s_network(tmp_path: Path) -> None:
    graph = nx.cycle_graph(12)
    nx.set_edge_attributes(graph, 6e8, "LinkSpeedRaw")
    instance = random_instance("scarce", 3, tasks=4, topology=_file(tmp_path, graph))
    result = get_solver().solve(read_instance(instance))
    assert result.feasible
    assert check(instance, result.to_dict()) == []


def _spoilt(folder: Path, speed: object) -> str:
    return _file(folder, nx.Graph([("a", "b", {"LinkSpeedRaw": speed})]))


def test_bad_files_are_named(tmp_path: Path) -> None:
    for speed in (0.0, -5.0, float("nan"), "fast"):
        with pytest.raises(ProblemError, match=r"net.graphml: LinkSpeedRaw of edge a - b must be bit/s above 0"):
            random_instance(topology=_spoilt(tmp_path, speed))
    for text in ("", "no xml", "<graphml/>", "<graphml xmlns='http://graphml.graphdrawing.org/xmlns'><graph><node/>"):
        (tmp_path / "bad.graphml").write_text(text)
        with pytest.raises(ProblemError, match=r"bad.graphml cannot be read as GraphML"):
            random_instance(topology=str(tmp_path / "bad.graphml"))
    with pytest.raises(ProblemError, match="has no nodes"):
        random_instance(topology=_file(tmp_path, nx.Graph()))


def test_files_are_also_found_in_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "topologies" / "topology-zoo"
    folder.mkdir(parents=True)
    _file(folder, nx.path_graph(4), "Line.graphml")
    monkeypatch.setenv("CES_DATA_DIR", str(tmp_path))
    assert len(random_instance(topology="Line.graphml")["nodes"]) == 4
    with pytest.raises(ProblemError, match=r"topology: there is no file Ring.graphml, .*CES_DATA_DIR; .*topology-zoo"):
        random_instance(topology="Ring.graphml")
    monkeypatch.delenv("CES_DATA_DIR")
    with pytest.raises(ProblemError, match=r"CES_DATA_DIR \(which is not set\)"):
        random_instance(topology="Line.graphml")


def test_what_there_is_not_is_said(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=r"topology: must be random, grid, ring, fat-tree or a \.graphml file"):
        random_instance(topology="torus")
    with pytest.raises(ProblemError, match="nodes: there must be at least one, not 0"):
        random_instance(nodes=0, topology="ring")
    with pytest.raises(ProblemError, match="nodes: leave it out"):
        random_instance(nodes=5, topology=_file(tmp_path, nx.path_graph(5)))


@pytest.mark.needs("topologies")
@pytest.mark.parametrize(
    ("name", "nodes", "links"),
    [("Geant2009", 34, 104), ("SwitchL3", 42, 126), ("Karen", 25, 56), ("Uninett2010", 74, 202), ("Grnet", 37, 84)],
)
def test_the_topology_zoo_is_read(name: str, nodes: int, links: int) -> None:
    instance = random_instance("tight", topology=f"{name}.graphml")
    assert (len(instance["nodes"]), len(instance["links"])) == (nodes, links)
    problem = read_instance(instance)
    assert (problem.cluster.link_capacity > 0).all()
    assert check(instance, get_solver().solve(problem).to_dict()) == []


def test_the_topology_file_of_a_cluster_is_refused_with_the_way_to_use_it() -> None:
    with pytest.raises(ProblemError, match=r"docs/research\.md makes a \.graphml file of a topology file"):
        random_instance(topology="two-sites.yaml")
