"""The job file's fields, from its models."""

from __future__ import annotations

from typing import Annotated, Any

import yaml
from pydantic import TypeAdapter
from pydantic.fields import FieldInfo

from ces_common.jobfile import Constraints, Document, Edge, Flows, Input, JobFile, Range, Resources, Restart, TaskGroup
from ces_common.quantities import format_cpu, format_memory
from generator.markdown import code, default_text, quantity, table, type_text
from generator.words import JOB_FIELDS

PARTS: dict[str, type[Document]] = {
    "The job": JobFile,
    "`tasks[]`": TaskGroup,
    "`tasks[].resources`": Resources,
    "`tasks[].constraints`": Constraints,
    "`flows`": Flows,
    "`flows.edges[]`": Edge,
    "`flows.inputs[]`": Input,
    "`bandwidth` (of `flows`, an edge, or an input)": Range,
    "`restart`": Restart,
}
_LIMITS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minItems": "at least {}",
    "maxItems": "at most {}",
    "maxLength": "at most {} characters",
}


def tables() -> str:
    """One table for each part. Raises KeyError for a field that ``words.py`` does not explain, ValueError for an
    example that the field does not take."""
    return "\n\n".join(f"### {heading}\n\n{_table(model)}" for heading, model in PARTS.items())


def unexplained() -> list[str]:
    """Fields without words, and words without a field."""
    fields = {f"{model.__name__}.{name}" for model in PARTS.values() for name in model.model_fields}
    return sorted(fields ^ JOB_FIELDS.keys())


def schema() -> dict[str, Any]:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **JobFile.model_json_schema()}


def _table(model: type[Document]) -> str:
    limits = model.model_json_schema()["properties"]
    rows = []
    for name, field in model.model_fields.items():
        meaning, example = JOB_FIELDS[f"{model.__name__}.{name}"]
        if example:
            _check(field, name, example)
        rows.append(
            (code(name), _type(field, limits[name]), _default(name, field), meaning, code(example) if example else "")
        )
    return table(("field", "type", "default", "meaning", "example"), rows)


def _check(field: FieldInfo, name: str, example: str) -> None:
    document = yaml.safe_load(example)
    if list(document) != [name]:
        raise ValueError(f"the example {example!r} is not one of {name}")
    kind: Any = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
    TypeAdapter(kind).validate_python(document[name])


def _type(field: FieldInfo, schema: dict[str, Any]) -> str:
    text = quantity(field) or type_text(field.annotation)
    text = _LISTS.get(text, text)
    notes = [said.format(schema[key]) for key, said in _LIMITS.items() if key in schema]
    return f"{text} ({', '.join(notes)})" if notes else text.lower() if text in _SECTIONS else text


_LISTS = {
    "list of TaskGroup": "list of groups",
    "list of Edge": "list of edges",
    "list of Input": "list of inputs",
    "Range": "range",
}
_SECTIONS = {"Flows", "Restart", "Resources", "Constraints"}


def _default(name: str, field: FieldInfo) -> str:
    if name == "cpu":
        return code(format_cpu(field.default))
    if name == "memory":
        return code(format_memory(field.default))
    return default_text(field)
