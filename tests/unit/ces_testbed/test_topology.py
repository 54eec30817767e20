"""Topology files: what they mean, and how a wrong one is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from ces_testbed.topology import BadTopology, default_topology, load_topology, parse_topology

EXAMPLES = Path(__file__).parents[3] / "examples" / "topologies"
TESTBEDS = sorted(path for path in EXAMPLES.glob("*.yaml") if "\nnodes:" in path.read_text())  # others: links only
TWO = "nodes: [{name: a, cpu: 1, memory: 1Gi}, {name: b}]\n"


def test_default_is_six_hosts_and_a_switch() -> None:
    topology = default_topology()
    assert [node.name for node in topology.workers] == ["n1", "n2", "n3", "n4", "n5", "n6"]
    assert [node.name for node in topology.nodes if node.is_switch] == ["s1"]
    assert topology.workers[0].cpu == 1000
    assert topology.workers[0].memory == 2**30
    assert len(topology.wires) == 8


@pytest.mark.parametrize("path", TESTBEDS, ids=lambda path: path.stem)
def test_examples_are_valid(path: Path) -> None:
    assert load_topology(path).wires


def test_the_default_is_among_the_examples() -> None:
    assert load_topology(EXAMPLES / "six-hosts.yaml") == default_topology()


def test_two_one_way_links_share_a_wire() -> None:
    topology = parse_topology(
        TWO + "links: [{src: b, dst: a, bandwidth: 1Mbit, both: false}, "
        "{src: a, dst: b, bandwidth: 2Mbit, both: false}]",
        "f",
    )
    assert topology.wires == [("a", "b")]
    assert [link.bandwidth for link in topology.network.links] == [10**6, 2 * 10**6]


def test_a_vxlan_link_needs_no_wire() -> None:
    assert parse_topology(TWO + "links: [{src: a, dst: b, bandwidth: 1Mbit, kind: vxlan}]", "f").wires == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nodes: []", "nodes: "),
        ("nodes: [", "no valid YAML"),
        ("- 1", "topology: "),
        ("nodes: [{name: a b}]", r"nodes\[0\]\.name: use 1 to 63 letters"),
        ("nodes: [{name: a-dp}]", "data plane"),
        ("nodes: [{name: a}, {name: a}]", "the name 'a' is used twice"),
        ("nodes: [{name: a, cpu: 1}]", "cpu and memory, or neither"),
        ("nodes: [{name: a, cpus: 1}]", r"nodes\[0\]\.cpus: unknown field"),
        ("nodes: [{name: a, labels: {x: 'p,q'}}]", "neither ',' nor '='"),
        (TWO + "links: [{src: a, dst: c, bandwidth: 1Mbit}]", r"links\[0\]: no node is named 'c'; nodes are a, b"),
        (TWO + "links: [{src: a, dst: a, bandwidth: 1Mbit}]", "two different nodes"),
        (TWO + "links: [{src: a, dst: b, bandwidth: fast}]", r"links\[0\]\.bandwidth: 'fast' is no bandwidth"),
        (
            TWO + "links: [{src: a, dst: b, bandwidth: 1Mbit}, {src: b, dst: a, bandwidth: 1Mbit}]",
            r"links\[1\]: a second link from b to a",
        ),
        (TWO + "links: [{src: a, dst: b, bandwidth: 1Mbit, medium: m}]", "no medium is named 'm'"),
    ],
)
def test_a_wrong_file_is_refused_by_name_and_field(text: str, message: str) -> None:
    with pytest.raises(BadTopology, match=message) as caught:
        parse_topology(text, "file.yaml")
    assert str(caught.value).startswith("file.yaml: ")


def test_a_file_that_lies_too_deep_is_refused() -> None:
    with pytest.raises(BadTopology, match=r"deep\.yaml: no valid YAML: .*deep within each other"):
        parse_topology("nodes: " + "[" * 2000 + "]" * 2000, "deep.yaml")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadTopology, match=r"none\.yaml: cannot be read"):
        load_topology(tmp_path / "none.yaml")
