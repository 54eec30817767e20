"""Files in YAML by which operators set services up."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ces_common.documents import read_yaml
from ces_common.field_errors import plain_problem
from ces_common.service import BadSetup

M = TypeVar("M", bound=BaseModel)


def read_setup_file(path: Path, model: type[M], variable: str) -> M:
    """What the file says that this environment variable names; an empty one is an empty mapping. Raises BadSetup, with
    file, field and what is wrong there."""
    try:
        document = read_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadSetup(f"{variable}: {path} cannot be read: {error.strerror or error}") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise BadSetup(f"{variable}: {path} is no YAML: {' '.join(str(error).split())}") from error
    try:
        return model.model_validate({} if document is None else document)
    except ValidationError as error:
        found = "; ".join(_explain(detail) for detail in error.errors(include_url=False))
        raise BadSetup(f"{variable}: {path}: {found}") from error


def _explain(detail: ErrorDetails) -> str:
    """``tenants[1].weight: must be above 0, is -2``."""
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in detail["loc"]).removeprefix(".")
    said = plain_problem(detail)
    if detail["type"] == "value_error" and not field:
        return said  # it begins with the field
    return f"{field or 'file'}: {said}"
