"""Job and topology files, checked before they are sent: each mistake is told with its field and a remedy."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ces_client.errors import BadInput, bad_field
from ces_common.documents import read_yaml
from ces_common.field_errors import plain_problem
from ces_common.jobfile import JobFile
from ces_common.messages.api import TopologyFile

M = TypeVar("M", bound=BaseModel)
_LEADING_FIELD = re.compile(r"^([a-z_]+(?:\.[a-z_]+|\[\d+\])*): ")
LARGEST_FILE = 2**20  # what the manager takes


def load_job(path: Path) -> JobFile:
    """The job in a YAML or JSON file. Raises BadInput."""
    return _load(path, JobFile)


def load_topology(path: Path) -> TopologyFile:
    """The links and media in a YAML or JSON file. Raises BadInput."""
    return _load(path, TopologyFile)


def _load(path: Path, model: type[M]) -> M:
    return checked(path, _parse(path), model)


def checked(path: Path, document: dict[str, Any], model: type[M]) -> M:
    """What the model makes of a file's document. Raises BadInput."""
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise BadInput(f"{path} is not valid", explained(error, model)) from error


def explained(error: ValidationError, model: type[BaseModel]) -> list[dict[str, str]]:
    """What is wrong with each field, and its remedy."""
    return [_explain(detail, model) for detail in error.errors(include_url=False)]


def _parse(path: Path) -> dict[str, Any]:
    return parsed(path, read_yaml, LARGEST_FILE, "give the path of a YAML or JSON file")


def parsed(path: Path, read: Callable[[str], Any], largest: int, remedy: str) -> dict[str, Any]:
    """A file's document, by what reads its format. ``largest``: bytes; ``remedy``: for one that is larger. Raises
    BadInput."""
    title = f"{path} cannot be read"
    try:
        if path.stat().st_size > largest:
            raise bad_field(title, "file", f"it is larger than {largest // 2**20} MiB", remedy)
        document = read(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise bad_field(title, "file", error.strerror or str(error), "check the path and its permissions") from error
    except UnicodeDecodeError as error:
        raise bad_field(title, "file", "it is not text in UTF-8", "give a YAML or JSON file") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "file"
        what = getattr(error, "problem", None) or str(error)
        raise bad_field(title, where, str(what), "correct the YAML or JSON there") from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise bad_field(title, where, f"it is no JSON: {error.msg}", "correct the JSON there") from error
    except (ValueError, RecursionError) as error:
        raise bad_field(title, "file", f"it cannot be read: {error}", "correct the YAML or JSON") from error
    if not isinstance(document, dict):
        kinds: dict[type, str] = {type(None): "nothing", str: "text", list: "a list"}
        kind = kinds.get(type(document), "one value")
        raise bad_field(title, "file", f"it holds {kind}, not fields with values", "write `field: value` lines")
    return document


def _explain(detail: ErrorDetails, model: type[BaseModel]) -> dict[str, str]:
    field = field_name(detail["loc"])
    message = plain_problem(detail)
    if detail["type"] in ("missing", "extra_forbidden"):
        message = message.partition(";")[0]  # the remedy says the rest
    if not field and (match := _LEADING_FIELD.match(message)):
        field, message = match.group(1), message[match.end() :]
    remedy = _remedy(detail, model)
    if detail["type"] == "value_error":  # our own texts mostly end with what to do
        message, _, rest = message.partition("; ")
        remedy = rest or remedy
    return {"field": field or "file", "problem": message, "remedy": remedy}


def field_name(location: tuple[int | str, ...]) -> str:
    """``tasks[0].resources.cpu`` of a pydantic location."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return text.removeprefix(".")


def _remedy(detail: ErrorDetails, model: type[BaseModel]) -> str:
    match detail["type"]:
        case "extra_forbidden":
            return _unknown_field(detail["loc"], model)
        case "missing":
            return "add it"
        case "value_error":
            return "change it"
        case _:
            return f"change {_short(detail['input'])}"


def _unknown_field(location: tuple[int | str, ...], model: type[BaseModel]) -> str:
    known = _fields_at(location[:-1], model)
    close = get_close_matches(str(location[-1]), known, 1)
    hint = f"perhaps {close[0]!r} was meant" if close else "remove it"
    return f"{hint}; known fields are {', '.join(known)}" if known else hint


def _fields_at(location: tuple[int | str, ...], model: type[BaseModel]) -> list[str]:
    """The field names of the model at a location; none if there is no model."""
    current: Any = model
    for part in location:
        if isinstance(part, int):
            continue
        field = current.model_fields.get(part)
        nested = _model_in(field.annotation) if field else None
        if nested is None:
            return []
        current = nested
    return list(current.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model in an annotation such as ``list[Model]`` or ``Model | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in getattr(annotation, "__args__", ()) if (found := _model_in(part))), None)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
