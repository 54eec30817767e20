"""Markdown, and how types and defaults of pydantic models are written in it."""

from __future__ import annotations

import inspect
import io
import tokenize
from collections.abc import Iterable, Sequence
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ces_common.disconnect import Disconnect
from ces_common.quantities import Bandwidth, Cpu, Duration, Latency, Memory, WorkAmount

SIMPLE = {str: "text", int: "integer", float: "number", bool: "true or false", object: "anything", Any: "anything"}
QUANTITIES = {
    "CPU quantity": Cpu,
    "memory quantity": Memory,
    "bandwidth": Bandwidth,
    "duration": Duration,
    "time of a request": Latency,
    "amount of work": WorkAmount,
    "`stop`, `keep` or duration": Disconnect,
}
LONG = 5  # more values than this are not written out


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def code(text: object) -> str:
    return f"`{text}`"


def anchor(heading: str) -> str:
    """The fragment that a heading gets."""
    kept = "".join(c for c in heading.lower().replace("`", "") if c.isalnum() or c in " -_")
    return kept.strip().replace(" ", "-")


def type_text(annotation: Any, linked: frozenset[type] = frozenset()) -> str:
    """``list of text``, ``node or none``; models in ``linked`` become links to their headings."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in SIMPLE:
        return SIMPLE[annotation]
    if origin is Literal:
        return _values(arguments)
    if origin in (Union, UnionType):
        return " or ".join(type_text(part, linked) for part in arguments if part is not NoneType)
    if origin is list:
        return f"list of {type_text(arguments[0], linked)}"
    if origin is dict:
        return f"{type_text(arguments[0], linked)} → {type_text(arguments[1], linked)}"
    if origin is Annotated:
        return type_text(arguments[0], linked)
    if issubclass(annotation, Enum):
        return _values([member.value for member in annotation])
    name = str(annotation.__name__)
    if annotation in linked:
        return f"[{name}](#{anchor(name)})"
    return {"datetime": "time (RFC 3339)", "Path": "path"}.get(name, name)


def quantity(field: FieldInfo) -> str | None:
    """What kind of quantity a field takes; None where it takes something else."""
    inner = [part for each in get_args(field.annotation) for part in getattr(each, "__metadata__", ())]
    found = [*field.metadata, *inner]  # of an optional field it stands within
    return next((name for name, kind in QUANTITIES.items() if kind.__metadata__[0] in found), None)


def _values(values: Sequence[object]) -> str:
    texts = [code(value) for value in values]
    return ", ".join(texts) if len(texts) <= LONG else f"one of {', '.join(texts)}"


def default_text(field: FieldInfo) -> str:
    """Empty where there is none to speak of."""
    if field.is_required():
        return "required"
    if field.default_factory is not None:
        return "detected"
    value = field.default
    if value is None or value == [] or value == {}:
        return ""
    if isinstance(value, BaseModel):
        return "as below"
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, list):
        value = ",".join(str(part) for part in value)
    if value is True or value is False:
        value = str(value).lower()
    return code('""') if value == "" else code(value)


def remarks(model: type[BaseModel]) -> dict[str, str]:
    """Field -> the comment that stands behind it in the source."""
    source = inspect.cleandoc("\n" + inspect.getsource(model))
    first_on_line: dict[int, str] = {}
    found = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME:
            first_on_line.setdefault(token.start[0], token.string)
        elif token.type == tokenize.COMMENT and (name := first_on_line.get(token.start[0])) in model.model_fields:
            found[name] = token.string.removeprefix("#").strip()
    return found


def docstring(model: type) -> str:
    """The class's own docstring, double backticks made single; empty where it has none."""
    text = model.__dict__.get("__doc__") or ""
    return " ".join(text.split()).replace("``", "`")
