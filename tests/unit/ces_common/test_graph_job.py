"""The job that parts become."""

from __future__ import annotations

from ces_common.graph_job import LONGEST_LIST, job_of
from ces_common.graphfile import ApplicationGraph
from ces_core.decomposition.graph import Flow
from ces_core.decomposition.ways import JobPart

GRAPH = ApplicationGraph.model_validate(
    {
        "name": "app",
        "vertices": [{"name": "a"}],
        "near": {"labels": {"site": "roof"}},
        "run": {"command": ["serve"], "env": {"LEVEL": "3"}},
    }
)


def test_a_task_for_each_part_and_a_flow_for_their_traffic() -> None:
    parts = [
        JobPart(["a", "b"], cpu=700.2, memory=2.0**30, gpu=1, arch="arm64", near=True),
        JobPart(["c"], cpu=10, memory=1, gpu=0, arch=None),
    ]
    job = job_of(GRAPH, parts, [Flow(0, 1, 0.2, 5e6)])
    near, other = job.expand_tasks()
    assert (near.name, near.cpu, near.memory, near.gpu, near.arch) == ("near-0", 701, 2**30, 1, "arm64")
    assert near.labels == {"site": "roof"}
    assert near.env == {"LEVEL": "3", "CES_VERTICES": "a,b"}
    assert (other.name, other.memory, other.labels) == ("part2-0", 64 * 2**20, {})
    assert [(flow.src, flow.dst, flow.min, flow.max) for flow in job.expand_flows()] == [
        ("near-0", "part2-0", 1, 5_000_000)
    ]


def test_a_list_of_vertices_that_is_too_long_is_left_out() -> None:
    part = JobPart(["v" * LONGEST_LIST, "w"], cpu=1, memory=1, gpu=0, arch=None)
    assert "CES_VERTICES" not in job_of(GRAPH, [part], []).expand_tasks()[0].env
