"""Files by which operators set services up."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ces_common.documents import read_yaml
from ces_common.field_errors import plain_problem
from ces_common.service import BadSetup
from ces_common.settings import ServiceSettings

M = TypeVar("M", bound=BaseModel)
LEAST_LENGTH = 16  # characters of a secret


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


def read_secret(path: Path, what: str) -> str:
    """A secret from its file. Raises BadSetup when it is missing, short, or others could read it."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        secret = path.read_text().strip()
    except OSError as error:
        raise BadSetup(f"{what}: {path} cannot be read: {error.strerror}") from error
    if mode & 0o077:
        raise BadSetup(f"{what}: {path} can be read by others (mode {mode:o}): chmod 600 it")
    if len(secret) < LEAST_LENGTH:
        raise BadSetup(f"{what}: {path} holds less than {LEAST_LENGTH} characters")
    return secret


def metrics_token(settings: ServiceSettings) -> str | None:
    """The token by which a service's metrics may be read, if it has one. Raises BadSetup."""
    path = settings.metrics_token_file
    return None if path is None else read_secret(path, "CES_METRICS_TOKEN_FILE")


def _explain(detail: ErrorDetails) -> str:
    """``tenants[1].weight: must be above 0, is -2``."""
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in detail["loc"]).removeprefix(".")
    said = plain_problem(detail)
    if detail["type"] == "value_error" and not field:
        return said  # it begins with the field
    return f"{field or 'file'}: {said}"
