"""What the map draws as one: groups of nodes, and links between them; and how keys lead along it."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import pytest
from ui_modules import Modules

pytestmark = pytest.mark.needs("browser")

NODES: dict[str, Any] = {
    "a1": {"labels": {"site": "a"}, "cpu": 1000, "cpu_allocated": 500, "cpu_used": 100},
    "a2": {"labels": {"site": "a"}, "cpu": 3000, "cpu_allocated": 2500, "cpu_used": 300, "state": "unreachable"},
    "b1": {"labels": {"site": "b"}, "cpu": 2000, "cpu_allocated": 0},
    "hub": {"cpu": 0, "memory": 0},
}
LINKS = [("a1", "hub"), ("a2", "hub"), ("a1", "a2"), ("b1", "hub"), ("b1", "ghost")]
PLACES = {"a1": [0, 0], "a2": [0, 100], "b1": [200, 0], "hub": [100, 50], "ghost": [300, 0]}

SHOWN = """
const { graphOf } = await load("map/graph");
const { viewOf } = await load("map/view");
const node = (own) => ({ memory: 1, state: "ready", ...own });
const nodes = new Map(Object.entries(given.nodes).map(([name, own]) => [name, node(own)]));
const carries = { bandwidth: 1e8, measured: 8e7, reserved: 1e7, used: 1e6 };
const both = given.links.flatMap(([src, dst]) => [[src, dst], [dst, src]]);
const links = new Map(both.map(([src, dst], index) =>
  [`${src}>${dst}`, { src, dst, ...carries, state: index ? "up" : "down", medium: dst === "hub" ? "air" : null }]));
const places = new Map(Object.entries(given.places));
const view = viewOf(new URLSearchParams(given.query));
const graph = graphOf({ nodes, links, media: new Map([["air", 2e8]]) }, places, view);
"""


def shown(ui: Modules, body: str, query: str = "") -> Any:
    return ui.run(SHOWN + body, nodes=NODES, links=LINKS, places=PLACES, query=query)


def test_every_node_and_each_end_of_a_link_is_a_vertex(ui: Modules) -> None:
    kinds = shown(ui, "return [...graph.vertices.values()].map(({ key, kind, state }) => [key, kind, state]).sort();")
    assert kinds == [
        ["a1", "node", "ready"], ["a2", "node", "unreachable"], ["b1", "node", "ready"], ["ghost", "absent", "absent"],
        ["hub", "switch", "ready"],
    ]  # fmt: skip


def test_the_way_back_is_known_and_a_measured_capacity_counts(ui: Modules) -> None:
    twins, capacity = shown(
        ui,
        "return [[...graph.edges.values()].every(({ from, to, twin }) => twin.from === to && twin.to === from),"
        " graph.edges.get('b1>hub').capacity];",
    )
    assert (twins, capacity) == (True, 8e7)


def test_nodes_with_the_same_label_are_drawn_as_one(ui: Modules) -> None:
    group, edges, area = shown(
        ui,
        """const group = graph.vertices.get("site=a");
        const { kind, name, members, state, ill, allocated, used, x, y } = group;
        const told = ({ key, capacity, down, links }) => [key, capacity, down, links.length];
        const same = graph.vertexOf.get("a2") === group;
        const found = { kind, name, members, state, ill, allocated, used, x, y, same };
        return [found, [...graph.edges.values()].map(told).sort(), [...graph.areas.keys()]];""",
        "by=site&fold=a",
    )
    assert group == {
        "kind": "group", "name": "a", "members": ["a1", "a2"], "state": "unreachable", "ill": 1,
        "allocated": 0.75, "used": 0.1, "x": 0, "y": 50, "same": True,
    }  # fmt: skip
    # Both links of the group as one; the one within it is none, and of the two to the hub one is down.
    assert edges == [
        ["b1>ghost", 8e7, 0, 1], ["b1>hub", 8e7, 0, 1], ["ghost>b1", 8e7, 0, 1], ["hub>b1", 8e7, 0, 1],
        ["hub>site=a", 1.6e8, 0, 2], ["site=a>hub", 1.6e8, 1, 2],
    ]  # fmt: skip
    assert area == ["a", "b"]


def test_all_are_folded_but_those_that_are_named(ui: Modules) -> None:
    assert shown(ui, "return [...graph.vertices.keys()].sort();", "by=site&fold=*&fold=b") == [
        "b1", "ghost", "hub", "site=a",
    ]  # fmt: skip


def test_what_lies_a_few_hops_around_a_node(ui: Modules) -> None:
    names = "return [...graph.vertices.keys()].sort();"
    assert shown(ui, names, "around=ghost&hops=1") == ["b1", "ghost"]
    assert shown(ui, names, "around=ghost&hops=2") == ["b1", "ghost", "hub"]


def test_links_that_are_not_drawn_load_their_medium_as_well(ui: Modules) -> None:
    medium = shown(
        ui,
        "const { bandwidth, reserved, edges } = graph.media.get('air'); return [bandwidth, reserved, edges.length];",
        "around=b1&hops=1",
    )
    assert medium == [2e8, 3e7, 1]


def test_labels_by_which_one_may_group_come_the_most_common_first(ui: Modules) -> None:
    assert shown(ui, "return (await load('map/graph')).labelKeys(nodes);") == [{"key": "site", "values": 2}]


def test_an_arrow_leads_to_the_neighbour_that_lies_there(ui: Modules) -> None:
    found = shown(
        ui,
        """const { ARROWS, neighbourToward, endToward } = await load("map/steps");
        const toward = (name, key) => neighbourToward(graph.vertices.get(name), ARROWS[key])?.key ?? null;
        const sides = [toward("hub", "ArrowRight"), toward("hub", "ArrowLeft")];
        const levels = [toward("a1", "ArrowDown"), toward("a1", "ArrowUp")];
        return [...sides, ...levels, endToward(graph.edges.get("a1>a2"), ARROWS.ArrowUp).key];""",
    )
    assert found == ["b1", "a1", "a2", None, "a1"]


def test_links_are_gone_through_around_a_node_each_with_its_way_back(ui: Modules) -> None:
    keys, back = shown(
        ui,
        """const { linksAround, nextLink } = await load("map/steps");
        const hub = graph.vertices.get("hub");
        const all = linksAround(hub).map(({ key }) => key);
        let [edge, seen] = [null, []];
        for (let n = 0; n < all.length; n++) seen.push((edge = nextLink(hub, edge, 1)).key);
        return [[all, seen], nextLink(hub, graph.edges.get(all[0]), -1).key];""",
    )
    around, seen = keys
    assert seen == around
    assert back == around[-1]
    assert [key.split(">")[::-1] for key in around[::2]] == [key.split(">") for key in around[1::2]]


def test_refusals_and_tasks_are_told_node_by_node(ui: Modules) -> None:
    lack = {"resource": "gpu", "needed": 1, "available": 0}
    by_node, notes, nodes = ui.run(
        """const { nodesOf, notesOf, refusalsByNode } = await load("map/job_graph");
        const tasks = ["w0", "w1", "w2", "w3"].map((name) => ({ name, node: "n1" }));
        const whyNot = { w0: { n2: "too small" }, w1: { n2: "gpu", n3: "cordoned" } };
        const refused = refusalsByNode(whyNot, { w1: { n2: [given.lack] } });
        return [Object.fromEntries(refused), Object.fromEntries(notesOf(tasks, ["n2"], "refused")),
          nodesOf(tasks, [{ path: ["n1", "s", "n4"] }], refused.keys())];""",
        lack=lack,
    )
    assert by_node == {
        "n2": [{"task": "w0", "why": "too small", "lacks": []}, {"task": "w1", "why": "gpu", "lacks": [lack]}],
        "n3": [{"task": "w1", "why": "cordoned", "lacks": []}],
    }
    assert notes == {
        "n1": {"text": "w0, w1, w2 +1", "quiet": False}, "n2": {"text": "refused", "quiet": True},
    }  # fmt: skip
    assert nodes == ["n1", "n2", "n3", "n4", "s"]


def test_a_job_without_a_place_is_a_graph_of_its_tasks(ui: Modules) -> None:
    names, kinds, arrows = ui.run(
        """const { arrowsOf, taskGraph } = await load("map/job_graph");
        const tasks = [{ name: "w0", node: null }, { name: "w1", node: null }];
        const flows = [{ src: "w0", dst: "w1", path: [] }, { src: "@n1", dst: "w0", path: [] }];
        const graph = taskGraph(tasks, flows);
        const arrows = arrowsOf(graph, flows, "").map(({ from, to }) => [from.key, to.key]);
        return [[...graph.vertices.keys()], [...graph.vertices.values()].map(({ kind }) => kind), arrows];"""
    )
    assert (names, set(kinds)) == (["w0", "w1", "@n1"], {"task"})
    assert arrows == [["w0", "w1"], ["@n1", "w0"]]


@pytest.mark.parametrize("count", [1, 2, 5, 200])
def test_tasks_on_a_ring_keep_apart(ui: Modules, count: int) -> None:
    places = ui.run(
        "return [...(await load('map/job_graph')).ringOf(given.names)].map(([, place]) => place);",
        names=[f"w{i}" for i in range(count)],
    )
    assert len(places) == count
    assert min((math.dist(one, other) for one, other in combinations(places, 2)), default=99) > 60
