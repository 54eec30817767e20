"""WfCommons instances (WfFormat 1.5 and later): the tasks of a workflow that was run, and the files between them."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from ces_common.graphfile import MAX_VERTICES, ApplicationGraph, vertex_name

_Bytes = Annotated[float, Field(ge=0, le=1e18)]
_Seconds = Annotated[float, Field(ge=0, le=1e12)]
LEAST_RATE = 1000
"""Bit/s of an edge between tasks that pass no file on, or a small one."""
BURST = 2
"""The maximum of an edge, as a multiple of its mean rate."""


class _Part(BaseModel):
    # A format of others: of its many fields only these are read.
    model_config = ConfigDict(extra="ignore")


class _Task(_Part):
    id: str
    parents: list[str] = []
    children: list[str] = []
    input_files: Annotated[list[str], Field(alias="inputFiles")] = []
    output_files: Annotated[list[str], Field(alias="outputFiles")] = []


class _File(_Part):
    id: str
    size: Annotated[_Bytes, Field(alias="sizeInBytes")] = 0.0


class _Run(_Part):
    id: str
    seconds: Annotated[_Seconds, Field(alias="runtimeInSeconds")]
    cores: Annotated[float, Field(alias="coreCount", ge=0, le=1e5)] = 1.0
    cpu: Annotated[float | None, Field(alias="avgCPU", ge=0, le=1e7)] = None
    memory: Annotated[_Bytes | None, Field(alias="memoryInBytes")] = None


class _Specification(_Part):
    tasks: Annotated[list[_Task], Field(min_length=1, max_length=MAX_VERTICES)]
    files: list[_File] = []


class _Execution(_Part):
    makespan: Annotated[float, Field(alias="makespanInSeconds", ge=1e-3, le=1e12)]
    tasks: list[_Run]


class _Workflow(_Part):
    specification: _Specification
    execution: _Execution


class WfCommonsFile(_Part):
    name: str
    workflow: _Workflow

    def graph(self) -> ApplicationGraph:
        """Demand as a mean over the run: of a task's core seconds and of the bytes it passes on, each by the makespan.
        Tasks without parents are near the user, whose data they read. Raises ValueError."""
        run, specification = self.workflow.execution, self.workflow.specification
        measured = {each.id: each for each in run.tasks}
        size = {each.id: each.size for each in specification.files}
        reads = {task.id: {*task.input_files} for task in specification.tasks}
        children = {task.id: dict.fromkeys(task.children) for task in specification.tasks}
        if len(children) < len(specification.tasks):
            raise ValueError("workflow.specification.tasks: two have the same id")
        for task in specification.tasks:  # some writers name only one end of each edge
            for parent in task.parents:
                if parent not in children:
                    raise ValueError(f"workflow.specification.tasks: no task is named {parent!r}, a parent of another")
                children[parent][task.id] = None
        called = {child for each in children.values() for child in each}
        if strangers := called - children.keys():
            raise ValueError(f"workflow.specification.tasks: no task is named {min(strangers)!r}, a child of another")
        name = {each: vertex_name(each) for each in children}
        vertices: list[dict[str, Any]] = []
        edges: list[dict[str, Any]] = []
        for task in specification.tasks:
            told = measured.get(task.id)
            cores = 0.0 if told is None else told.cores if told.cpu is None else told.cpu / 100
            seconds = 0.0 if told is None else told.seconds
            cpu = max(1, round(1000 * cores * seconds / run.makespan))
            vertex: dict[str, Any] = {"name": name[task.id], "cpu": f"{cpu}m"}
            if told is not None and told.memory:
                vertex["memory"] = int(told.memory)
            vertices.append(vertex | ({} if task.id in called else {"near": True}))
            for child in children[task.id]:
                passed = {*task.output_files} & reads.get(child, set())
                rate = max(LEAST_RATE, round(8 * sum(size.get(each, 0.0) for each in passed) / run.makespan))
                edges.append(
                    {"src": name[task.id], "dst": name[child], "bandwidth": {"min": rate, "max": BURST * rate}}
                )
        return ApplicationGraph.model_validate({"name": job_name(self.name), "vertices": vertices, "edges": edges})


def job_name(text: str) -> str:
    """A name that a job may have, of one that need not be."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:48].strip("-") or "graph"
