"""The job file's fields, from its models."""

from __future__ import annotations

from typing import Any

from ces_common.elastic import Elastic, Speed, Workers
from ces_common.fields import Document
from ces_common.flowfile import Edge, Flows, Input, Range
from ces_common.jobfile import JobFile, Restart, Secret, TaskGroup
from ces_common.resources import Constraints, Resources
from generator import fields
from generator.words import JOB_FIELDS

PARTS: dict[str, type[Document]] = {
    "The job": JobFile,
    "`tasks[]`": TaskGroup,
    "`tasks[].secrets.NAME`": Secret,
    "`tasks[].resources`": Resources,
    "`tasks[].constraints`": Constraints,
    "`flows`": Flows,
    "`flows.edges[]`": Edge,
    "`flows.inputs[]`": Input,
    "`bandwidth` (of `flows`, an edge, or an input)": Range,
    "`elastic`": Elastic,
    "`elastic.workers`": Workers,
    "`elastic.speed`": Speed,
    "`restart`": Restart,
}


def tables() -> str:
    return fields.tables(PARTS, JOB_FIELDS)


def unexplained() -> list[str]:
    return fields.unexplained(PARTS, JOB_FIELDS)


def schema() -> dict[str, Any]:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **JobFile.model_json_schema()}
