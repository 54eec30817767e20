"""The section ``adjust`` of an instance file: what is known of moving its tasks, and on which terms."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ces_core.adjustment.terms import MOST_MOVES, USUAL_RESTART_S, TaskFacts, Terms
from ces_core.model.errors import ProblemError

HOUR_S = 3600.0


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class TaskPart(_Part):
    restart_s: float = USUAL_RESTART_S
    requests: float | None = None
    cpu: Annotated[list[float], Field(min_length=2, max_length=2)] | None = None


class AdjustPart(_Part):
    remaining_s: float = HOUR_S
    least_gain: float = Terms.least_gain
    budget: float | None = None
    reserve: float = 0.0
    cooling: bool = False
    most_moves: int = MOST_MOVES
    tasks: dict[str, TaskPart] = Field(default_factory=dict)


def read_terms(section: Any) -> tuple[dict[str, TaskFacts], Terms]:
    """Facts by task, and terms; what is left out has its default: an hour remains, and the budget is without end.

    Raises ProblemError, naming the field.
    """
    try:
        part = AdjustPart.model_validate(section)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        what = "unknown field" if first["type"] == "extra_forbidden" else first["msg"]
        raise ProblemError(".".join(("adjust", *map(str, first["loc"]))), what) from error
    facts = {
        name: TaskFacts(each.restart_s, each.requests, None if each.cpu is None else (each.cpu[0], each.cpu[1]))
        for name, each in part.tasks.items()
    }
    budget = math.inf if part.budget is None else part.budget
    return facts, Terms(part.remaining_s, part.least_gain, budget, part.reserve, part.cooling, part.most_moves)
