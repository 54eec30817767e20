"""Whatever comes from outside has bounds: no number that a column or a double cannot hold, no endless text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import ModuleType
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from ces_common import jobfile, queuefile
from ces_common.messages import api, desired, events, queries, records, reports
from ces_common.messages.agent_queries import LinkProbed, LogAnswer
from ces_common.messages.base import Message
from ces_common.messages.reports import Status, WorkerStatus
from ces_core.model import instance
from ces_testbed import topology

HUGE = [10**30, -(10**30), 1e300, -1e300, math.inf, math.nan]
ENDLESS = "a" * 10**7
# What is not taken apart: the size of its message bounds it.
WHOLE = {(reports.Progress, "data"), (events.PlanProposed, "considered")}


def models(*modules: ModuleType, base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for module in modules:
        for each in vars(module).values():
            if isinstance(each, type) and issubclass(each, base) and each.__module__ == module.__name__:
                yield each


ON_THE_BUS = list(models(desired, events, queries, records, reports, base=Message))
FROM_USERS = list(models(api, jobfile, queuefile, topology, base=jobfile.Document))
INSTANCES = list(
    models(instance, base=BaseModel)
)  # read on the machine of whoever wrote them: only numbers can do harm
FROM_AGENTS = [*models(reports, base=Message), LinkProbed, LogAnswer]


def accepted(model: type[BaseModel], *values: object) -> list[tuple[str, object]]:
    """The fields that take one of the values, alone or in a list or a dict."""
    found = []
    for name, field in model.model_fields.items():
        if (model, name) in WHOLE:
            continue
        kind: Any = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
        adapter = TypeAdapter(kind)
        for value in values:
            for shaped in (value, [value], {"a": value}, {value: "a"}, {value: 1}, {"a": {"a": value}}):
                try:
                    taken = adapter.validate_python(shaped)
                except ValidationError:
                    continue
                if taken == shaped or shaped != shaped:
                    found.append((f"{model.__name__}.{name}", type(value)))
    return found


@pytest.mark.parametrize("model", [*ON_THE_BUS, *FROM_USERS, *INSTANCES], ids=lambda model: model.__name__)
def test_every_number_has_bounds(model: type[BaseModel]) -> None:
    assert accepted(model, *HUGE) == []


@pytest.mark.parametrize("model", [*FROM_USERS, *FROM_AGENTS], ids=lambda model: model.__name__)
def test_every_text_of_users_and_agents_has_bounds(model: type[BaseModel]) -> None:
    assert accepted(model, ENDLESS) == []


def unbounded(schema: Any, path: str = "") -> Iterator[str]:
    """The lists and mappings of a JSON schema that may have any number of entries."""
    if isinstance(schema, list):
        for each in schema:
            yield from unbounded(each, path)
    if not isinstance(schema, dict):
        return
    if schema.get("type") == "array" and "maxItems" not in schema:
        yield path
    if schema.get("type") == "object" and schema.get("additionalProperties") and "maxProperties" not in schema:
        yield path
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            for name, inner in value.items():
                yield from unbounded(inner, f"{path}.{name}")
        elif key not in ("default", "examples"):
            yield from unbounded(value, path)


@pytest.mark.parametrize("model", [*FROM_USERS, *FROM_AGENTS], ids=lambda model: model.__name__)
def test_every_list_of_users_and_agents_has_bounds(model: type[BaseModel]) -> None:
    known = {f".{name}" for whole, name in WHOLE if whole is model}
    assert set(unbounded(model.model_json_schema())) - known == set()


def test_a_reason_that_is_too_long_is_cut_and_costs_nothing_else() -> None:
    worker = WorkerStatus(allocation="a", incarnation=1, state="refused", reason=ENDLESS)
    assert worker.reason is not None
    assert ENDLESS.startswith(worker.reason)
    assert Status.model_validate_json(Status(node="n", generation=1, workers=[worker]).encode()).workers == [worker]
