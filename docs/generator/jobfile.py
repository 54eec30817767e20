"""The job file's fields, from its models."""

from __future__ import annotations

from typing import Any

from ces_common.application import Access, Location, Objective, Request, User, Work
from ces_common.elastic import Elastic, Speed, Workers
from ces_common.fields import Document
from ces_common.flowfile import Edge, Flows, Input, Range
from ces_common.jobfile import JobFile, Restart, Secret, TaskGroup
from ces_common.resources import Constraints, Resources
from ces_common.self_adjustment import SelfAdjustment
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

APPLICATION: dict[str, type[Document]] = {
    "The application": JobFile,
    "`users[]`": User,
    "`users[].at`": Location,
    "`users[].access`": Access,
    "`requests[]`": Request,
    "`objective`": Objective,
    "`adjust`": SelfAdjustment,
    "`tasks[]`, too": TaskGroup,
    "`tasks[].work`": Work,
    "`tasks[].constraints`, too": Constraints,
    "`flows.edges[]`, too": Edge,
}
OF_APPLICATIONS = {
    JobFile: ("kind", "users", "requests", "objective", "adjust"),
    TaskGroup: ("work",),
    Constraints: ("user",),
    Edge: ("message",),
}
"""Fields that stand on the page of applications alone."""


def tables() -> str:
    return fields.tables(PARTS, JOB_FIELDS, lambda model, name: name not in OF_APPLICATIONS.get(model, ()))


def application_tables() -> str:
    return fields.tables(
        APPLICATION, JOB_FIELDS, lambda model, name: model not in OF_APPLICATIONS or name in OF_APPLICATIONS[model]
    )


def unexplained() -> list[str]:
    return fields.unexplained(PARTS | APPLICATION, JOB_FIELDS)


def schema() -> dict[str, Any]:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **JobFile.model_json_schema()}
