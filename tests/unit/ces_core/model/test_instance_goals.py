"""Profiles and goals in the instance format: what is read, written back, and refused with its field and a remedy."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from changed_items import set_item
from goal_instances import goal_instance
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_core.model.errors import ProblemError
from ces_core.model.generate import random_instance
from ces_core.model.goals import Goals
from ces_core.model.instance import read_instance, write_instance
from ces_core.model.parts import Link, Node
from ces_core.model.problem import Cluster
from ces_core.model.profiles import NodeProfile

INSTANCE: dict[str, Any] = {
    "nodes": [
        {
            "name": "a",
            "cpu": 8,
            "memory": 8,
            "speed": {"matrix": 2.5},
            "idle_w": 3,
            "peak_w": 9,
            "reliability": 0.99,
            "position": {"lat": 51.05, "lon": -13.7},
            "coverage_m": 250,
        },
        {"name": "b", "cpu": 4, "memory": 4, "power_w": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], "sleeping": True},
    ],
    "links": [{"src": "a", "dst": "b", "bandwidth": 100, "delay_ms": 5, "nj_per_bit": 12, "reliability": 0.999}],
    "job": {
        "name": "j",
        "tasks": [
            {
                "name": "t0",
                "cpu": 1,
                "memory": 1,
                "work": {"per_request": 35, "class": "matrix", "threads": 1},
                "rate": 20,
                "longest_ms": 90,
                "group": "g",
                "state": 4096,
            },
            {"name": "t1", "cpu": 1, "memory": 1, "group": "g"},
        ],
        "flows": [
            {"src": "t0", "dst": "t1", "min": 1, "max": 2, "message": 1500},
            {"src": "@a", "dst": "t1", "max": 1},
        ],
        "chains": [
            {
                "name": "loop",
                "tasks": ["t0", "t1"],
                "flows": [["t0", "t1"]],
                "fixed_ms": 3,
                "deadline_ms": 200,
                "hard": True,
            }
        ],
        "least_reliability": 0.9,
        "objective": {"balance": 0.2, "bandwidth": 0.3, "time": 0.4, "energy": 0.1},
        "held": [{"task": "t1", "node": "a", "cost": 0.1}, {"task": "t0", "node": "a"}],
        "units": {"core": 1, "mbit": 1e6},
    },
}


def test_everything_is_read_and_written_back() -> None:
    sourced = copy.deepcopy(INSTANCE)
    sourced["job"]["flows"][1]["sources"] = ["a", "b"]
    written = write_instance(read_instance(sourced))
    for part, given_part in ((written["nodes"][0], sourced["nodes"][0]), (written["job"], sourced["job"])):
        for key in ("speed", "position", "coverage_m", "idle_w", "chains", "objective", "held", "units"):
            if key in given_part:
                assert part[key] == given_part[key]
    assert written["job"]["tasks"][0]["work"] == {"per_request": 35, "class": "matrix", "threads": 1}
    assert written["job"]["flows"][1]["sources"] == ["a", "b"]
    assert "power_w" not in written["nodes"][0]
    assert "speed" not in written["nodes"][1]
    again = read_instance(json.loads(json.dumps(written)))
    assert write_instance(again) == written
    assert again.goals == read_instance(sourced).goals
    assert again.has_goals


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_any_instance_survives_being_written(seed: int) -> None:
    written = write_instance(read_instance(goal_instance(seed)))
    assert write_instance(read_instance(json.loads(json.dumps(written)))) == written


def test_files_without_goals_are_written_as_before() -> None:
    problem = read_instance(random_instance("tight", 3, nodes=6, tasks=3))
    written = write_instance(problem)
    assert not problem.has_goals
    assert problem.cluster.profile is None
    assert {key for node in written["nodes"] for key in node} == {
        "name", "cpu", "memory", "gpu", "cpu_used", "memory_used", "gpu_used",
    }  # fmt: skip
    assert {key for link in written["links"] for key in link} == {"src", "dst", "bandwidth", "bandwidth_used", "medium"}
    assert {key for task in written["job"]["tasks"] for key in task} == {"name", "cpu", "memory", "gpu", "allowed"}
    assert {key for flow in written["job"]["flows"] for key in flow} == {"src", "dst", "min", "max"}
    assert list(written) == ["nodes", "links", "media", "job", "weights"]
    assert list(written["job"]) == ["name", "tasks", "flows"]


def test_what_changes_no_plan_is_no_goal() -> None:
    known = random_instance("tight", 3, nodes=4, tasks=2)
    known["nodes"][0] |= {"speed": {"matrix": 2}, "idle_w": 4, "peak_w": 8}
    known["links"][0]["delay_ms"] = 3
    known["job"]["tasks"][0] |= {"work": {"per_request": 3}, "state": 100}
    known["job"]["flows"][0]["message"] = 10
    known["job"]["objective"] = {"balance": 0.5, "bandwidth": 0.5}
    problem = read_instance(known)
    assert problem.cluster.profile is not None
    assert problem.goals == Goals()
    assert not problem.has_goals


def test_a_class_without_a_speed_may_not_run_there() -> None:
    data = copy.deepcopy(INSTANCE)
    data["nodes"][0]["speed"] = {"integer": 1}
    assert read_instance(data).allowed.tolist() == [[False, True], [True, True]]


@pytest.mark.parametrize(
    ("change", "field", "remedy"),
    [
        (set_item("nodes", 0, "speed", {"matrix": 0}), "nodes[0].speed.matrix", "above 0"),
        (set_item("nodes", 0, "speed", {"": 1}), "nodes[0].speed", "must be a name"),
        (set_item("nodes", 0, "speed", {f"c{i}": 1 for i in range(65)}), "nodes[0].speed", "at most 64"),
        (set_item("nodes", 0, "peak_w", 2), "nodes[0].peak_w", "must not be below idle_w"),
        (set_item("nodes", 1, "idle_w", 2), "nodes[1].peak_w", "must not be below idle_w"),
        (set_item("nodes", 1, "peak_w", 2), "nodes[1].power_w", "leave out idle_w and peak_w"),
        (set_item("nodes", 1, "power_w", [1, 2]), "nodes[1].power_w", "11 points"),
        (set_item("nodes", 1, "power_w", 3, -1), "nodes[1].power_w[3]", "must not be negative"),
        (set_item("nodes", 0, "reliability", 1.1), "nodes[0].reliability", "at most 1"),
        (set_item("nodes", 0, "position", {"lat": 91, "lon": 0}), "nodes[0].position.lat", "within -90..90"),
        (set_item("nodes", 0, "position", {"lat": 1}), "nodes[0].position.lon", "is missing"),
        (set_item("nodes", 0, "coverage_m", -5), "nodes[0].coverage_m", "must not be negative"),
        (set_item("links", 0, "delay_ms", -1), "links[0].delay_ms", "must not be negative"),
        (set_item("links", 0, "delay_ms", float("inf")), "links[0].delay_ms", "finite"),
        (set_item("links", 0, "reliability", 2), "links[0].reliability", "at most 1"),
        (set_item("job", "tasks", 0, "work", "per_request", 0), "job.tasks[0].work.per_request", "above 0"),
        (set_item("job", "tasks", 0, "work", "threads", 0), "job.tasks[0].work.threads", "above 0"),
        (set_item("job", "tasks", 0, "work", "kind", "x"), "job.tasks[0].work.kind", "unknown field"),
        (set_item("nodes", 0, "cpu", "lots"), "nodes[0].cpu", "must be a number"),
        (set_item("job", "tasks", 0, "cpu", 0), "job.tasks[0].cpu", "must be above 0 for a task with `work`"),
        (set_item("job", "tasks", 1, "rate", 3), "job.tasks[1].rate", "add what a request costs"),
        (set_item("job", "tasks", 1, "longest_ms", 3), "job.tasks[1].longest_ms", "add what a request costs"),
        (set_item("job", "tasks", 0, "longest_ms", 0), "job.tasks[0].longest_ms", "above 0"),
        (set_item("job", "tasks", 0, "group", ""), "job.tasks[0].group", "must be a name"),
        (set_item("job", "flows", 0, "message", -1), "job.flows[0].message", "must not be negative"),
        (set_item("job", "flows", 1, "sources", ["a", "zz"]), "job.flows[1].sources[1]", "no node"),
        (set_item("job", "flows", 1, "sources", ["a", "a"]), "job.flows[1].sources", "leave one out"),
        (set_item("job", "flows", 1, "sources", ["b"]), "job.flows[1].sources", "src must be one of them"),
        (set_item("job", "flows", 0, "sources", ["a"]), "job.flows[0].sources", "src must be one of them"),
        (set_item("job", "chains", 0, "tasks", ["t9"]), "job.chains[0].tasks[0]", "no task"),
        (set_item("job", "chains", 0, "flows", [["t1", "t0"]]), "job.chains[0].flows[0]", "no flow leads"),
        (set_item("job", "chains", 0, "flows", [["t1"]]), "job.chains[0].flows[0]", "two ends"),
        (set_item("job", "chains", 0, "name", ""), "job.chains[0].name", "must be a name"),
        (set_item("job", "chains", 0, {"name": "x"}), "job.chains[0]", "name its tasks or flows"),
        (set_item("job", "chains", 0, "deadline_ms", 0), "job.chains[0].deadline_ms", "above 0"),
        (
            set_item("job", "chains", [{"name": "x", "tasks": ["t0"], "hard": True}]),
            "job.chains[0].hard",
            "add deadline_ms",
        ),
        (
            set_item("job", "chains", [{"name": "x", "tasks": ["t0"], "deadline_ms": d} for d in (1, 2)]),
            "job.chains[1].deadline_ms",
            "branches of one request",
        ),
        (set_item("job", "chains", [{"name": "x", "tasks": ["t0"]}] * 257), "job.chains", "at most 256"),
        (set_item("job", "least_reliability", 1.5), "job.least_reliability", "at most 1"),
        (set_item("job", "objective", {"balance": 1, "time": 0.1}), "job.objective", "add up to 1"),
        (set_item("job", "objective", {"balance": 2, "time": -1}), "job.objective.time", "must not be negative"),
        (set_item("job", "held", [{"task": "zz", "node": "a"}]), "job.held[0].task", "no task"),
        (set_item("job", "held", [{"task": "t0", "node": "zz"}]), "job.held[0].node", "no node"),
        (set_item("job", "held", [{"task": "t0", "node": "a"}] * 2), "job.held[1].task", "leave one out"),
        (set_item("job", "units", {"core": 0}), "job.units.core", "above 0"),
    ],
)
def test_nonsense_is_refused_with_its_field_and_a_remedy(
    change: Callable[[dict[str, Any]], None], field: str, remedy: str
) -> None:
    data = copy.deepcopy(INSTANCE)
    change(data)
    with pytest.raises(ProblemError) as caught:
        read_instance(data)
    assert caught.value.field == field
    assert remedy in caught.value.message


def test_parts_made_by_programs_are_checked_too() -> None:
    with pytest.raises(ProblemError, match=r"nodes\[0\].reliability"):
        Cluster.make([Node("a", cpu=1, profile=NodeProfile(reliability=3))], [])
    cluster = Cluster.make([Node("a", cpu=1, profile=NodeProfile(idle_w=2, peak_w=3)), Node("b")], [Link("a", "b", 1)])
    assert cluster.profile is not None
    assert cluster.profile.power_w[:, 0].tolist() == [2, 0]
    assert cluster.with_used(cluster.node_used, cluster.link_used).profile is cluster.profile
