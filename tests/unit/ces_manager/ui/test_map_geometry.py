"""Where things lie on the map, and what is found there: camera, cells, curves of flows, and places of new nodes."""

from __future__ import annotations

import math
import random
from itertools import combinations, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ui_modules import Modules

pytestmark = pytest.mark.needs("browser")

COORDINATE = st.floats(-1e4, 1e4)
CAMERA = st.fixed_dictionaries({"x": COORDINATE, "y": COORDINATE, "k": st.floats(0.02, 5)})
SIZE = st.fixed_dictionaries({"width": st.integers(100, 3000), "height": st.integers(100, 2000)})
PIXEL = st.floats(0, 3000)


@given(CAMERA, SIZE, PIXEL, PIXEL, st.floats(0.01, 100))
def test_what_is_below_the_pointer_stays_there_while_one_zooms(
    ui: Modules, camera: dict[str, float], size: dict[str, int], px: float, py: float, factor: float
) -> None:
    before, after, k = ui.run(
        """const { toMap, zoomed } = await load("map/camera");
        const { camera, size, px, py, factor } = given;
        const next = zoomed(camera, size, px, py, factor);
        return [toMap(camera, size, px, py), toMap(next, size, px, py), next.k];""",
        camera=camera, size=size, px=px, py=py, factor=factor,
    )  # fmt: skip
    assert after == pytest.approx(before, abs=1e-6, rel=1e-9)
    assert k == pytest.approx(min(5, max(0.02, camera["k"] * factor)))


@given(st.lists(st.tuples(COORDINATE, COORDINATE), min_size=1, max_size=20), SIZE)
def test_everything_is_seen_where_everything_is_to_be_shown(
    ui: Modules, points: list[tuple[float, float]], size: dict[str, int]
) -> None:
    places = ui.run(
        """const { boundsOf, fitted, toPicture } = await load("map/camera");
        const points = given.points.map(([x, y]) => ({ x, y }));
        const camera = fitted(boundsOf(points), given.size);
        return [camera.k, points.map(({ x, y }) => toPicture(camera, given.size, x, y))];""",
        points=points, size=size,
    )  # fmt: skip
    k, found = places
    for x, y in found if k > 0.02 else []:  # no farther away than that
        assert -1e-6 <= x <= size["width"] + 1e-6
        assert -1e-6 <= y <= size["height"] + 1e-6


def test_nothing_fits_everything_where_there_is_nothing(ui: Modules) -> None:
    assert ui.run(
        'const c = await load("map/camera"); return [c.boundsOf([]), c.fitted(null, { width: 10, height: 10 })];'
    ) == [None, {"x": 0, "y": 0, "k": 1}]


@given(*[st.floats(-100, 100)] * 6)
def test_a_points_distance_from_a_line_ends_at_its_ends(
    ui: Modules, x: float, y: float, x1: float, y1: float, x2: float, y2: float
) -> None:
    found = ui.run('return (await load("map/grid")).distanceToLine(...given.line);', line=[x, y, x1, y1, x2, y2])
    looked = min(math.hypot(x - x1 - part / 500 * (x2 - x1), y - y1 - part / 500 * (y2 - y1)) for part in range(501))
    assert found <= looked + 1e-9
    assert looked <= found + math.hypot(x2 - x1, y2 - y1) / 500 + 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_cells_miss_nothing_that_lies_near(ui: Modules, seed: int) -> None:
    """Compared with a look at everything."""
    chance = random.Random(seed)
    points = {f"n{i}": (chance.uniform(-3000, 3000), chance.uniform(-3000, 3000)) for i in range(60)}
    edges = [tuple(chance.sample(sorted(points), 2)) for _ in range(90)]
    asked = [(chance.uniform(-3000, 3000), chance.uniform(-3000, 3000), chance.uniform(1, 400)) for _ in range(40)]
    missed = ui.run(
        """const { Grid, distanceToLine } = await load("map/grid");
        const vertices = new Map(Object.entries(given.points).map(([key, [x, y]]) => [key, { key, x, y }]));
        const edges = new Map(given.edges.map(([a, b]) =>
          [`${a}>${b}`, { key: `${a}>${b}`, from: vertices.get(a), to: vertices.get(b) }]));
        const grid = new Grid({ vertices, edges });
        const missed = [];
        let found = 0;
        const look = (keys, key) => (keys.has(key) ? found++ : missed.push(key));
        for (const [x, y, far] of given.asked) {
          const [nodes, lines] = [grid.near(x, y, far, "vertices"), grid.near(x, y, far, "edges")];
          for (const v of vertices.values()) if (Math.hypot(v.x - x, v.y - y) <= far) look(nodes, v.key);
          for (const { key, from, to } of edges.values())
            if (distanceToLine(x, y, from.x, from.y, to.x, to.y) <= far) look(lines, key);
        }
        return { missed, found };""",
        points=points, edges=edges, asked=asked,
    )  # fmt: skip
    assert missed["missed"] == []
    assert missed["found"] > 50


CLUSTER = """
const { graphOf } = await load("map/graph");
const { viewOf } = await load("map/view");
const node = (own) => ({ cpu: 1000, memory: 1, state: "ready", ...own });
const link = ([src, dst]) => [`${src}>${dst}`, { src, dst, bandwidth: 1e8, reserved: 0, state: "up" }];
const nodes = new Map(Object.entries(given.nodes).map(([name, own]) => [name, node(own)]));
const places = new Map(Object.entries(given.places));
const view = viewOf(new URLSearchParams());
const graph = graphOf({ nodes, links: new Map(given.links.map(link)), media: new Map() }, places, view);
"""

PAIR: dict[str, Any] = {"a": {}, "b": {}}
APART = {"a": [0, 0], "b": [300, 0]}


def hits(ui: Modules, points: list[tuple[float, float]]) -> list[Any]:
    found: list[Any] = ui.run(
        CLUSTER + """
        const { hitAt } = await load("map/hits");
        const { Grid } = await load("map/grid");
        const { grainOf } = await load("map/sheet");
        const [grid, grain] = [new Grid(graph), grainOf(graph)];
        return given.points.map(([x, y]) => hitAt(graph, grid, x, y, 1, grain));""",
        points=points, nodes=PAIR, links=[["a", "b"], ["b", "a"]], places=APART,
    )  # fmt: skip
    return found


def test_a_node_is_hit_before_the_links_that_end_there(ui: Modules) -> None:
    assert hits(ui, [(0, 0), (300, 5), (150, 90)]) == [
        {"kind": "node", "key": "a"}, {"kind": "node", "key": "b"}, None,
    ]  # fmt: skip


def test_each_direction_of_a_wire_is_hit_on_its_own_right(ui: Modules) -> None:
    """Downwards is larger: whoever goes to the right has that side at the right hand."""
    assert hits(ui, [(150, 3), (150, -3)]) == [{"kind": "link", "key": "a>b"}, {"kind": "link", "key": "b>a"}]


def test_flows_of_both_directions_are_hit_on_their_own_sides(ui: Modules) -> None:
    found = ui.run(
        CLUSTER + """
        const { arrowsOf } = await load("map/job_graph");
        const { curveOf, distanceToCurve, flowAt, pointOn } = await load("map/draw_flows");
        const flow = (src, dst, ...path) => ({ src, dst, path });
        const flows = [flow("t", "u", "a", "b"), flow("t2", "u", "a", "b"), flow("u", "t", "b", "a")];
        const arrows = arrowsOf(graph, flows, "");
        const sheet = { k: 1, s: 1, ox: 0, oy: 0 };
        return arrows.map((arrow) => {
          const [x, y] = pointOn(curveOf(arrow, sheet), 0.5);
          return [x, y, flowAt(arrows, sheet, x, y)?.key, distanceToCurve(curveOf(arrow, sheet), x, y)];
        });""",
        nodes=PAIR, links=[], places=APART,
    )  # fmt: skip
    (x1, y1, key1, off1), (_, y2, key2, _), (_, y3, key3, _) = found
    assert (key1, key2, key3) == ("t>u", "t2>u", "u>t")
    assert 0 < y1 < y2  # beside each other
    assert y3 == pytest.approx(-y1)
    assert (x1, off1) == (pytest.approx(150, abs=2), pytest.approx(0, abs=1))


def test_a_flow_within_a_node_has_no_arrow(ui: Modules) -> None:
    found = ui.run(
        CLUSTER + """
        const { arrowsOf } = await load("map/job_graph");
        const within = { src: "t", dst: "u", path: ["a"] };
        const short = { src: "t", dst: "v", path: ["a", "b"], shortfall: { src: "a", dst: "b" } };
        return arrowsOf(graph, [within, short], "t>v").map(({ key, short, state }) => [key, short, state]);""",
        nodes=PAIR, links=[], places=APART,
    )  # fmt: skip
    assert found == [["t>v", True, "chosen"]]


def test_the_path_of_one_flow_is_lit_and_what_falls_short_is_marked(ui: Modules) -> None:
    lit = ui.run(
        CLUSTER + """
        const { jobLight } = await load("map/job_graph");
        const flows = [
          { src: "t", dst: "u", path: ["a", "s", "b"], shortfall: { src: "s", dst: "b" } },
          { src: "u", dst: "t", path: ["b", "s", "a"] },
        ];
        const tasks = [{ name: "t", node: "a" }, { name: "u", node: "b" }];
        return [jobLight(graph, tasks, flows, "t>u"), jobLight(graph, tasks, flows, "")].map(({ vertices, edges }) =>
          [[...vertices].map(({ key }) => key).sort(), [...edges].map(([{ key }, short]) => [key, short]).sort()]);""",
        nodes={"a": {}, "b": {}, "s": {"cpu": 0, "memory": 0}, "far": {}},
        links=[["a", "s"], ["s", "a"], ["b", "s"], ["s", "b"], ["far", "s"]],
        places={"a": [0, 0], "s": [100, 0], "b": [200, 0], "far": [100, 100]},
    )  # fmt: skip
    assert lit[0] == [["a", "b", "s"], [["a>s", False], ["s>b", True]]]
    assert lit[1] == [["a", "b", "s"], [["a>s", False], ["b>s", False], ["s>a", False], ["s>b", True]]]


@pytest.mark.parametrize("seed", range(5))
def test_a_new_node_finds_room_near_its_neighbours_and_moves_none(ui: Modules, seed: int) -> None:
    chance = random.Random(seed)
    old = {f"o{i}": [90.0 * (i % 6), 90.0 * (i // 6)] for i in range(30)}
    names = [*old, *(f"w{i}" for i in range(12))]
    links = [{"src": f"w{i}", "dst": chance.choice(sorted(old))} for i in range(10)]  # two have no link
    placed: dict[str, list[float]] = ui.run(
        """const { newcomers } = await load("map/placement");
        return Object.fromEntries(newcomers(given.names, given.links, new Map(Object.entries(given.old))));""",
        names=names, links=links, old=old,
    )  # fmt: skip
    assert placed.keys() == {f"w{i}" for i in range(12)}
    everything = [*old.values(), *placed.values()]
    assert min(math.dist(one, other) for one, other in combinations(everything, 2)) >= 62 - 1e-6
    for link in links:
        assert math.dist(placed[link["src"]], old[link["dst"]]) < 600


@given(st.lists(st.tuples(st.integers(-20, 20), st.integers(-20, 20)), min_size=1, max_size=25))
def test_a_hull_has_every_point_on_one_side(ui: Modules, points: list[tuple[int, int]]) -> None:
    hull = ui.run(
        """const { convexHull } = await load("map/draw_areas");
        return convexHull(given.points.map(([x, y]) => ({ x, y }))).map(({ x, y }) => [x, y]);""",
        points=points,
    )
    assert {tuple(corner) for corner in hull} <= set(points)
    if len(set(points)) < 3:
        return
    for (ax, ay), (bx, by) in pairwise([*hull, hull[0]]):
        turns = [(bx - ax) * (y - ay) - (by - ay) * (x - ax) for x, y in points]
        assert min(turns) >= 0 or max(turns) <= 0
