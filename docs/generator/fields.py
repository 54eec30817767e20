"""Tables of the fields of a file that people write, from its models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import yaml
from pydantic import TypeAdapter
from pydantic.fields import FieldInfo

from ces_common.fields import Document
from ces_common.quantities import (
    format_bandwidth,
    format_cpu,
    format_duration,
    format_latency,
    format_memory,
    format_work,
)
from generator.markdown import code, default_text, quantity, table, type_text

Words = Mapping[str, tuple[str, str]]  # "Model.field" -> meaning, example
Chosen = Callable[[type[Document], str], bool]
"""Whether a field of a model stands in a table."""
_FORMATS: dict[str, Callable[[int], str]] = {
    "CPU quantity": format_cpu,
    "memory quantity": format_memory,
    "bandwidth": format_bandwidth,
    "duration": format_duration,
    "time of a request": format_latency,
    "amount of work": format_work,
}
_LIMITS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minItems": "at least {}",
    "maxItems": "at most {}",
    "maxLength": "at most {} characters",
    "maxProperties": "at most {}",
}


def _all(model: type[Document], name: str) -> bool:
    return True


def tables(parts: Mapping[str, type[Document]], words: Words, chosen: Chosen = _all) -> str:
    """One table for each part. Raises KeyError for a field that ``words`` does not explain, ValueError for an example
    that the field does not take."""
    return "\n\n".join(f"### {heading}\n\n{_table(model, words, chosen)}" for heading, model in parts.items())


def unexplained(parts: Mapping[str, type[Document]], words: Words) -> list[str]:
    """Fields without words, and words without a field."""
    fields = {f"{model.__name__}.{name}" for model in parts.values() for name in model.model_fields}
    return sorted(fields ^ words.keys())


def _table(model: type[Document], words: Words, chosen: Chosen) -> str:
    limits = model.model_json_schema()["properties"]
    rows = []
    for name, field in model.model_fields.items():
        if not chosen(model, name):
            continue
        meaning, example = words[f"{model.__name__}.{name}"]
        written = field.alias or name
        if example:
            _check(field, written, example)
        rows.append(
            (code(written), _type(field, limits[written]), _default(field), meaning, code(example) if example else "")
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
    "text → Secret": "file → secret",
    "list of TenantEntry": "list of tenants",
    "Range": "range",
    "ClusterShares": "shares",
    "list of User": "list of users",
    "list of Request": "list of requests",
}
_SECTIONS = {"Flows", "Restart", "Resources", "Constraints", "Weights", "Work", "Location", "Access", "Objective"}


def _default(field: FieldInfo) -> str:
    kind = quantity(field)
    if kind is not None and isinstance(field.default, int):
        return code(_FORMATS[kind](field.default))
    return default_text(field)
