"""What commands on instance files share: options about paths, reading instances and answers, and errors about them."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel, ValidationError

from ces_client.cli.output import Output, say, show_json_line
from ces_common.field_errors import plain_problem
from ces_core.model.errors import ProblemError


class BasisOption(StrEnum):
    """What load imbalance counts: everything on the nodes, or the job alone."""

    system = "system"
    job = "job"


class PathMetricOption(StrEnum):
    """By what the K paths of a flow are the shortest."""

    hops = "hops"
    delay = "delay"


Basis = Annotated[BasisOption, typer.Option(help="load of all jobs, or of this one alone")]
PathCount = Annotated[
    int | None, typer.Option(min=1, metavar="K", help="admit the K shortest simple paths, not the hop-shortest")
]
PathMetric = Annotated[PathMetricOption, typer.Option(help="by what the K paths are the shortest; needs --paths")]


class AnsweredFlow(BaseModel):
    """A flow of an answer, as far as the checker reads it."""

    src: str
    dst: str
    bandwidth: float
    path: list[str]


class AnsweredRequest(BaseModel):
    """The time of a request class; null where it would never end."""

    name: str
    time_ms: float | None


class Answer(BaseModel):
    """An answer of ``ces solve -o json``, as far as the checker reads it."""

    feasible: bool
    reason: str = ""
    assignments: dict[str, str] = {}
    flows: list[AnsweredFlow] = []
    metrics: dict[str, float] = {}
    requests: list[AnsweredRequest] = []


def read_object(file: Path, what: str) -> dict[str, Any]:
    """The JSON object in the file, ``-`` for standard input. Raises ProblemError; ``what``: its field there."""
    try:
        data = json.loads(sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ProblemError("file", error.strerror or str(error)) from error
    except ValueError as error:  # not UTF-8, or not JSON
        raise ProblemError("file", f"is not JSON: {error}") from error
    except RecursionError as error:
        raise ProblemError("file", "its lists and objects lie too deep within each other") from error
    if not isinstance(data, dict):
        raise ProblemError(what, "must be a JSON object")
    return data


def read_answer(file: Path) -> dict[str, Any]:
    """An answer whose parts have the right types. Raises ProblemError, naming the field."""
    answer = read_object(file, "answer")
    try:
        Answer.model_validate(answer, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        raise ProblemError(".".join(map(str, first["loc"])), plain_problem(first)) from error
    return answer


def say_error(output: Output, details: dict[str, Any], text: str) -> None:
    """On standard error, and for scripts as JSON on standard output."""
    if output is Output.JSON:
        show_json_line({"error": details})
    say(f"error: {text}", stderr=True)
