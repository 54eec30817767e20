"""WfCommons instances."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from ces_client.graphs.wfcommons import LEAST_RATE, WfCommonsFile, job_name


def instance(**execution: Any) -> dict[str, Any]:
    tasks = [
        {"id": "split", "name": "split", "children": ["work", "log"], "outputFiles": ["part", "other"]},
        {"id": "work", "name": "work", "parents": ["split"], "inputFiles": ["part"], "children": []},
        {"id": "log", "name": "log", "parents": ["split"]},
    ]
    files = [{"id": "part", "sizeInBytes": 1_000_000}, {"id": "other", "sizeInBytes": 9_000_000}]
    run = [
        {"id": "split", "runtimeInSeconds": 10, "coreCount": 2},
        {"id": "work", "runtimeInSeconds": 50, "coreCount": 8, "avgCPU": 300.0, "memoryInBytes": 123_456_789},
    ]
    told = {"makespanInSeconds": 100, "tasks": run} | execution
    return {"name": "My Flow (v2)", "workflow": {"specification": {"tasks": tasks, "files": files}, "execution": told}}


def test_demand_is_a_mean_over_the_run() -> None:
    graph = WfCommonsFile.model_validate(instance()).graph()
    assert graph.name == "my-flow-v2"
    split, work, log = graph.vertices
    assert (split.cpu, split.near) == (200, True)
    assert (work.cpu, work.memory, work.near) == (1500, 123_456_789, None)  # what was used, not what was held
    assert log.cpu == 1  # nothing was measured
    assert [(e.src, e.dst, e.bandwidth.min, e.bandwidth.max) for e in graph.edges] == [
        ("split", "work", 80_000, 160_000),  # only of the file that is read
        ("split", "log", LEAST_RATE, 2 * LEAST_RATE),
    ]


@pytest.mark.parametrize(
    ("makespan", "field"), [(0, "makespanInSeconds"), (1e-300, "makespanInSeconds"), (-1, "makespanInSeconds")]
)
def test_a_run_takes_time(makespan: float, field: str) -> None:
    with pytest.raises(ValidationError, match=field):
        WfCommonsFile.model_validate(instance(makespanInSeconds=makespan))


def test_parents_alone_are_edges_too() -> None:
    told = instance()
    told["workflow"]["specification"]["tasks"][0]["children"] = []
    graph = WfCommonsFile.model_validate(told).graph()
    assert [(edge.src, edge.dst) for edge in graph.edges] == [("split", "work"), ("split", "log")]
    assert [vertex.near for vertex in graph.vertices] == [True, None, None]


def test_ids_become_names_that_can_be_listed() -> None:
    told = instance()
    told["workflow"]["specification"]["tasks"][1]["id"] = "work,\n1"
    told["workflow"]["specification"]["tasks"][0]["children"] = ["log"]
    graph = WfCommonsFile.model_validate(told).graph()
    assert [vertex.name for vertex in graph.vertices] == ["split", "work__1", "log"]


def test_a_child_that_is_not_there_is_named() -> None:
    told = instance()
    told["workflow"]["specification"]["tasks"][0]["children"].append("nobody")
    with pytest.raises(ValueError, match="no task is named 'nobody'"):
        WfCommonsFile.model_validate(told).graph()


@pytest.mark.parametrize(("text", "name"), [("A b", "a-b"), ("", "graph"), ("--", "graph"), ("x" * 99, "x" * 48)])
def test_names_become_those_of_jobs(text: str, name: str) -> None:
    assert job_name(text) == name
