"""What is observed of links: whom they join and what is free on them, against the instances that they come from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ces_core.learned.schema import schema_hash
from ces_core.model.generate import random_instance
from ces_core.model.instance import read_instance
from ces_core.model.problem import Problem
from ces_rl.envs.placement.links import LINK_FEATURES, LinkedSimulation, graph_schema
from ces_rl.envs.placement.simulation import PlacementSimulation
from ces_rl.envs.simulation import SlotSize
from ces_rl.problems.source import packed

COLUMN = {name: i for i, name in enumerate(LINK_FEATURES)}


def drawn(seed: int, nodes: int) -> dict[str, Any]:
    return random_instance("tight", seed, nodes=nodes, tasks=4, link_probability=0.3)


def started(problems: list[Problem], most: int) -> LinkedSimulation:
    pool = packed(problems)
    simulation = LinkedSimulation(len(problems), SlotSize.of(pool), most)
    simulation.start(pool, np.arange(len(problems)))
    return simulation


def part(value: float, whole: float) -> float:
    return (value - whole) / (value + whole)


def test_neighbours_are_those_that_a_link_joins_and_features_are_what_is_free_on_it() -> None:
    """Slots for larger problems than some of them hold; before any task is placed nothing of a link is used."""
    instances = [drawn(seed, nodes) for seed, nodes in ((1, 6), (2, 9), (3, 12))]
    simulation = started([read_instance(each) for each in instances], most=11)
    _, _, mask, neighbours, links = simulation.observed(np.arange(3))
    assert mask.shape == (3, 12)
    assert neighbours.shape == (3, 12, 11)
    for slot, instance in enumerate(instances):
        names = [node["name"] for node in instance["nodes"]]
        speed = {(names.index(link["src"]), names.index(link["dst"])): link["bandwidth"] for link in instance["links"]}
        typical = float(np.mean([flow["max"] for flow in instance["job"]["flows"]]))
        found = {(a, int(b)): links[slot, a, k] for a in range(12) for k, b in enumerate(neighbours[slot, a]) if b >= 0}
        assert found.keys() == speed.keys()
        for (a, b), row in found.items():
            for way, pair in (("out", (a, b)), ("in", (b, a))):
                assert row[COLUMN[f"{way}-free"]] == pytest.approx(1.0)
                for what in ("room", "capacity"):
                    assert row[COLUMN[f"{way}-{what}"]] == pytest.approx(part(speed[pair], typical), abs=1e-5)
    assert (links[neighbours < 0] == 0).all()


def test_links_have_less_room_once_flows_are_on_them() -> None:
    simulation = started([read_instance(drawn(seed, 8)) for seed in range(20)], most=7)
    free = COLUMN["out-free"]
    everything = np.arange(20)
    before = simulation.observed(everything)[4][..., free].copy()
    while simulation.running.any():
        running = simulation.running
        # Tasks far apart: the last node that is allowed, then the first.
        last = simulation.slots.mask.shape[1] - 1 - np.argmax(simulation.slots.mask[:, ::-1], axis=1)
        odd = (simulation.slots.mask.sum(axis=1) % 2).astype(bool)
        simulation.step(np.where(running & odd, last, np.argmax(simulation.slots.mask, axis=1)))
    after = simulation.observed(everything)[4][..., free]
    assert (after <= before + 1e-6).all()
    assert (after >= 0).all()
    assert (after < before - 0.01).any()


def test_of_many_neighbours_the_widest_are_looked_at() -> None:
    problem = read_instance(drawn(5, 12))
    every, few = started([problem], most=11), started([problem], most=2)
    everyone, links = (part[0] for part in every.observed(np.zeros(1, dtype=np.int64))[3:])
    some = few.observed(np.zeros(1, dtype=np.int64))[3][0]
    assert some.shape == (12, 2)
    cluster = problem.cluster
    ends = zip(cluster.topology.link_src.tolist(), cluster.topology.link_dst.tolist(), strict=True)
    speed = dict(zip(ends, cluster.link_capacity.tolist(), strict=True))
    for node in range(12):
        known = everyone[node][everyone[node] >= 0].tolist()
        assert len(known) > 0
        widths = [speed[node, b] + speed[b, node] for b in known]
        assert widths == sorted(widths, reverse=True)
        assert some[node][some[node] >= 0].tolist() == known[:2]
    assert np.isfinite(links).all()


def test_nodes_behind_a_switch_are_no_neighbours() -> None:
    """Nothing is passed on there, and nothing breaks."""
    simulation = started([read_instance(random_instance("tight", 1, topology="fat-tree", nodes=4, tasks=3))], most=3)
    _, _, _, neighbours, links = simulation.observed(np.zeros(1, dtype=np.int64))
    assert (neighbours == -1).all()
    assert (links == 0).all()


def test_links_of_a_medium_have_the_room_that_the_medium_leaves() -> None:
    node = {"cpu": 100.0, "memory": 100.0}
    instance = {
        "nodes": [{"name": name, **node} for name in "abc"],
        "media": {"air": 60.0},
        "links": [
            {"src": a, "dst": b, "bandwidth": 100.0, "medium": "air"}
            for a, b in (("a", "b"), ("b", "a"), ("b", "c"), ("c", "b"))
        ],
        "job": {
            "tasks": [{"name": name, "cpu": 10.0, "memory": 10.0} for name in ("t0", "t1")],
            "flows": [{"src": "t0", "dst": "t1", "min": 10.0, "max": 60.0}],
        },
    }
    simulation = started([read_instance(instance)], most=2)
    _, _, _, neighbours, links = simulation.observed(np.zeros(1, dtype=np.int64))
    assert [sorted(row[row >= 0].tolist()) for row in neighbours[0]] == [[1], [0, 2], [1]]
    assert links[0, 0, 0, COLUMN["out-free"]] == pytest.approx(0.6)
    assert links[0, 0, 0, COLUMN["out-room"]] == pytest.approx(0.0, abs=1e-6)


def test_the_game_is_the_same_with_links_observed() -> None:
    pool = packed([read_instance(drawn(seed, 7)) for seed in range(6)])
    plain, linked = PlacementSimulation(6, SlotSize.of(pool)), LinkedSimulation(6, SlotSize.of(pool), 3)
    for simulation in (plain, linked):
        simulation.start(pool, np.arange(6))
    while plain.running.any():
        rows = np.flatnonzero(plain.running)
        for one, other in zip(plain.observed(rows), linked.observed(rows)[:3], strict=True):
            np.testing.assert_array_equal(one, other)
        actions = np.argmax(plain.slots.mask, axis=1)
        plain.step(actions)
        linked.step(actions)
    np.testing.assert_array_equal(plain.slots.score, linked.slots.score)


def test_what_the_graph_encoder_sees_has_a_hash_of_its_own() -> None:
    assert graph_schema() != schema_hash()
    assert graph_schema() == graph_schema()
